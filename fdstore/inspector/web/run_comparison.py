"""Two runs beside each other: their facts, their processes by number, the steps of their roots. Pure.

Differences are in words, and always say how the second run differs from the first. Steps are aligned as
`difflib` aligns sequences, by what was done: an answer, or a call of a tool with these arguments. What an
answer said and what a call returned are compared afterwards, between steps that are beside each other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import groupby, zip_longest
from typing import Any, Literal

import msgspec

from fdstore.inspector.reading.entries import ConversationEntry
from fdstore.inspector.reading.steps import Step, make_steps
from fdstore.inspector.web.whole_tree import WholeTree
from fdstore.model.records import ProcessRecord, Record, TokenUsage
from fdstore.text.quantities import (
    format_number,
    format_size,
    format_sums,
    precise_duration,
    sum_costs,
)

Unit = Literal["", "s", "bytes"]

Verdict = Literal["", "better", "worse"]
"""What a difference means for the second run: it took less, or failed less; "" of one that is neither."""

FAILED, DID_NOT_FAIL = "it failed", "it did not fail"

LEAST_S, LEAST_SHARE = 0.5, 0.1
"""A process took longer or shorter if it did by so many seconds and this share; less is neither better nor
worse."""


class RunFacts(Record, frozen=True, kw_only=True):
    """Facts of a run that are compared. `duration_s` is that of its root: until `now_s` if it has not
    ended, None if it has not started. `states` are of all its processes that were read."""

    tree: str
    state: str
    reason: str
    program: str
    started_at: float | None
    duration_s: float | None
    tokens: TokenUsage
    costs: dict[str, float]
    processes: int
    failed: int
    losses: int
    bytes: int
    contents: int
    states: dict[str, int]


def facts_of(whole: WholeTree, now_s: float) -> RunFacts:
    """Return the facts of a run."""
    root, states = whole.root, whole.counts.states
    return RunFacts(
        tree=whole.tree.id,
        state=root.state if root else "unreadable",
        reason=(root.reason or "") if root else "",
        program=(root.program or "") if root else "",
        started_at=root.started_at if root else None,
        duration_s=None if root is None else duration_of(root, now_s),
        tokens=whole.tokens,
        costs=sum_costs(whole.processes),
        processes=whole.total,
        failed=states.get("failed", 0),
        losses=sum(each.losses for each in whole.processes),
        bytes=whole.tree.bytes,
        contents=whole.tree.fds,
        states=states,
    )


def duration_of(process: ProcessRecord, now_s: float) -> float | None:
    """Return how long a process took, or has taken so far."""
    if process.started_at is None:
        return None
    return max(0.0, (now_s if process.ended_at is None else process.ended_at) - process.started_at)


class FactPair(Record, frozen=True, kw_only=True):
    """One fact of both runs, a text or a number of `unit`, and how the second one differs ("": it does
    not), with what that means."""

    name: str
    a: str | float | None
    b: str | float | None
    unit: Unit = ""
    difference: str = ""
    verdict: Verdict = ""


def compare_facts(a: RunFacts, b: RunFacts) -> list[FactPair]:
    """Return the facts of two runs side by side."""
    return [
        _texts("State", a.state, b.state, _verdict(a.state == "failed", b.state == "failed")),
        _texts("Reason", a.reason, b.reason),
        _texts("Program", a.program, b.program),
        _took(a.duration_s, b.duration_s),
        _fewer_is_better("Tokens in", a.tokens.input_tokens, b.tokens.input_tokens),
        _fewer_is_better("Tokens out", a.tokens.output_tokens, b.tokens.output_tokens),
        _costs(a.costs, b.costs),
        _numbers("Processes", a.processes, b.processes),
        _fewer_is_better("Failed processes", a.failed, b.failed),
        _fewer_is_better("Losses", a.losses, b.losses),
        _numbers("Stored", a.bytes, b.bytes, "bytes"),
        _numbers("Contents", a.contents, b.contents),
    ]


def _texts(name: str, a: str, b: str, verdict: Verdict = "") -> FactPair:
    return FactPair(name=name, a=a, b=b, difference="" if a == b else "differs", verdict=verdict)


def _costs(a: dict[str, float], b: dict[str, float]) -> FactPair:
    """Return what both have cost; costs of different currencies are not compared."""
    shown = _texts("Cost", format_sums(a), format_sums(b))
    if not shown.difference or a.keys() != b.keys() or len(a) != 1:
        return shown
    [(currency, before)], [after] = a.items(), b.values()
    said = f"{format_sums({currency: abs(after - before)})} {'more' if after > before else 'less'}"
    return msgspec.structs.replace(shown, difference=said, verdict=_verdict(before, after))


def _fewer_is_better(name: str, a: float | None, b: float | None, unit: Unit = "") -> FactPair:
    pair = _numbers(name, a, b, unit)
    if a is None or b is None:
        return pair
    return msgspec.structs.replace(pair, verdict=_verdict(a, b))


def _took(a: float | None, b: float | None) -> FactPair:
    pair = _numbers("Took", a, b, "s")
    if a is None or b is None or not _is_other_duration(a, b):
        return pair
    return msgspec.structs.replace(pair, verdict=_verdict(a, b))


def _is_other_duration(a: float, b: float) -> bool:
    by = abs(a - b)
    return by >= LEAST_S and by >= LEAST_SHARE * max(a, b)


def _verdict(a: float, b: float) -> Verdict:
    return "" if a == b else "worse" if b > a else "better"


def _numbers(name: str, a: float | None, b: float | None, unit: Unit = "") -> FactPair:
    said = "" if a == b else "differs" if a is None or b is None else more_or_less(a, b, unit)
    return FactPair(name=name, a=a, b=b, unit=unit, difference=said)


def more_or_less(a: float, b: float, unit: Unit = "") -> str:
    """Return in words how a number differs from another one.

    >>> more_or_less(3, 5), more_or_less(9000, 1000, "bytes"), more_or_less(1.0, 3.5, "s"), more_or_less(2, 2)
    ('2 more', '8.0 kB less', '2.5 s longer', '')
    """
    by = abs(b - a)
    if unit == "s":
        words = ("longer", "shorter")
        shown = precise_duration(by)
    else:
        words = ("more", "less" if unit else "fewer")
        shown = format_size(int(by)) if unit else format_number(int(by))
    return "" if a == b else f"{shown} {words[b < a]}"


class ProcessFacts(Record, frozen=True, kw_only=True):
    """Facts of a process that are compared."""

    id: str
    state: str
    program: str
    duration_s: float | None
    tokens: int
    losses: int


class Difference(Record, frozen=True, kw_only=True):
    """How the second of two processes differs, in words, and what that means."""

    text: str
    verdict: Verdict = ""


class ProcessPair(Record, frozen=True, kw_only=True):
    """The processes of both runs with the same numbers, such as ".2.1" ("" for the roots); None where there
    is none."""

    path: str
    a: ProcessFacts | None
    b: ProcessFacts | None
    differences: tuple[Difference, ...] = ()


def pair_processes(a: WholeTree, b: WholeTree, now_s: float) -> list[ProcessPair]:
    """Return the processes of two runs by their numbers, in the order of a tree."""
    one, other = ({_path(each.id): _process(each, now_s) for each in run.processes} for run in (a, b))
    paths = sorted(one.keys() | other.keys(), key=lambda path: [int(each) for each in path.split(".")[1:]])
    names = (a.tree.id, b.tree.id)
    return [
        ProcessPair(
            path=path,
            a=one.get(path),
            b=other.get(path),
            differences=tuple(_differences(one.get(path), other.get(path), names)),
        )
        for path in paths
    ]


def _path(process: str) -> str:
    """Return the numbers of a process, each after a dot.

    >>> _path("triage"), _path("triage.2.1")
    ('', '.2.1')
    """
    _, dot, numbers = process.partition(".")
    return dot + numbers


def _process(process: ProcessRecord, now_s: float) -> ProcessFacts:
    return ProcessFacts(
        id=process.id,
        state=process.state,
        program=process.program or "",
        duration_s=duration_of(process, now_s),
        tokens=process.tokens,
        losses=process.losses,
    )


def _differences(a: ProcessFacts | None, b: ProcessFacts | None, names: tuple[str, str]) -> list[Difference]:
    if a is None or b is None:
        return [Difference(text=f"only in {names[a is None]}")]
    found: list[Difference] = []

    def differs(text: str, verdict: Verdict = "") -> None:
        found.append(Difference(text=text, verdict=verdict))

    if a.state != b.state:
        differs(f"{b.state}, not {a.state}", _verdict(a.state == "failed", b.state == "failed"))
    if a.program != b.program:
        differs("another program")
    took, other = a.duration_s, b.duration_s
    if took is not None and other is not None and _is_other_duration(took, other):
        differs(more_or_less(took, other, "s"), _verdict(took, other))
    if a.tokens != b.tokens:
        differs(f"tokens: {more_or_less(a.tokens, b.tokens)}", _verdict(a.tokens, b.tokens))
    if a.losses != b.losses:
        differs(f"losses: {more_or_less(a.losses, b.losses)}", _verdict(a.losses, b.losses))
    return found


def steps_of(entries: Sequence[ConversationEntry]) -> list[Step]:
    """Return the answers that say something and the calls among these entries, with the results."""
    return [
        step
        for step in make_steps(entries)
        if step.is_call or (step.entry.kind == "answer" and step.entry.text)
    ]


class StepPair(Record, frozen=True, kw_only=True):
    """Two steps beside each other; None where there is none. `difference` is in words ("": they are
    equal)."""

    a: Step | None
    b: Step | None
    difference: str = ""

    @property
    def verdict(self) -> Verdict:
        """What the difference means: a call of the same that failed is worse."""
        return "worse" if self.difference == FAILED else "better" if self.difference == DID_NOT_FAIL else ""


class StepBlock(Record, frozen=True, kw_only=True):
    """Some pairs of steps: all equal, or all different."""

    is_equal: bool
    pairs: tuple[StepPair, ...]


def align_steps(a: Sequence[Step], b: Sequence[Step], names: tuple[str, str]) -> list[StepBlock]:
    """Return the steps of two runs side by side. `names` are those of the runs: the ids of their processes,
    which begin with them, are no difference. The time is quadratic in the number of steps, or worse."""
    return _Aligner(names).align(a, b)


class _Aligner:
    """The comparison of steps of two runs, in whose texts one name stands for the other one."""

    def __init__(self, names: tuple[str, str]) -> None:
        self._names = names
        either = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
        self._name = re.compile(rf"(?<![\w-])(?:{either})(?![\w-])")

    def align(self, a: Sequence[Step], b: Sequence[Step]) -> list[StepBlock]:
        pairs: list[StepPair] = []
        matcher = SequenceMatcher(None, [*map(self._key, a)], [*map(self._key, b)], autojunk=False)
        for _, first, last, new_first, new_last in matcher.get_opcodes():
            pairs += [
                StepPair(a=one, b=other, difference=self._difference(one, other))
                for one, other in zip_longest(a[first:last], b[new_first:new_last])
            ]
        return [
            StepBlock(is_equal=is_equal, pairs=tuple(some))
            for is_equal, some in groupby(pairs, lambda pair: not pair.difference)
        ]

    def _key(self, step: Step) -> tuple[str, str, str]:
        return step.entry.kind, step.entry.tool, self._written(step.entry.arguments)

    def _written(self, arguments: Any) -> str:
        return self._nameless(json.dumps(arguments, ensure_ascii=False, sort_keys=True))

    def _nameless(self, text: str) -> str:
        return self._name.sub("\0", text)

    def _are_equal(self, a: ConversationEntry, b: ConversationEntry) -> bool:
        """Return whether the texts of two entries are the same, as far as they are known: of one that is cut,
        the length says more, unless names of different lengths are in it."""
        one, other = self._names
        if a.is_cut != b.is_cut or (a.is_cut and a.chars != b.chars and len(one) == len(other)):
            return False
        return self._nameless(a.text) == self._nameless(b.text)

    def _difference(self, a: Step | None, b: Step | None) -> str:
        if a is None or b is None:
            return f"only in {self._names[a is None]}"
        one, other = a.entry, b.entry
        if one.kind != other.kind:
            return "another step"
        if one.tool != other.tool:
            return "another tool"
        if self._written(one.arguments) != self._written(other.arguments):
            return "other arguments"
        if not self._are_equal(one, other):
            return "other words"
        return self._difference_of_results(a.result, b.result)

    def _difference_of_results(self, a: ConversationEntry | None, b: ConversationEntry | None) -> str:
        if a is None or b is None:
            return "" if a is b else "only one has a result"
        if a.is_error != b.is_error:
            return FAILED if b.is_error else DID_NOT_FAIL
        return "" if self._are_equal(a, b) else "another result"
