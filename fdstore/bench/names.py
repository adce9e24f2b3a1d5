"""Names: finding, listing and replacing, beside few and beside ten thousand others.

Finding is compared with HGETALL of a hash of as many fields as a descriptor has; replacing a text of 2 KB
with HSET of it. What does not grow is compared with itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle

from fdstore.bench import texts
from fdstore.bench.measuring import Row, at_most, lap, row, slower, take_turns
from fdstore.bench.stage import Stage
from fdstore.client import Process

OTHERS = 10_000
LISTED = 20


def rows(stage: Stage) -> Iterator[Row]:
    with stage.process() as few, stage.process() as many:
        for number in range(LISTED):
            few.put(f"mine/{number:02}", "x")
            many.put(f"mine/{number:02}", "x")
        for number in range(OTHERS // 10 if stage.quick else OTHERS):
            many.put(f"other/{number}", "x")
        yield from finding(stage, few, many)
        yield from listing(stage, few, many)
    with stage.process() as proc:
        yield replacing(stage, proc)


def finding(stage: Stage, few: Process, many: Process) -> Iterator[Row]:
    """Measure `find` of a name."""
    record = dict.fromkeys(("fd", "state", "chars", "bytes", "lines", "pages", "source"), "value")
    stage.plain.hset("record", items=[part for field in record.items() for part in field])
    keys = [f"mine/{number:02}" for number in range(LISTED)]
    ours, theirs = cycle(keys), cycle(keys)

    rounds = take_turns(
        [
            lap(lambda: many.find(next(ours))),
            lap(lambda: few.find(next(theirs))),
            lap(lambda: stage.plain.hgetall("record")),
        ],
        stage.budget_s,
    )
    stage.plain.delete("record")
    yield slower("find, beside 10 000 names", at_most(3.0), rounds.of(0, 2))
    yield slower("find, beside 10 000 names against 20", at_most(1.3), rounds.of(0, 1))
    yield row("find: round trips", at_most(1, "trips"), stage.trips(lambda: many.find("mine/01")))


def listing(stage: Stage, few: Process, many: Process) -> Iterator[Row]:
    """Measure `list(prefix=...)` of 20 names."""
    rounds = take_turns(
        [lap(lambda: many.list(prefix="mine/")), lap(lambda: few.list(prefix="mine/"))], stage.budget_s
    )
    yield slower("list 20 names, beside 10 000 against 20", at_most(1.3), rounds)
    trips = stage.trips(lambda: many.list(prefix="mine/"))
    yield row("list 20 names: round trips", at_most(1, "trips"), trips)


def replacing(stage: Stage, proc: Process) -> Row:
    """Measure `put` of 2 KB under a name that means another text."""
    text = texts.of_kind(texts.LOGS, 2000)
    rounds = take_turns(
        [lap(lambda: proc.put("plan", text)), lap(lambda: stage.plain.hset("plan", "text", text))],
        stage.budget_s,
    )
    stage.plain.delete("plan")
    return slower("put, 2 KB, replaces", at_most(3.5), rounds)
