"""Reading: a page, lines, everything.

A page is compared with redis-py's HGET of the same field, and so of the same bytes; lines with GETRANGE of
the same bytes of one string; everything with HGETs of 1 MB fields, the layout without paging.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle

from fdstore.bench import awaiting, texts
from fdstore.bench.measuring import Lap, Row, at_most, lap, row, slower, take_turns
from fdstore.bench.stage import GB, MB, Stage, format_size, keys_of
from fdstore.client import Process

PLACES = 97
"""Number of different positions, spread over the content, that are read in turn."""


def rows(stage: Stage) -> Iterator[Row]:
    yield from pages(stage)
    yield from awaiting.rows(stage)
    yield from lines(stage)
    yield from everything(stage)


def pages(stage: Stage) -> Iterator[Row]:
    """Measure pages of contents of every size and kind, with a warm and a cold client cache."""
    for kind in (texts.SOURCE, texts.JSON, texts.CJK):
        with stage.process() as proc:
            proc.create(texts.of_kind(kind, MB))
            yield from page(stage, proc, f"{format_size(MB)} {kind}")
    for size in stage.sizes:
        with stage.process() as proc:
            proc.ingest(texts.log_file(size))
            yield from page(stage, proc, f"{format_size(size)} {texts.LOGS}")
    if not stage.quick:
        yield largest_against_small(stage)


def page(stage: Stage, proc: Process, content: str) -> Iterator[Row]:
    """Measure one content: warm and cold reads, and their round trips."""
    places = spread(proc.stat("fd:1").pages)
    key = keys_of(proc, 1).pages
    ours, colder, theirs = cycle(places), cycle(places), cycle(places)

    def cold() -> object:
        proc.handle.forget("fd:1")
        return proc.read("fd:1", start=next(colder))

    for number in places:  # cache the index
        proc.read("fd:1", start=number)
    hget = lap(lambda: stage.plain.hget(key, str(next(theirs))))
    warm = take_turns([lap(lambda: proc.read("fd:1", start=next(ours))), hget], stage.budget_s)
    yield slower(f"page, warm, {content}", at_most(0.8), warm)
    yield slower(f"page, cold, {content}", at_most(1.5), take_turns([lap(cold), hget], stage.budget_s))
    proc.read("fd:1")
    trips = max(stage.trips(lambda: proc.read("fd:1")), stage.trips(cold))
    yield row(f"page, {content}: round trips", at_most(1, "trips"), trips)


def largest_against_small(stage: Stage) -> Row:
    """Compare a page read in 1 GB with one in 1 MB."""
    with stage.process() as small, stage.process() as large:
        readers = []
        for proc, size in ((large, GB), (small, MB)):
            proc.ingest(texts.log_file(size))
            places = spread(proc.stat("fd:1").pages)
            for number in places:
                proc.read("fd:1", start=number)
            readers.append(reader(proc, cycle(places)))
        return slower("page, warm, 1 GB against 1 MB", at_most(1.3), take_turns(readers, stage.budget_s))


def reader(proc: Process, numbers: Iterator[int]) -> Lap:
    return lap(lambda: proc.read("fd:1", start=next(numbers)))


def lines(stage: Stage) -> Iterator[Row]:
    """Measure reads of lines all over 10 MB of logs, with a warm index."""
    text = texts.of_kind(texts.LOGS, 10 * MB)
    starts = [0, *(i + 1 for i, char in enumerate(text) if char == "\n")]
    stage.plain.set("whole", text)
    with stage.process() as proc:
        proc.create(text)
        for count, bar in ((20, 1.5), (300, 1.6)):
            numbers = spread(len(starts) - count - 1)
            ranges = cycle([(starts[n - 1], starts[n - 1 + count] - 1) for n in numbers])
            ours = cycle(numbers)

            def mine(count: int = count, ours: Iterator[int] = ours) -> object:
                return proc.read("fd:1", mode="line", start=next(ours), count=count)

            def theirs(ranges: Iterator[tuple[int, int]] = ranges) -> object:
                return stage.plain.getrange("whole", *next(ranges))

            for _ in numbers:
                mine()
            rounds = take_turns([lap(mine), lap(theirs)], stage.budget_s)
            yield slower(f"{count} lines, warm, 10 MB logs", at_most(bar), rounds)
    stage.plain.delete("whole")


def everything(stage: Stage) -> Iterator[Row]:
    """Measure reading a whole content as one text."""
    for size, bar in ((10 * MB, 2.1), (100 * MB, 2.5)):
        if stage.quick and size > 10 * MB:
            continue
        fields = range(size // MB)
        block = texts.of_kind(texts.LOGS, MB)
        for field in fields:
            stage.plain.hset("blocks", str(field), block)
        with stage.process() as proc:
            proc.ingest(texts.log_file(size))

            def mine() -> object:
                return proc.read("fd:1", read_all=True)

            def theirs(fields: range = fields) -> object:
                return [stage.plain.hget("blocks", str(field)) for field in fields]

            rounds = take_turns([lap(mine), lap(theirs)], stage.budget_s)
            yield slower(f"read_all, {format_size(size)} logs", at_most(bar), rounds)
        stage.plain.delete("blocks")


def spread(total: int) -> list[int]:
    """Return numbers spread over 1 to `total`, not in order.

    >>> spread(3), len(spread(10**6))
    ([1, 2, 3], 97)
    """
    if total <= PLACES:
        return list(range(1, total + 1))
    return [1 + number * 61 % PLACES * (total - 1) // (PLACES - 1) for number in range(PLACES)]
