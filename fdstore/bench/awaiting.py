"""Awaited reads, held against redis-py's awaited HGET of the same field."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from itertools import cycle

import redis.asyncio

import fdstore.aio
from fdstore.bench import texts
from fdstore.bench.measuring import Lap, Row, at_most, slower, take_turns
from fdstore.bench.stage import MB, Stage, keys_of


def rows(stage: Stage) -> Iterator[Row]:
    """A page of a descriptor that the client knows."""
    with stage.process() as proc, asyncio.Runner() as loop:
        proc.create(texts.of_kind(texts.LOGS, MB))
        key = keys_of(proc, 1).pages
        pages = proc.stat("fd:1").pages
        store = loop.run(fdstore.aio.connect(stage.url, stage.store.prefix))
        client = redis.asyncio.Redis.from_url(stage.url)
        awaiting = loop.run(store.process(proc.id))
        ours, theirs = cycle(range(1, pages + 1)), cycle(range(1, pages + 1))

        async def read() -> object:
            return await awaiting.read("fd:1", start=next(ours))

        async def hget() -> object:
            return await client.hget(key, str(next(theirs)))

        try:
            for _ in range(pages):  # the index is known from here on
                loop.run(read())
            rounds = take_turns([lap(loop, read), lap(loop, hget)], stage.budget_s)
            yield slower("page, warm, 1 MB logs, awaited", at_most(1.1), rounds)
        finally:
            loop.run(client.aclose())
            loop.run(store.close())


def lap(loop: asyncio.Runner, work: Callable[[], Awaitable[object]]) -> Lap:
    """Return a lap that awaits `work` so many times."""

    async def run(times: int) -> float:
        start = time.perf_counter()
        for _ in range(times):
            await work()
        return time.perf_counter() - start

    return lambda times: loop.run(run(times))
