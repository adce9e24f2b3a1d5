"""Pipelines in the store: processes that run commands, and the contents that these write.

One script makes a pipeline whole: the process, its output, its stderr, its tees, and the hold on its
input. Caller and pipeline know all of them by the same numbers, so what is said of one is true for the
other. What runs the commands is a worker's business.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from fdstore.errors import DamagedRecord
from fdstore.store.ceilings import beside
from fdstore.store.content_info import Namespace
from fdstore.store.decoding import decoding, shown
from fdstore.store.keys import ProcessKeys, content_keys, is_content, process_keys
from fdstore.store.outcomes import outcome
from fdstore.store.staging import check_page_size
from fdstore.text.growth import empty_index
from fdstore.wire.operation import Operation, new_op
from fdstore.wire.scripts import script, text

INPUT_SOURCE = "pipeline input"

UNKNOWN_CODES = "?"
"""What a chain says of a pipeline that was still running when its reader ended, or was lost."""


class PipeFDs(msgspec.Struct, frozen=True, kw_only=True):
    """The descriptors of a pipeline: what it writes, and what it reads (None: nothing)."""

    process: str
    fd: str
    stderr_fd: str
    tee_fds: tuple[str, ...] = ()
    in_fd: str | None = None


def start(
    space: Namespace,
    brief: str,
    *,
    shown: str,
    in_fd: str | Literal["new"] | None = None,
    tees: tuple[int, ...] = (),
    page_size: int | None = None,
    call: str | None = None,
) -> Operation[PipeFDs]:
    """Makes a pipeline, ready to be run. `brief` is what its worker is told (JSON), `shown` what people
    read as the source of its output. One round trip.

    Raises `NotFound` (its input), `SpawnLimit`, `QuotaExceeded`, `Fenced`; nothing is made then.
    """
    size = check_page_size(page_size)
    empty = empty_index(size)
    answer_key, answer_field = space.answer_slot(new_op(), call)
    sources = [shown, f"stderr of {shown}"[:200], *(f"stage {number} of {shown}"[:200] for number in tees)]
    made = script("pipe")(
        (space.keys.tree.record, space.keys.record, space.keys.fds, answer_key),
        *(answer_field, space.attempt, space.id, brief, size, empty, in_fd or "", INPUT_SOURCE),
        space.highest,
        space.highest_child,
        *sources,
    )
    [reply] = yield from beside(space, [made])
    process, given, *written = map(text, outcome(reply, space.id))
    space.see(*written)
    space.see_child(process)
    return _fds(process, given, written)


def _fds(process: str, given: str, written: list[str]) -> PipeFDs:
    output, error, *tees = written
    return PipeFDs(process=process, fd=output, stderr_fd=error, tee_fds=tuple(tees), in_fd=given or None)


def fds_of(prefix: str, process: str) -> Operation[PipeFDs | None]:
    """The descriptors of a pipeline; None for any other process."""
    keys = process_keys(prefix, process)
    [(kind, given, outputs)] = yield [("HMGET", keys.record, "kind", "input", "outputs")]
    if kind != b"pipeline":
        return None
    with decoding(f"the record of process {process}"):
        return _fds(process, text(given or b""), text(outputs or b"").split())


def note_codes(space: Namespace, codes: tuple[int, ...]) -> Operation[None]:
    """Keeps the exit codes of all stages, for people, before the process ends. Raises `Fenced`,
    `NotFound`."""
    record = space.keys.record
    [reply] = yield [script("keep")((record, record), space.attempt, "codes", ",".join(map(str, codes)))]
    outcome(reply, space.id)


def chain_of(space: Namespace, fd: str | None) -> Operation[str]:
    """The exit codes of the pipelines behind an input, source first, "" when no pipeline wrote it.

    An output has them at its EOF. Before that `UNKNOWN_CODES` stands for its pipeline, and what that
    one reads is looked at in turn. Two round trips for each pipeline that has not ended.
    """
    codes: list[str] = []
    keys = space.keys
    seen: set[str] = set()
    while fd:
        [name] = yield [("HGET", keys.fds, fd)]
        if name is None:
            break
        if not is_content(keys.tree, name) or shown(name) in seen:
            # a chain has no circles
            raise DamagedRecord(f"{shown(fd)} of process {keys.process}", f"it cannot be {shown(name)}")
        content = text(name)
        seen.add(content)
        writer = ProcessKeys(keys.tree, content.partition("/")[0])
        [chain, (kind, given, own)] = yield [
            ("HGET", content_keys(keys.tree, content).record, "chain"),
            ("HMGET", writer.record, "kind", "input", "codes"),
        ]
        if kind != b"pipeline":
            break
        if chain is not None:
            codes.append(shown(chain))
            break
        codes.append(UNKNOWN_CODES if own is None else shown(own))
        keys, fd = writer, shown(given or b"")
    return " ".join(reversed(codes))
