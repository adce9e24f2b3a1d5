"""What came of a process or a run: its task, its answer, and its failures by reason, shown first."""

from __future__ import annotations

from collections.abc import Iterable

from fdstore.errors import FDStoreError
from fdstore.model.ends import in_words
from fdstore.model.lifecycle import ENDED
from fdstore.model.records import ProcessRecord, Record, TreeLimits
from fdstore.store.contents import reading
from fdstore.store.keys import process_keys
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes.process_records import answer_of
from fdstore.text.quantities import format_costs
from fdstore.text.selection import Part
from fdstore.wire.operation import Operation

ANSWER_CHARS = 6_000
"""The characters of an answer that are shown."""

GROUPS = 8
"""Reasons of failures that are shown."""


class FailureGroup(Record, frozen=True, kw_only=True):
    """Processes that failed for the same reason: how many, and the first of them."""

    reason: str
    count: int
    first: str


class Outcome(Record, frozen=True, kw_only=True):
    """What came of `process`. `answer` is its beginning, of `answer_chars` characters; `answer_fd` is the
    descriptor of a long one, held by `answer_of`. `took_s` is None before it began. `more_reasons` are those
    of further failures."""

    process: ProcessRecord
    task: str
    answer: str = ""
    answer_chars: int = 0
    answer_fd: str = ""
    answer_of: str = ""
    failures: tuple[FailureGroup, ...] = ()
    more_reasons: int = 0
    took_s: float | None = None
    cost: str = ""

    @property
    def has_ended(self) -> bool:
        return self.process.state in ENDED


def run_of(root: ProcessRecord, others: Iterable[ProcessRecord]) -> ProcessRecord | None:
    """Return the process whose task is that of the run: the root, or its child that has the root's task, as
    the agent of a question of `fdstore ask` has; None if a client does the work of the root itself.

    >>> root = ProcessRecord(id="ask-1", state="open", task="Why?")
    >>> told = {"state": "exited", "program": "ask", "parent": "ask-1", "task": "Why?"}
    >>> asked = [ProcessRecord(id=f"ask-1.{number}", **told) for number in (9, 10)]
    >>> run_of(root, asked).id, run_of(root, [])
    ('ask-1.10', None)
    """
    if root.program:
        return root
    told = [each for each in others if each.parent == root.id and each.program and each.task == root.task]
    return max(told, key=lambda each: int(each.id.rpartition(".")[2]), default=None) if root.task else None


def outcome_of(
    prefix: str,
    process: ProcessRecord,
    others: Iterable[ProcessRecord],
    now_s: float,
    max_chars: int = ANSWER_CHARS,
) -> Operation[Outcome]:
    """Return what came of a process, and of `others` below it, with at most `max_chars` of the answer. At
    most three round trips. An answer that cannot be read is left out: the rest of a page says why."""
    answer, chars, fd, holder = "", 0, "", ""
    if process.state == "exited":
        try:
            found = yield from answer_of(prefix, process.id)
            answer, chars, fd = found.text, len(found.text), found.fd or ""
            if fd:
                holder = process.parent or process.id
                handle = ProcessHandle(process_keys(prefix, holder), TreeLimits())
                part = yield from reading.read(handle, fd, Part("char", 1, max_chars))
                answer, chars = part.text, part.total_chars
        except FDStoreError as error:
            if error.stops:
                raise
    everyone = [process, *(each for each in others if each.id != process.id)]
    groups = group_failures(everyone)
    until_s = now_s if process.ended_at is None else process.ended_at
    return Outcome(
        process=process,
        task=process.task or "",
        answer=answer[:max_chars],
        answer_chars=chars,
        answer_fd=fd,
        answer_of=holder,
        failures=groups[:GROUPS],
        more_reasons=max(0, len(groups) - GROUPS),
        took_s=None if process.started_at is None else max(0.0, until_s - process.started_at),
        cost=format_costs(everyone),
    )


def group_failures(processes: Iterable[ProcessRecord]) -> tuple[FailureGroup, ...]:
    """Return the failed processes by their reasons, the most frequent first, each with the one that failed
    first.

    >>> failed = [ProcessRecord(id=f"t.{n}", state="failed", reason="ValueError: no day") for n in (1, 2)]
    >>> group_failures(failed)
    (FailureGroup(reason='ValueError: no day', count=2, first='t.1'),)
    """
    found: dict[str, FailureGroup] = {}
    for each in sorted(processes, key=lambda process: process.ended_at or 0.0):
        if each.state == "failed":
            reason = in_words(each.reason) or "no reason is recorded"
            known = found.get(reason)
            found[reason] = FailureGroup(
                reason=reason,
                count=1 if known is None else known.count + 1,
                first=each.id if known is None else known.first,
            )
    return tuple(sorted(found.values(), key=lambda group: -group.count))
