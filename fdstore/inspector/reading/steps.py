"""The steps of a conversation: a tool call with its result, and every other entry alone. Pure.

An answer that calls forty agents makes forty calls, and their results follow much later. A person looks for
the result of a call below it:

    entries   answer   call a   call b   note   result b   result a
    steps     answer   call a + result a   call b + result b   note

`make_steps` moves results to their calls, and `fold` puts equal calls of one answer together. No entry is
lost, and those that do not move keep their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from typing import Literal, TypeAlias

import msgspec

from fdstore.elements.kinds import ProcessResult
from fdstore.inspector.reading.entries import ConversationEntry
from fdstore.inspector.reading.narrate import Line, narrate
from fdstore.model.records import Record

StepState = Literal["failed", "running", "unanswered", "done"]

MIN_FOLDED = 4
"""Fewer equal calls are shown each by itself."""

MAX_SUBJECT_CHARS = 80


class Step(Record, frozen=True, kw_only=True, dict=True):
    """One step of a conversation: `entry`, or the call `entry` with its `result` if that is in the same part
    of the journal, and with the count of its `asks`. `earlier_call` is the call of a result that stands
    alone, if it is known. `is_cut_off`: the process failed or was cancelled before the call had a result."""

    entry: ConversationEntry
    earlier_call: ConversationEntry | None = None
    asks: ConversationEntry | None = None
    result: ConversationEntry | None = None
    is_cut_off: bool = False

    @property
    def key(self) -> str:
        """The position and the part of its first entry, as they are in URLs.

        >>> Step(entry=ConversationEntry(position=7, part=2, kind="note")).key
        '7-2'
        """
        return f"{self.entry.position}-{self.entry.part}"

    @property
    def entries(self) -> tuple[ConversationEntry, ...]:
        """Its entries in the order in which they are shown."""
        return tuple(each for each in (self.entry, self.asks, self.result) if each is not None)

    @cached_property
    def line(self) -> Line:
        """What people see of its entry."""
        return narrate(self.entry)

    @property
    def is_call(self) -> bool:
        return self.entry.kind == "call"

    @property
    def call(self) -> ConversationEntry | None:
        """The call of this step, which may be in an earlier part; None without one, or if it is unknown."""
        return self.entry if self.is_call else self.earlier_call

    @property
    def processes(self) -> tuple[ProcessResult, ...]:
        """The processes that it started, waited for or ended, as its result tells."""
        return (self.result or self.entry).facts.processes

    @property
    def is_error(self) -> bool:
        """True for an error: a call or an ask that failed, a call that was cut off, a failed try of the
        model, a lost worker, a record that cannot be read, or the end of a failed process."""
        if self.is_call:
            return self.is_cut_off or (self.result is not None and self.result.is_error)
        return self.line.is_error

    @property
    def state(self) -> StepState:
        """The state: failed, running, without a result here, or done."""
        if self.is_error:
            return "failed"
        if self.entry.pending:
            return "running"
        return "unanswered" if self.is_call and self.result is None else "done"

    @property
    def subject(self) -> str:
        """The program that a call starts; "" for other steps."""
        arguments = None if self.call is None else self.call.arguments
        program = arguments.get("program_name") if isinstance(arguments, dict) else None
        return program[:MAX_SUBJECT_CHARS] if isinstance(program, str) else ""

    @property
    def began_at(self) -> float | None:
        """The time of its begin, in seconds since the epoch by Redis; None if that is not recorded."""
        timed = self.result or self.entry
        if timed.at is None:
            return self.entry.at
        line = narrate(timed) if timed is self.result else self.line
        return timed.at - (line.took_s or 0.0)

    def ended_at(self, now_s: float) -> float | None:
        """Return when it ended: `now_s` if it goes on. None if that is not recorded."""
        if self.entry.pending:
            return now_s
        return (self.result or self.entry).at

    @property
    def took_s(self) -> float | None:
        """Its duration in seconds; None if that is not recorded, or if it has none."""
        return (self.result or self.entry).duration_s


class Fold(Record, frozen=True, kw_only=True):
    """Equal calls of one answer: the same tool with the same subject, at least `MIN_FOLDED`."""

    steps: tuple[Step, ...]

    @property
    def key(self) -> str:
        return self.steps[0].key

    @property
    def entry(self) -> ConversationEntry:
        """The entry of its first step."""
        return self.steps[0].entry

    @property
    def failed(self) -> tuple[Step, ...]:
        return tuple(each for each in self.steps if each.is_error)

    @property
    def others(self) -> tuple[Step, ...]:
        """Those that have not failed."""
        return tuple(each for each in self.steps if not each.is_error)

    @property
    def states(self) -> dict[StepState, int]:
        """The number of steps in each state that occurs; failed ones first."""
        found = [each.state for each in self.steps]
        order: tuple[StepState, ...] = ("failed", "running", "unanswered", "done")
        return {state: found.count(state) for state in order if state in found}

    def took_s(self, now_s: float) -> float | None:
        """Return the time from the first begin to the last end; None if these are not recorded."""
        begins = [at for each in self.steps if (at := each.began_at) is not None]
        ends = [at for each in self.steps if (at := each.ended_at(now_s)) is not None]
        return max(0.0, max(ends) - min(begins)) if begins and ends else None


StepOrFold: TypeAlias = Step | Fold


def make_steps(
    entries: Sequence[ConversationEntry], earlier: Mapping[str, ConversationEntry] | None = None
) -> tuple[Step, ...]:
    """Return the steps of these entries. A result goes to the last call before it with its key that has none
    yet; without such a call it is a step of its own. `earlier` are calls that are not in `entries`, by their
    keys.

    >>> found = make_steps([
    ...     ConversationEntry(position=3, part=1, kind="call", call="turn1:a"),
    ...     ConversationEntry(position=4, kind="note"),
    ...     ConversationEntry(position=5, kind="result", call="turn1:a"),
    ... ])
    >>> [[each.kind for each in step.entries] for step in found]
    [['call', 'result'], ['note']]
    """
    steps: list[Step] = []
    waiting: dict[str, int] = {}
    for entry in entries:
        at = waiting.get(entry.call) if entry.call else None
        match entry.kind:
            case "result" if at is not None:
                steps[at] = msgspec.structs.replace(steps[at], result=entry)
                del waiting[entry.call]
                continue
            case "asks" if at is not None and steps[at].asks is None:
                steps[at] = msgspec.structs.replace(steps[at], asks=entry)
                continue
            case "call":
                waiting[entry.call] = len(steps)
        known = (earlier or {}).get(entry.call) if entry.kind == "result" else None
        steps.append(Step(entry=entry, earlier_call=known))
    if any(each.kind == "end" and each.state in ("failed", "cancelled") for each in entries):
        for at in waiting.values():
            steps[at] = msgspec.structs.replace(steps[at], is_cut_off=True)
    return tuple(steps)


def fold(steps: Iterable[Step]) -> tuple[StepOrFold, ...]:
    """Put neighbours together that are equal calls of one answer, if they are at least `MIN_FOLDED`.

    >>> calls = [ConversationEntry(position=3, part=n, kind="call", tool="put_fd") for n in range(40)]
    >>> [len(each.steps) for each in fold(make_steps(calls))]
    [40]
    """
    found: list[StepOrFold] = []
    for name, group in groupby(steps, _fold_name):
        alike = tuple(group)
        if name[0] and len(alike) >= MIN_FOLDED:
            found.append(Fold(steps=alike))
        else:
            found += alike
    return tuple(found)


def _fold_name(step: Step) -> tuple[bool, int, str, str]:
    """Return what equal calls of one answer share; the first part is whether it is a call, or its result."""
    call = step.call or step.entry
    return step.call is not None, call.position, call.tool, step.subject
