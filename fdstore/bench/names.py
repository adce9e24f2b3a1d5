"""Names: finding, listing and replacing, beside few and beside ten thousand others.

Finding is compared with HGETALL of a hash of as many fields as a descriptor has; replacing a text of 2 KB
with HSET of it. What does not grow is compared with itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import cycle

from fdstore.bench import texts
from fdstore.bench.measuring import BenchRow, at_most, lap, slower, take_turns
from fdstore.bench.stage import BenchStage
from fdstore.client import Process

OTHERS = 10_000
LISTED = 20


def rows(stage: BenchStage) -> Iterator[BenchRow]:
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


def finding(stage: BenchStage, few: Process, many: Process) -> Iterator[BenchRow]:
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
    yield stage.round_trips("find", 1, lambda: many.find("mine/01"))


def listing(stage: BenchStage, few: Process, many: Process) -> Iterator[BenchRow]:
    """Measure `list(prefix=...)` of 20 names."""
    of_many, of_few = (partial(proc.list, prefix="mine/") for proc in (many, few))
    case = "list 20 names, beside 10 000 against 20"
    yield stage.compare(case, at_most(1.3), lap(of_many), lap(of_few))
    yield stage.round_trips("list 20 names", 1, of_many)


def replacing(stage: BenchStage, proc: Process) -> BenchRow:
    """Measure `put` of 2 KB under a name that means another text."""
    text = texts.of_kind(texts.LOGS, 2000)
    put, hset = lap(lambda: proc.put("plan", text)), lap(lambda: stage.plain.hset("plan", "text", text))
    measured = stage.compare("put, 2 KB, replaces", at_most(3.5), put, hset)
    stage.plain.delete("plan")
    return measured
