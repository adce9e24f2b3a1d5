"""Quotas for the files that agents write: each tool call reserves bytes before writing them.

The size of a whole content is known, so one that is too large is refused before its first byte. For a part,
some megabytes are reserved at a time, and the unused remainder is returned. The count is stored with the
tool call (see `tool_calls`), so a call repeated by the next attempt counts once. Exports by user code are
not counted.
"""

from __future__ import annotations

from contextlib import suppress

from fdstore.errors import FDStoreError, Fenced, StoreUnavailable, UnknownOutcome
from fdstore.store.keys import TreeKeys
from fdstore.store.outcomes import outcome
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.record_format import decode_count, decoding
from fdstore.store.trees import ceilings
from fdstore.text.quantities import DAY_S
from fdstore.wire.operation import Operation, new_op
from fdstore.wire.scripts import script, text

AHEAD_BYTES = 8 << 20
"""Bytes reserved at a time while a part is written."""

LEFT_AS_IT_IS = (StoreUnavailable, UnknownOutcome, Fenced)
"""Errors after which the count stays: another attempt repeats the call, or the store is unreachable."""


class Allowance:
    """The export quota of one call. A call without `call_id` is never repeated."""

    def __init__(self, handle: ProcessHandle, call_id: str | None) -> None:
        self._handle = handle
        self._field = f"{call_id or new_op()}/exported"
        self._once = call_id is None
        self._granted = 0
        self._at_first: int | None = None
        self._written = 0

    def begin(self, size_bytes: int | None) -> Operation[None]:
        """Start counting; reserve the size of a whole content (None for a part). Raises `QuotaExceeded`."""
        self._written = 0
        if size_bytes is not None:
            yield from self._count(size_bytes, size_bytes, "ahead")

    def add(self, size_bytes: int) -> Operation[None]:
        """Reserve room for the bytes about to be written, unless already reserved. Raises `QuotaExceeded`."""
        self._written += size_bytes
        if self._written > self._granted:
            yield from self._count(self._written, self._written + AHEAD_BYTES, "ahead")

    def settle(self) -> Operation[None]:
        """Return the unused part of the reservation."""
        if self._once or self._granted != self._written:
            yield from self._count(self._written, self._written, "forget" if self._once else "exactly")

    def refund(self) -> Operation[None]:
        """Restore the count from before this attempt, which wrote no file, if the store can be reached."""
        if self._at_first is not None:
            back = self._at_first
            with suppress(FDStoreError):
                yield from self._count(back, back, "forget" if self._once else "exactly")

    def _count(self, needed: int, reserve: int, how: str) -> Operation[None]:
        keys = self._handle.keys
        tree = keys.tree
        count = script("export")(
            tree=tree.record,
            process=keys.record,
            calls=keys.calls,
            attempt=self._handle.attempt,
            call=self._field,
            needed=needed,
            wanted=reserve,
            how=how,
        )
        flat, reply = yield [("HGETALL", tree.ceilings), count]
        granted, before, exported, created_at = outcome(reply, self._handle.id)
        with decoding(f"the exports of tree {tree.tree}"):
            first, self._granted, all_of_tree = map(decode_count, (before, granted, exported))
        if self._at_first is None:
            self._at_first = first
        top = ceilings.parse(flat).get("export_bytes_per_day")
        if top is not None and how == "ahead":
            of_day = script("export_day")(
                exports=tree.exports,
                life=f"{tree.tree}@{text(created_at)}",
                before_call=all_of_tree - self._granted,
                with_call=all_of_tree,
                ceiling=top,
                of_call=min(self._granted, reserve),
            )
            [reply] = yield [of_day]
            outcome(reply, self._handle.id)


def read_exported_today(prefix: str) -> Operation[int | None]:
    """Return the bytes that all trees exported today; None if they are not counted, without a ceiling."""
    [(day, size_bytes), (seconds, _)] = yield [
        ("HMGET", TreeKeys(prefix, "").exports, "day", "bytes"),
        ("TIME",),
    ]
    if day is None:
        return None
    with decoding("the exports of today"):
        return decode_count(size_bytes or 0) if decode_count(day) == int(seconds) // DAY_S else 0
