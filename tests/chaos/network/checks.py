"""Judge a history: whether what was acknowledged is there, once, and nothing else is.

Pure functions over what clients recorded (`operations`) and what the store holds in the end. Each returns a
`Tally`, whose `problems` are sentences; a right history has none.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from tests.chaos.network.operations import Operation, Outcome


@dataclass
class Tally:
    """The operations of one kind, and what is wrong with them."""

    kind: str
    outcomes: Counter[str] = field(default_factory=Counter)
    lost: int = 0
    doubled: int = 0
    problems: list[str] = field(default_factory=list)

    def __add__(self, other: Self) -> Tally:
        return Tally(
            self.kind,
            self.outcomes + other.outcomes,
            self.lost + other.lost,
            self.doubled + other.doubled,
            self.problems + other.problems,
        )

    def note_lost(self, what: str) -> None:
        self.lost += 1
        self.problems.append(f"{self.kind}: {what} was acknowledged and is not there")

    def note_doubled(self, what: str, times: int) -> None:
        self.doubled += times - 1
        self.problems.append(f"{self.kind}: {what} is there {times} times")

    def note(self, problem: str) -> None:
        self.problems.append(f"{self.kind}: {problem}")


class Attempt(NamedTuple):
    """Something that was to happen once, and how its caller saw it end. `label` is unique."""

    label: str
    outcome: Outcome


class Sighting(NamedTuple):
    """The record of a process at some moment."""

    process: str
    attempt: int
    worker: str | None
    state: str


def check_once(
    kind: str, attempts: Sequence[Attempt], found: Sequence[str], *, ordered: bool = True
) -> Tally:
    """Check that each acknowledged attempt is found exactly once, one of unknown outcome at most once, and
    nothing else; if `ordered`, in the order of the attempts."""
    tally = Tally(kind, Counter(outcome for _, outcome in attempts))
    outcomes = dict(attempts)
    times = Counter(found)
    for label, outcome in attempts:
        if outcome == "acknowledged" and not times[label]:
            tally.note_lost(repr(label))
        elif outcome == "refused" and times[label]:
            tally.note(f"{label!r} was refused and is there")
        if times[label] > 1:
            tally.note_doubled(repr(label), times[label])
    for label in times.keys() - outcomes.keys():
        tally.note(f"{label[:100]!r} is there, and no holder wrote it")
    known = [label for label in dict.fromkeys(found) if label in outcomes]
    positions = {label: position for position, (label, _) in enumerate(attempts)}
    if ordered and known != sorted(known, key=positions.__getitem__):
        tally.note("what is there is in another order than it was written")
    return tally


def check_name(operations: Sequence[Operation], final: str) -> Tally:
    """Check the puts with `expect`, and the reads, of one name, which means `final` in the end: the puts that
    happened form one chain from nothing to `final`, all acknowledged ones are in it, in an order that their
    callers could see, and no read went back in it."""
    puts = [operation for operation in operations if operation.kind == "put"]
    tally = Tally("names", Counter(put.outcome for put in puts))
    by_value = {put.value: put for put in puts}
    chain: list[Operation] = []
    value = final
    while value and len(chain) <= len(puts):
        if value not in by_value:
            tally.note(f"{value!r} is stored, but no put wrote it")
            return tally
        chain.append(by_value[value])
        value = by_value[value].expected
    if value:
        tally.note(f"the values before {final!r} form a circle")
        return tally
    chain.reverse()
    position = {put.value: number for number, put in enumerate(chain, 1)}

    for put in puts:
        if put.outcome == "acknowledged" and put.value not in position:
            tally.note_lost(repr(put.value))
        elif put.outcome == "refused" and put.value in position:
            tally.note(f"{put.value!r} was refused and was put")
    earliest_end_s = math.inf
    for put in reversed(chain):
        if put.began_s > earliest_end_s:
            tally.note(f"{put.value!r} began after a later value was acknowledged")
        earliest_end_s = min(earliest_end_s, put.surely_ended_s)
    _check_reads(tally, operations, chain, position | {"": 0})
    return tally


def _check_reads(
    tally: Tally, operations: Sequence[Operation], chain: Sequence[Operation], position: Mapping[str, int]
) -> None:
    for read in operations:
        if read.kind != "read" or read.outcome != "acknowledged":
            continue
        tally.outcomes["acknowledged"] += 1
        if read.value not in position:
            tally.note(f"a read saw {read.value!r}, which the name never meant")
            continue
        seen = position[read.value]
        if any(put.surely_ended_s < read.began_s for put in chain[seen:]):
            tally.note(f"a read saw {read.value!r} after a later value was acknowledged")
        if seen and chain[seen - 1].began_s > read.ended_s:
            tally.note(f"a read saw {read.value!r} before it was put")


def check_readers(final: str, seen: Mapping[str, tuple[str, bool]]) -> Tally:
    """Check what readers of one stream saw, by their names, with whether they reached its end: a prefix of
    the final content, at its end all of it."""
    tally = Tally("readers")
    for reader, (text, reached_end) in seen.items():
        tally.outcomes["acknowledged"] += 1
        if not final.startswith(text):
            tally.note(f"{reader} saw {len(text)} characters that the content does not begin with")
        elif reached_end and text != final:
            tally.note(f"{reader} saw the end after {len(text)} of {len(final)} characters")
    return tally


def check_claims(sightings: Iterable[Sighting], ended: frozenset[str] | set[str]) -> Tally:
    """Check that each attempt of a process belonged to one worker, attempts never went back, and an `ended`
    state was final."""
    tally = Tally("claims")
    workers: dict[tuple[str, int], str] = {}
    last: dict[str, Sighting] = {}
    for sighting in sightings:
        process, attempt, worker, state = sighting
        before = last.setdefault(process, sighting)
        if attempt < before.attempt:
            tally.note(f"{process} went back from attempt {before.attempt} to {attempt}")
        if before.state in ended and state != before.state:
            tally.note(f"{process} was {before.state} and then {state}")
        if worker and state == "running":
            holder = workers.setdefault((process, attempt), worker)
            if holder != worker:
                tally.note(f"{holder} and {worker} both held attempt {attempt} of {process}")
        last[process] = sighting
    tally.outcomes["acknowledged"] = len(workers)
    return tally


def check_exports(operations: Sequence[Operation]) -> Tally:
    """Check exports, whose `value` is what was to be in the file and `expected` what was found there
    afterwards ("" if there was no file): acknowledged, the one; otherwise that, or nothing."""
    tally = Tally("exports", Counter(operation.outcome for operation in operations))
    for export in operations:
        if export.expected not in ("", export.value):
            tally.note(f"{export.subject} is neither whole nor absent ({export.outcome})")
        elif export.outcome == "acknowledged" and not export.expected:
            tally.note_lost(export.subject)
    return tally


def check_errors(operations: Sequence[Operation], documented: set[str]) -> Tally:
    """Check that each error that a client saw has a documented type."""
    tally = Tally("errors")
    for operation in operations:
        if operation.error and operation.error not in documented:
            tally.note(f"{operation.kind} of {operation.subject} raised {operation.error}")
    return tally


def table(tallies: Sequence[Tally]) -> str:
    """Return one line for each kind of operation."""
    rows: list[tuple[str, ...]] = [
        ("", "operations", "acknowledged", "unknown", "refused", "lost", "doubled")
    ]
    for tally in tallies:
        counts = [tally.outcomes[outcome] for outcome in ("acknowledged", "unknown", "refused")]
        rows.append((tally.kind, *map(str, (sum(counts), *counts, tally.lost, tally.doubled))))
    return "\n".join(f"{kind:12}" + "".join(f"{cell:>14}" for cell in cells) for kind, *cells in rows)
