"""Reading: a page, lines, everything.

A page is compared with redis-py's HGET of the same field, and so of the same bytes; an awaited one with an
awaited HGET; lines with GETRANGE of the same bytes of one string; everything with HGETs of 1 MB fields, the
layout without paging.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from itertools import cycle

import redis.asyncio

import fdstore.aio
from fdstore.bench import texts
from fdstore.bench.measuring import BenchRow, Lap, at_most, lap
from fdstore.bench.stage import GB, MB, BenchStage, format_size, keys_of
from fdstore.client import Process

PLACES = 97
"""Number of different positions, spread over the content, that are read in turn."""


def rows(stage: BenchStage) -> Iterator[BenchRow]:
    yield from pages(stage)
    yield awaited_page(stage)
    yield from lines(stage)
    yield from everything(stage)


def pages(stage: BenchStage) -> Iterator[BenchRow]:
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


def page(stage: BenchStage, proc: Process, content: str) -> Iterator[BenchRow]:
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
    warm = lap(lambda: proc.read("fd:1", start=next(ours)))
    yield stage.compare(f"page, warm, {content}", at_most(0.8), warm, hget)
    yield stage.compare(f"page, cold, {content}", at_most(1.5), lap(cold), hget)
    proc.read("fd:1")
    yield stage.round_trips(f"page, {content}", 1, lambda: proc.read("fd:1"), cold)


def largest_against_small(stage: BenchStage) -> BenchRow:
    """Compare a page read in 1 GB with one in 1 MB."""
    with stage.process() as small, stage.process() as large:
        readers = []
        for proc, size in ((large, GB), (small, MB)):
            proc.ingest(texts.log_file(size))
            places = spread(proc.stat("fd:1").pages)
            for number in places:
                proc.read("fd:1", start=number)
            readers.append(reader(proc, cycle(places)))
        return stage.compare("page, warm, 1 GB against 1 MB", at_most(1.3), *readers)


def reader(proc: Process, numbers: Iterator[int]) -> Lap:
    return lap(lambda: proc.read("fd:1", start=next(numbers)))


def awaited_page(stage: BenchStage) -> BenchRow:
    """Measure awaited reads of a page of a descriptor that the client knows."""
    with stage.process() as proc, asyncio.Runner() as loop:
        proc.create(texts.of_kind(texts.LOGS, MB))
        key = keys_of(proc, 1).pages
        pages = proc.stat("fd:1").pages
        store = loop.run(fdstore.aio.connect(stage.url, stage.store.prefix))
        client = redis.asyncio.Redis.from_url(stage.url)
        awaiting = loop.run(store.process(proc.id))
        ours, theirs = cycle(range(1, pages + 1)), cycle(range(1, pages + 1))

        def awaited_lap(work: Callable[[], Awaitable[object]]) -> Lap:
            async def run(times: int) -> float:
                start = time.perf_counter()
                for _ in range(times):
                    await work()
                return time.perf_counter() - start

            return lambda times: loop.run(run(times))

        read = awaited_lap(lambda: awaiting.read("fd:1", start=next(ours)))
        hget = awaited_lap(lambda: client.hget(key, str(next(theirs))))
        try:
            read(pages)  # the index is known from here on
            return stage.compare("page, warm, 1 MB logs, awaited", at_most(1.1), read, hget)
        finally:
            loop.run(client.aclose())
            loop.run(store.close())


def lines(stage: BenchStage) -> Iterator[BenchRow]:
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
            yield stage.compare(f"{count} lines, warm, 10 MB logs", at_most(bar), lap(mine), lap(theirs))
    stage.plain.delete("whole")


def everything(stage: BenchStage) -> Iterator[BenchRow]:
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

            case = f"read_all, {format_size(size)} logs"
            yield stage.compare(case, at_most(bar), lap(mine), lap(theirs))
        stage.plain.delete("blocks")


def spread(total: int) -> list[int]:
    """Return numbers spread over 1 to `total`, not in order.

    >>> spread(3), len(spread(10**6))
    ([1, 2, 3], 97)
    """
    if total <= PLACES:
        return list(range(1, total + 1))
    return [1 + number * 61 % PLACES * (total - 1) // (PLACES - 1) for number in range(PLACES)]
