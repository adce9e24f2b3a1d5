"""Pipelines in the store: processes that run commands, and the streams they write.

One script creates a pipeline atomically: the process, its output, stderr and tee streams, and the hold on
its input. Caller and pipeline know all of them by the same numbers, so a descriptor means the same to both.
Workers run the commands.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from fdstore.errors import DamagedRecord
from fdstore.store.contents.staging import MAX_SOURCE_CHARS, check_page_size
from fdstore.store.keys import ProcessKeys, content_keys, is_content, process_keys
from fdstore.store.outcomes import outcome
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes.task_words import task_words
from fdstore.store.record_format import decoding, show_bytes
from fdstore.store.trees.ceilings import run_with_ceilings
from fdstore.telemetry.tracing import traceparent
from fdstore.text.growth import empty_index
from fdstore.text.words import joined_words
from fdstore.wire.operation import Operation, new_op
from fdstore.wire.scripts import script, text

INPUT_SOURCE = "pipeline input"

UNKNOWN_CODES = "?"
"""In a chain: a pipeline that was lost, or was still running when its reader ended."""


class PipeFds(msgspec.Struct, frozen=True, kw_only=True):
    """The descriptors of a pipeline: its outputs, and its input (None if it has none)."""

    process: str
    fd: str
    stderr_fd: str
    tee_fds: tuple[str, ...] = ()
    in_fd: str | None = None


def start(
    handle: ProcessHandle,
    brief: str,
    *,
    title: str,
    in_fd: str | Literal["new"] | None = None,
    tees: tuple[int, ...] = (),
    page_size: int | None = None,
    call_id: str | None = None,
) -> Operation[PipeFds]:
    """Create a pipeline that is ready to run. `brief` is the task for its worker (JSON), `title` the source
    of its output. One round trip.

    Raises `NotFound` (its input), `SpawnLimit`, `QuotaExceeded`, `Fenced`; nothing is created then.
    """
    size = check_page_size(page_size)
    answer_key, answer_field = handle.answer_slot(new_op(), call_id)
    sources = [
        title,
        f"stderr of {title}"[:MAX_SOURCE_CHARS],
        *(f"stage {number} of {title}"[:MAX_SOURCE_CHARS] for number in tees),
    ]
    create = script("pipe")(
        tree=handle.keys.tree.record,
        parent_record=handle.keys.record,
        parent_table=handle.keys.fds,
        answers=answer_key,
        op=answer_field,
        attempt=handle.attempt,
        parent=handle.id,
        brief=brief,
        page_size=size,
        empty_index=empty_index(size),
        input=in_fd or "",
        input_source=INPUT_SOURCE,
        seen_fd=handle.highest,
        seen_child=handle.highest_child,
        traceparent=traceparent(),
        words=task_words(brief),
        outputs=[part for source in sources for part in (source, joined_words(source))],
    )
    [reply] = yield from run_with_ceilings(handle, [create])
    process, source_fd, *outputs = map(text, outcome(reply, handle.id))
    handle.see(*outputs)
    handle.see_child(process)
    return _fds(process, source_fd, outputs)


def _fds(process: str, in_fd: str, outputs: list[str]) -> PipeFds:
    output, error, *tees = outputs
    return PipeFds(process=process, fd=output, stderr_fd=error, tee_fds=tuple(tees), in_fd=in_fd or None)


def fds_of(prefix: str, process: str) -> Operation[PipeFds | None]:
    """Return the descriptors of a pipeline; None for any other process."""
    keys = process_keys(prefix, process)
    [(kind, in_fd, outputs)] = yield [("HMGET", keys.record, "kind", "input", "outputs")]
    if kind != b"pipeline":
        return None
    with decoding(f"the record of process {process}"):
        return _fds(process, text(in_fd or b""), text(outputs or b"").split())


def store_exit_codes(handle: ProcessHandle, codes: tuple[int, ...]) -> Operation[None]:
    """Store the exit codes of all stages before the process ends. Raises `Fenced`, `NotFound`."""
    record = handle.keys.record
    put = script("put_once")(
        process=record, calls=record, attempt=handle.attempt, field="codes", value=",".join(map(str, codes))
    )
    [reply] = yield [put]
    outcome(reply, handle.id)


def chain_of(handle: ProcessHandle, fd: str | None) -> Operation[str]:
    """Return the exit codes of the pipelines behind an input, source first; "" if no pipeline wrote it.

    An output stores them at its EOF. Before that, `UNKNOWN_CODES` stands for its pipeline, and the chain is
    followed to that pipeline's own input. Two round trips for each pipeline that has not ended.
    """
    codes: list[str] = []
    keys = handle.keys
    seen: set[str] = set()
    while fd:
        [name] = yield [("HGET", keys.fds, fd)]
        if name is None:
            break
        if not is_content(keys.tree, name) or show_bytes(name) in seen:
            # a valid chain has no cycles
            raise DamagedRecord(
                f"{show_bytes(fd)} of process {keys.process}", f"it cannot be {show_bytes(name)}"
            )
        content = text(name)
        seen.add(content)
        writer = ProcessKeys(keys.tree, content.partition("/")[0])
        [chain, (kind, in_fd, own)] = yield [
            ("HGET", content_keys(keys.tree, content).record, "chain"),
            ("HMGET", writer.record, "kind", "input", "codes"),
        ]
        if kind != b"pipeline":
            break
        if chain is not None:
            codes.append(show_bytes(chain))
            break
        codes.append(UNKNOWN_CODES if own is None else show_bytes(own))
        keys, fd = writer, show_bytes(in_fd or b"")
    return " ".join(reversed(codes))
