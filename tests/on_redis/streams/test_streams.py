"""Streams: what is stored while they are written, and their followers, blocking and awaited."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fdstore.aio
from fdstore.client import Process, Store
from fdstore.errors import (
    InvalidArgument,
    NotFound,
    PositionOutOfRange,
    StoreLostData,
    StreamBroken,
    StreamClosed,
)
from tests.on_redis.followers import Reader, key_of, stored
from tests.properties import examples
from tests.waiting import PATIENCE_S, stretched, wait_until

PIECES = [
    *("\n", "\n\n", "a", "line\n", "longer than a page ", "b" * 30),
    *("漢字\n", "\r\n", "\N{GRINNING FACE}", "\0"),
]
pieces = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=25)


# --- what is stored


@settings(
    max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(pieces=pieces, size=st.integers(1, 12) | st.just(4000), data=st.data())
def test_an_open_stream_always_equals_create_with_its_text(
    proc: Process, execute: Any, pieces: list[str], size: int, data: st.DataObject
) -> None:
    out = proc.open_stream(page_size=size)
    written = ""

    def check() -> None:
        whole = proc.create(written, page_size=size)
        assert stored(execute, key_of(proc, out.fd)) == stored(execute, key_of(proc, whole.fd))
        proc.close(whole.fd)

    for piece in pieces:
        out.write(piece)
        written += piece
        if data.draw(st.booleans(), "flush"):
            out.flush()
            check()
    out.end()

    check()
    assert proc.read(out.fd, read_all=True).text == written
    proc.close(out.fd)


def test_a_page_size_of_one_stores_thousands_of_pages_in_one_write(proc: Process) -> None:
    with proc.open_stream(page_size=1) as out:
        out.write("ab\n" * 4000)

    assert proc.stat(out.fd).pages == 12_000
    assert proc.read(out.fd, start=12_000).text == "\n"


def test_a_stream_ended_without_text_is_an_empty_content(proc: Process) -> None:
    proc.open_stream().end()

    d = proc.stat("fd:1")
    found = proc.read("fd:1")

    assert (d.state, d.chars, d.bytes, d.lines, d.pages, d.exit_code) == ("sealed", 0, 0, 0, 1, 0)
    assert (found.text, found.lines, found.eof, found.exit_code) == ("", "0-0", True, 0)
    assert list(proc.follow("fd:1")) == []


def test_written_text_is_stored_soon_without_a_flush(proc: Process) -> None:
    with proc.open_stream() as out:
        out.write("hello")

        wait_until(lambda: proc.stat(out.fd).chars == 5)


@pytest.mark.parametrize("page_size", [0, True, 1.5])
def test_an_invalid_page_size_is_refused_and_creates_nothing(proc: Process, page_size: Any) -> None:
    with pytest.raises(InvalidArgument, match="page_size"):
        proc.open_stream(page_size=page_size)

    assert proc.list() == []


@pytest.mark.parametrize("lease", [0, -1, True, float("nan"), float("inf"), "30", None])
def test_an_invalid_lease_is_refused(proc: Process, lease: Any) -> None:
    with pytest.raises(InvalidArgument, match="lease_s"):
        proc.open_stream(lease_s=lease)


# --- following


def test_followers_that_start_early_late_or_in_the_middle_read_the_same(proc: Process) -> None:
    lines = [f"line {number} \N{GRINNING FACE}\n" for number in range(400)]
    text = "".join(lines)
    out = proc.open_stream(page_size=50)
    early = Reader(proc, out.fd)
    ahead = Reader(proc, out.fd, start=1000)

    for line in lines[:200]:
        out.write(line)
    out.flush()
    middle = Reader(proc, out.fd)
    from_middle = Reader(proc, out.fd, start=77)
    for line in lines[200:]:
        out.write(line)
    out.end()

    assert [early.done(), middle.done(), Reader(proc, out.fd).done()] == [text] * 3
    assert from_middle.done() == text[76:]
    assert ahead.done() == text[999:]
    assert early.error is middle.error is ahead.error is None


def test_fifty_concurrent_followers_read_the_same(store: Store, proc: Process) -> None:
    text = "".join(f"a line of some length, number {number}\n" for number in range(3000))
    out = proc.open_stream()
    child = store.process(proc.child([out.fd]).id)
    readers = [Reader(proc if i % 2 else child, out.fd) for i in range(50)]

    for start in range(0, len(text), 5000):
        out.write(text[start : start + 5000])
        out.flush()
    out.end()

    assert {reader.done() for reader in readers} == {text}


def test_a_sealed_content_is_followed_like_a_stream(proc: Process) -> None:
    text = "0123456789\n" * 200_000
    proc.create(text)

    pieces = list(proc.follow("fd:1", start=5))

    assert "".join(pieces) == text[4:]
    assert len(pieces) > 1
    assert list(proc.follow("fd:1", start=len(text) + 1)) == []


def test_following_beyond_the_end_is_an_error_that_states_the_length(proc: Process) -> None:
    out = proc.open_stream()
    reader = Reader(proc, out.fd, start=9)

    out.write("one\n")
    out.end()
    reader.done()

    assert isinstance(reader.error, PositionOutOfRange)
    assert "characters 1-4" in str(reader.error)


@pytest.mark.parametrize("start", [0, -1, True, 1.0, 2**60])
def test_an_invalid_start_is_refused_before_anything_is_read(proc: Process, start: Any) -> None:
    with pytest.raises(InvalidArgument):
        proc.follow("fd:1", start)


def test_following_an_unknown_descriptor_names_the_existing_ones(proc: Process) -> None:
    proc.create("x")

    with pytest.raises(NotFound, match="fd:1"):
        next(proc.follow("fd:2"))


# --- awaited


def test_the_awaitable_api_writes_follows_and_waits(awaited: Any) -> None:
    text = "".join(f"line {number} 漢字\n" for number in range(5000))

    async def run(proc: fdstore.aio.Process) -> None:
        out = await proc.open_stream(source="build")

        async def follow(start: int) -> str:
            return "".join([piece async for piece in proc.follow(out.fd, start)])

        followers = [asyncio.create_task(follow(start)) for start in (1, 1, 1000)]
        whole = asyncio.create_task(proc.read(out.fd, read_all=True, wait=30))
        for start in range(0, len(text), 777):
            await out.write(text[start : start + 777])
            if not start % 5:
                await asyncio.sleep(0)
        await out.end(1)
        await out.end(2)

        assert await asyncio.gather(*followers) == [text, text, text[999:]]
        assert ((await whole).text, (await whole).exit_code) == (text, 1)
        with pytest.raises(StreamClosed):
            await out.write("late")

    awaited(run)


def test_the_awaitable_appender_stores_automatically_and_renews_its_lease(awaited: Any) -> None:
    async def run(proc: fdstore.aio.Process) -> None:
        lease_s = stretched(0.3)
        async with await proc.open_stream(lease_s=lease_s) as out:
            await out.write("soon\n")

            assert (await proc.read(out.fd, mode="line", wait=5)).text == "soon\n"
            found = await proc.read(out.fd, start=1, wait=3 * lease_s)
            assert (found.text, found.state) == ("soon\n", "open")
        assert (await proc.stat(out.fd)).state == "sealed"

    awaited(run)


def test_a_cancelled_task_breaks_its_stream(awaited: Any) -> None:
    async def run(proc: fdstore.aio.Process) -> None:
        writing = asyncio.Event()

        async def write() -> None:
            async with await proc.open_stream() as out:
                await out.write("half")
                writing.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(write())
        await writing.wait()
        task.cancel()
        await asyncio.wait([task])

        assert task.cancelled()
        d = await proc.stat("fd:1")
        assert (d.state, d.reason, d.chars) == ("broken", "CancelledError", 4)

    awaited(run)


def test_a_follower_that_is_cancelled_leaves_the_store_usable(awaited: Any) -> None:
    async def run(proc: fdstore.aio.Process) -> None:
        async with await proc.open_stream() as out:
            following = anext(proc.follow(out.fd))
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(following, 0.1)

            await out.write("text")
        assert (await proc.read(out.fd)).text == "text"

    awaited(run)


@pytest.mark.parametrize("pieces", [("one\n", "two\n"), (b"\0one", b"\0two")], ids=["text", "bytes"])
def test_a_follower_goes_on_after_a_timeout(awaited: Any, pieces: tuple[Any, Any]) -> None:
    async def run(proc: fdstore.aio.Process) -> None:
        async with await proc.open_stream() as out:
            follow = proc.follow if isinstance(pieces[0], str) else proc.follow_bytes
            following = follow(out.fd)
            got = []
            for piece in pieces:
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(anext(following), 0.1)
                await out.write(piece)
                await out.flush()
                got.append(await asyncio.wait_for(anext(following), PATIENCE_S))
            await out.end()

            assert (tuple(got), [left async for left in following]) == (pieces, [])
            with pytest.raises(StopAsyncIteration):
                await anext(following)

    awaited(run)


def test_awaited_followers_of_one_iterator_share_its_pieces(awaited: Any) -> None:
    async def run(proc: fdstore.aio.Process) -> None:
        async with await proc.open_stream() as out:
            following = proc.follow(out.fd)
            first, second = (asyncio.ensure_future(anext(following)) for _ in range(2))
            await out.write("one\n")
            assert await asyncio.wait_for(first, PATIENCE_S) == "one\n"
            await out.write("two\n")

            assert await asyncio.wait_for(second, PATIENCE_S) == "two\n"

    awaited(run)


def test_a_follower_goes_on_after_an_error(proc: Process, execute: Any) -> None:
    with proc.open_stream(page_size=20) as out:
        out.write("x" * 100)
        out.flush()
        following = proc.follow(out.fd)
        got = [next(following)]
        out.write("y" * 100)
        out.flush()
        pages = f"{key_of(proc, out.fd)}:pages"
        execute("RENAME", pages, "{triage}away")
        for _ in range(2):
            with pytest.raises(StoreLostData):
                next(following)
        execute("RENAME", "{triage}away", pages)

    assert "".join([*got, *following]) == "x" * 100 + "y" * 100


def test_a_broken_stream_stays_broken_for_its_follower(proc: Process) -> None:
    out = proc.open_stream()
    out.write("half")
    out.fail("the disk is full")
    following = proc.follow(out.fd)
    assert next(following) == "half"

    for _ in range(3):
        with pytest.raises(StreamBroken, match="the disk is full"):
            next(following)


def test_a_follower_goes_on_after_it_was_interrupted(proc: Process) -> None:
    """Ctrl-C while it waits, as in a notebook."""
    main = threading.main_thread().ident
    assert main is not None

    def interrupt() -> None:
        try:
            wait_until(lambda: sys._current_frames()[main].f_code.co_name == "receive", what="a wait")
        finally:
            signal.pthread_kill(main, signal.SIGINT)

    with proc.open_stream() as out:
        following = proc.follow(out.fd)
        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            next(following)
        thread.join()
        out.write("text")

    assert "".join(following) == "text"
