"""What agents may write to files: counted for each tool call before it is written.

A content's size is known, so one that is too large is refused before its first byte; of a part, room is taken
ahead, some megabytes at a time, and the rest given back. The count is kept with the call (`calls`), so a
call that is made again, by the next attempt, is counted once. A programmer's own export is not counted.
"""

from __future__ import annotations

from contextlib import suppress

from fdstore.errors import FDStoreError, Fenced, StoreUnavailable, UnknownOutcome
from fdstore.store import ceilings
from fdstore.store.content_info import ProcessHandle
from fdstore.store.keys import TreeKeys
from fdstore.store.outcomes import outcome
from fdstore.wire.operation import Operation, new_op
from fdstore.wire.scripts import script, text

AHEAD_BYTES = 8 << 20
"""How much room is taken at a time while a part is written."""

LEFT_AS_IT_IS = (StoreUnavailable, UnknownOutcome, Fenced)
"""Errors after which the count stays: another attempt makes the call, or the store is not there to ask."""


class Allowance:
    """What one call may write. `call_id` is its id; without one it is not made again."""

    def __init__(self, handle: ProcessHandle, call_id: str | None) -> None:
        self._handle = handle
        self._field = f"{call_id or new_op()}/exported"
        self._once = call_id is None
        self._granted = 0
        self._at_first: int | None = None
        self._written = 0

    def begin(self, size_bytes: int | None) -> Operation[None]:
        """Takes room for a content, or for the beginning of a part (None). Raises `QuotaExceeded`."""
        self._written = 0
        if size_bytes is not None:
            yield from self._count(size_bytes, size_bytes, "ahead")

    def add(self, size_bytes: int) -> Operation[None]:
        """Takes room for the bytes that are about to be written, if there is none yet. Raises
        `QuotaExceeded`."""
        self._written += size_bytes
        if self._written > self._granted:
            yield from self._count(self._written, self._written + AHEAD_BYTES, "ahead")

    def settle(self) -> Operation[None]:
        """Gives back what was not written."""
        if self._once or self._granted != self._written:
            yield from self._count(self._written, self._written, "forget" if self._once else "exactly")

    def refund(self) -> Operation[None]:
        """Nothing was put in place: the count is as before this attempt, if the store can be reached."""
        if self._at_first is not None:
            back = self._at_first
            with suppress(FDStoreError):
                yield from self._count(back, back, "forget" if self._once else "exactly")

    def _count(self, needed: int, wanted: int, how: str) -> Operation[None]:
        keys = self._handle.keys
        tree = keys.tree
        count = script("export")(
            (tree.record, keys.record, keys.calls), self._handle.attempt, self._field, needed, wanted, how
        )
        flat, reply = yield [("HGETALL", tree.ceilings), count]
        granted, before, exported, created_at = outcome(reply, self._handle.id)
        if self._at_first is None:
            self._at_first = int(before)
        self._granted = int(granted)
        top = ceilings.parse(flat).get("export_bytes_per_day")
        if top is not None and how == "ahead":
            life = f"{tree.tree}@{text(created_at)}"
            all_of_tree = int(exported)
            day = script("export_day")((tree.exports,), life, all_of_tree - self._granted, all_of_tree, top)
            [reply] = yield [day]
            outcome(reply, self._handle.id)


def read_exported_today(prefix: str) -> Operation[int | None]:
    """What all trees exported today, as far as it was counted: None while there is no ceiling for it."""
    [(day, size_bytes), (seconds, _)] = yield [
        ("HMGET", TreeKeys(prefix, "").exports, "day", "bytes"),
        ("TIME",),
    ]
    if day is None:
        return None
    return int(size_bytes) if int(day) == int(seconds) // 86_400 else 0
