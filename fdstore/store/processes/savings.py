"""The meter: what was kept out of a context and what was read back, counted in Redis.

    fdstore:{triage}:triage:saved   hash   DAY<TAB>SESSION<TAB>TOOL -> six numbers

The day is that of Redis's clock (days since the epoch, UTC); 0 holds all earlier days. The session is the
label of a `Toolset`. The numbers are outputs kept out, their characters and tokens (less those of what the
model saw instead), reads, and their characters and tokens. Tokens are estimates (`text.tokens`).

A count is one script in one round trip. It never fails a call: what cannot be counted is lost. The hash is
bounded, see `lua/saved.lua`, and is deleted with its process.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import date

from fdstore.errors import FDStoreError
from fdstore.model.records import Count, Record, Unreadable
from fdstore.store.hashes import Hash, pairs
from fdstore.store.keys import ProcessKeys, TreeKeys, in_pieces, member_of, process_keys
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes.process_records import missing
from fdstore.store.record_format import (
    decode_count,
    decoding,
    replies_of_trees,
    replies_or_damage,
    required,
    skipping,
)
from fdstore.store.tree_facts import tree_names
from fdstore.text.layout import show_controls
from fdstore.text.quantities import DAY_S
from fdstore.text.tokens import estimate_tokens
from fdstore.wire.operation import Operation
from fdstore.wire.scripts import script

EARLIER = "earlier"
"""The day of what was counted long ago, and was added together."""

MAX_LABEL = 80
"""The longest name of a session or a tool; the rest is cut off."""

EPOCH = date(1970, 1, 1).toordinal()
"""Day 0 of Redis's clock."""


class Saved(Record, frozen=True, kw_only=True):
    """The text kept out of a context, and read back, of one process, day (ISO 8601, or `earlier`), session
    and tool. `kept_chars` and `kept_tokens` are those of `kept` outputs less what the model saw instead;
    `read_chars` and `read_tokens` those of `read` results of fdstore's own tools. Of agents alone: what was
    `stored`, what was `shown` instead, and what was `cleared` later. Tokens are estimates."""

    process: str
    day: str
    session: str
    tool: str
    kept: Count = 0
    kept_chars: Count = 0
    kept_tokens: Count = 0
    read: Count = 0
    read_chars: Count = 0
    read_tokens: Count = 0
    stored_chars: Count = 0
    stored_tokens: Count = 0
    shown_chars: Count = 0
    shown_tokens: Count = 0
    cleared: Count = 0
    cleared_chars: Count = 0
    cleared_tokens: Count = 0


_SAVED = Hash(Saved)


COUNTED = ("kept", "kept_chars", "kept_tokens", "read", "read_chars", "read_tokens")
"""The numbers of a field of the hash."""


class Savings(Record, frozen=True, kw_only=True):
    """All that was counted, and records that cannot be read."""

    rows: list[Saved]
    unreadable: list[Unreadable]


def count_kept(
    handle: ProcessHandle,
    session: str,
    source: str,
    chars: int,
    tokens: int,
    shown: str,
    call_id: str | None = None,
) -> Operation[None]:
    """Count an output of this size that was replaced by what is `shown` to the model; under a `call_id` once.
    The tool is what precedes ": " in the source: `Bash` for `Bash: make test`."""
    chars = max(0, chars - len(shown))
    tokens = max(0, tokens - estimate_tokens(shown))
    yield from _count(handle, session, source.partition(": ")[0], (1, chars, tokens, 0, 0, 0), call_id)


def count_read(handle: ProcessHandle, session: str, tool: str, result: str) -> Operation[None]:
    """Count what one of fdstore's own tools showed to the model."""
    yield from _count(handle, session, tool, (0, 0, 0, 1, len(result), estimate_tokens(result)), None)


def _count(
    handle: ProcessHandle, session: str, tool: str, counts: tuple[int, ...], call_id: str | None
) -> Operation[None]:
    keys = handle.keys
    once = "" if call_id is None else f"{call_id}/saved"
    # the call has succeeded: a full or unreachable store must not make it fail now
    with suppress(FDStoreError):
        yield [
            script("saved")(
                process=keys.record,
                savings=keys.saved,
                calls=keys.calls,
                once=once,
                session_label=label(session),
                tool_label=label(tool),
                counts=counts,
            )
        ]


def label(name: str) -> str:
    r"""Return a name as it is counted: printable, on one line, not long.

    >>> label("Bash: make\ttest\n"), len(label("x" * 1000))
    ('Bash: make test', 80)
    """
    return show_controls(" ".join(name[:MAX_LABEL].split()), keep="")


def read_savings(prefix: str, process: str | None = None) -> Operation[Savings]:
    """Return what was counted, of one process and all below it, or of all. It only reads: two round trips
    for 500 processes. Raises `NotFound`."""
    if process is not None:
        keys = process_keys(prefix, process)
        [exists] = yield [("EXISTS", keys.record)]
        if not exists:
            raise (yield from missing(keys))
        trees = [keys.tree]
    else:
        trees = [TreeKeys(prefix, name) for name in (yield from tree_names(prefix))]
    found = Savings(rows=[], unreadable=[])
    for some in in_pieces(trees):
        replies = yield from replies_of_trees([("ZRANGE", tree.processes, 0, -1) for tree in some])
        members: list[ProcessKeys] = []
        for tree, names in zip(some, replies, strict=True):
            with skipping(found.unreadable):
                members += [
                    each
                    for name in required(names)
                    if (each := member_of(tree, name)) is not None
                    and (process is None or f"{each.process}.".startswith(f"{process}."))
                ]
        for few in in_pieces(members):
            read = yield from read_of(few)
            found.rows.extend(read.rows)
            found.unreadable.extend(read.unreadable)
    return found


def read_of(processes: Sequence[ProcessKeys]) -> Operation[Savings]:
    """Return what was counted of these processes. One round trip, or none."""
    found = Savings(rows=[], unreadable=[])
    replies = yield from replies_or_damage([("HGETALL", keys.saved) for keys in processes])
    for keys, flat in zip(processes, replies, strict=True):
        with skipping(found.unreadable), decoding(f"the savings of process {keys.process}"):
            found.rows.extend([_row(keys.process, *field) for field in pairs(required(flat)).items()])
    return found


def day_of(seconds: float | None) -> str:
    """Return the UTC day of a time.

    >>> day_of(1_795_363_200.0)
    '2026-11-22'
    """
    return _day(0 if seconds is None else int(seconds // DAY_S))


def _day(number: int) -> str:
    return EARLIER if number == 0 else str(date.fromordinal(EPOCH + number))


def _row(process: str, field: str, value: str) -> Saved:
    number, session, tool = field.split("\t")
    counts = dict(zip(COUNTED, value.split(" "), strict=True))
    day = _day(decode_count(number))
    return _SAVED.decode(counts, process=process, day=day, session=session, tool=tool)
