"""Followers of a stream in the browser: what they are sent, and what they cost."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec

import fdstore.aio
from fdstore.aio import StreamWriter
from fdstore.inspector.web.descriptor import follow
from fdstore.inspector.web.descriptor_data import Reader
from fdstore.inspector.web.descriptor_query import PageQuery
from fdstore.inspector.web.inspector import Inspector, Options

Test = Callable[[StreamWriter, AsyncIterator[bytes]], Awaitable[None]]


def with_follower(redis_url: str, test: Test, page_size: int = 4000) -> None:
    """Run a test with a stream and the events of its follower."""

    async def main() -> None:
        async with (
            await fdstore.aio.connect(redis_url) as store,
            await fdstore.aio.connect(redis_url, looking=True) as looking,
        ):
            writer = await (await store.process("triage")).open_stream(page_size=page_size)
            reader = await Reader.open(looking, "triage", writer.fd)
            await test(writer, follow(Inspector(looking, Options()), reader, PageQuery()))
            await writer.end()

    asyncio.run(main())


async def next_event(events: AsyncIterator[bytes]) -> tuple[str, Any]:
    async for each in events:
        if found := re.match(rb"event: (\w+)\ndata: (.*)\n\n", each, re.DOTALL):
            return found[1].decode(), msgspec.json.decode(found[2])
    raise AssertionError("no more events")


def shown(part: Any) -> str:
    rows = re.findall(r'<span class="tx">([^<]*)</span>', "".join(page["html"] for page in part["items"]))
    return "" if rows == [""] else "".join(f"{row}\n" for row in rows)


def test_a_follower_gets_what_is_there_then_each_change_then_the_end(redis_url: str) -> None:
    async def test(writer: StreamWriter, events: AsyncIterator[bytes]) -> None:
        assert shown((await next_event(events))[1]) == ""
        for line in ("one\n", "two\n"):
            await writer.write(line)
            await writer.flush()
            name, part = await next_event(events)
        assert (name, shown(part), part["descriptor"]["lines"]) == ("part", "one\ntwo\n", 2)
        await writer.end(exit_code=3)
        assert (await next_event(events))[1]["descriptor"]["state"] == "sealed"
        name, ended = await next_event(events)
        assert (name, ended["exit_code"]) == ("end", 3)

    with_follower(redis_url, test)


def test_of_a_fast_stream_its_end_is_sent_not_all_of_its_text(redis_url: str) -> None:
    async def test(writer: StreamWriter, events: AsyncIterator[bytes]) -> None:
        await next_event(events)
        await writer.write("a line of thirty characters...\n" * 60_000)
        await writer.flush()
        while True:
            _, part = await next_event(events)
            assert len(shown(part)) <= 30_000
            if part["descriptor"]["lines"] == 60_000:
                break
        assert part["items"][-1]["page"] == part["descriptor"]["pages"]

    with_follower(redis_url, test)


def test_a_follower_waits_once_in_redis_and_no_longer_when_the_browser_has_gone(
    redis_url: str, execute: Any
) -> None:
    def blocked() -> int:
        found = re.search(rb"blocked_clients:(\d+)", execute("INFO", "clients"))
        return int(found[1]) if found else -1

    async def until(count: int) -> None:
        async with asyncio.timeout(20):
            while blocked() != count:
                await asyncio.sleep(0)

    async def test(writer: StreamWriter, events: AsyncIterator[bytes]) -> None:
        await next_event(events)
        waiting = asyncio.create_task(next_event(events))
        await until(1)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await until(0)

    with_follower(redis_url, test)


def test_a_stream_of_bytes_is_followed_as_a_dump(redis_url: str) -> None:
    async def test(writer: StreamWriter, events: AsyncIterator[bytes]) -> None:
        await next_event(events)
        await writer.write(b"\x89PNG" * 3000)
        await writer.flush()
        _, part = await next_event(events)
        rows = part["items"][-1]["html"]
        assert rows.endswith('<span class="asc">.PNG.PNG.PNG.PNG</span></div></div>')
        assert f'id="O{12_000 - 16}"' in rows

    with_follower(redis_url, test)
