"""Streams: one writer, and readers that read the stored text, wait for more, or follow."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fdstore.aio
from fdstore.client import Process, Store
from fdstore.errors import InvalidArgument, NotFound, PageOutOfRange, PositionOutOfRange, StreamClosed
from fdstore.store import following
from fdstore.wire.operation import Operation
from tests.on_redis.followers import Reader, key_of, stored
from tests.waiting import wait_until

PIECES = [
    *("\n", "\n\n", "a", "line\n", "longer than a page ", "b" * 30),
    *("漢字\n", "\r\n", "\N{GRINNING FACE}", "\0"),
]
pieces = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=25)


# --- what is stored


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
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


def test_a_stream_of_many_pages_has_the_same_index_as_create(proc: Process, execute: Any) -> None:
    text = "".join(f"{number}\n" if number % 7 else f"{number}" * 9 for number in range(4000))

    with proc.open_stream(page_size=20) as out:
        for start in range(0, len(text), 997):
            out.write(text[start : start + 997])
            out.flush()

    whole = proc.create(text, page_size=20)
    assert whole.pages > 3 * 256
    assert stored(execute, key_of(proc, out.fd)) == stored(execute, key_of(proc, whole.fd))


def test_a_text_longer_than_a_piece_is_split_without_loss(proc: Process, execute: Any) -> None:
    text = "漢字 and a line\n" * 30_000

    with proc.open_stream() as out:
        out.write(text)

    whole = proc.create(text)
    assert stored(execute, key_of(proc, out.fd)) == stored(execute, key_of(proc, whole.fd))


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

        wait_until(lambda: proc.stat(out.fd).chars == 5, 5)


@pytest.mark.parametrize("page_size", [0, -1, True, 1.5, "4"])
def test_an_invalid_page_size_is_refused_and_creates_nothing(proc: Process, page_size: Any) -> None:
    with pytest.raises(InvalidArgument, match="page_size"):
        proc.open_stream(page_size=page_size)

    assert proc.list() == []


@pytest.mark.parametrize("lease", [0, -1, True, float("nan"), float("inf"), "30", None])
def test_an_invalid_lease_is_refused(proc: Process, lease: Any) -> None:
    with pytest.raises(InvalidArgument, match="lease_s"):
        proc.open_stream(lease_s=lease)

    assert proc.list() == []


# --- reading what grows


def test_an_open_stream_can_be_read_at_any_moment_without_eof(proc: Process) -> None:
    with proc.open_stream(source="build", page_size=8) as out:
        out.write("one\ntwo\nth")
        out.flush()

        d = proc.stat(out.fd)
        first, last, everything = proc.read(1), proc.read(1, start=2), proc.read(1, read_all=True)
        line = proc.read(1, mode="line", start=3)

        assert (d.state, d.source, d.lines, d.exit_code) == ("open", "build", 3, None)
        assert (first.text, first.eof, first.state, first.truncated) == ("one\ntwo\n", False, "open", False)
        assert (last.text, last.eof, last.truncated) == ("th", False, True)
        assert (everything.text, everything.page, everything.eof) == ("one\ntwo\nth", "all", False)
        assert (line.text, line.lines, line.chars, line.eof) == ("th", "3-3", "9-10", False)
        assert proc.read(1, mode="char", start=4, count=100).text == "\ntwo\nth"

        out.write("ree\n")
        out.flush()

        assert proc.read(1, start=2).text == "three\n"


def test_a_range_is_correct_while_the_last_page_is_being_split(proc: Process, store: Store) -> None:
    out = proc.open_stream(page_size=8)
    out.write("one\ntwo\nthr\nx")
    out.flush()
    reading = following.read_whole(proc.handle, out.fd, None, None, 0.0)
    taken = False

    def interfere() -> Operation[Any]:
        nonlocal taken
        reply = None
        while True:
            try:
                request = reading.send(reply)
            except StopIteration as done:
                return done.value
            reply = yield request
            if not taken:
                taken = True
                # the page "thr\nx" becomes "thr\n", and another one begins with x
                out.write("yz and more\n")
                out.flush()

    found = store.run(interfere())

    assert found.text == "one\ntwo\nthr\nx"
    assert (found.total_chars, found.pages) == (13, 2)
    out.end()


@pytest.mark.parametrize(("mode", "count"), [("page", 3), ("line", 3), ("char", 12)])
def test_ranges_extracts_exports_and_searches_see_a_snapshot(
    proc: Process, tmp_path: Any, mode: Any, count: int
) -> None:
    with proc.open_stream(page_size=4) as out:
        out.write("one\ntwo\nth")
        out.flush()

        assert proc.read(out.fd, mode=mode, count=count).text == "one\ntwo\nth"
        assert proc.read(proc.extract(out.fd).fd, read_all=True).text == "one\ntwo\nth"
        assert [hit.line for hit in proc.search(out.fd, "t").hits] == [2, 3]
        proc.export(out.fd, tmp_path / "out")
        assert (tmp_path / "out").read_text() == "one\ntwo\nth"


def test_a_waiting_read_returns_the_page_once_it_is_complete(proc: Process) -> None:
    out = proc.open_stream(page_size=8)
    out.write("one\n")
    out.flush()
    found: list[Any] = []
    waiting = threading.Thread(target=lambda: found.append(proc.read(out.fd, wait=20.0)))
    waiting.start()

    out.write("two\nthree\n")
    out.flush()
    waiting.join()

    assert (found[0].text, found[0].eof, found[0].state) == ("one\ntwo\n", False, "open")
    out.end()


def test_a_waiting_read_returns_the_last_page_when_the_stream_ends(proc: Process) -> None:
    out = proc.open_stream()
    found: list[Any] = []
    waiting = threading.Thread(target=lambda: found.append(proc.read(out.fd, wait=20.0)))
    waiting.start()

    out.write("one\n")
    out.end(2)
    waiting.join()

    assert (found[0].text, found[0].eof, found[0].exit_code) == ("one\n", True, 2)


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ({"start": 1}, "one\n"),
        ({"mode": "line", "start": 1}, "one\n"),
        ({"mode": "line", "start": 2, "count": 2}, "two\nthr"),
        ({"mode": "char", "start": 2, "count": 100}, "ne\ntwo\nthr"),
        ({"read_all": True}, "one\ntwo\nthr"),
    ],
)
def test_a_waiting_read_returns_the_available_text_at_its_timeout(
    proc: Process, part: Any, text: str
) -> None:
    with proc.open_stream(page_size=4) as out:
        out.write("one\ntwo\nthr")
        out.flush()

        found = proc.read(out.fd, **part, wait=0.05)

        assert (found.text, found.eof) == (text, False)


@pytest.mark.parametrize(
    "part", [{"start": 2}, {"mode": "line", "start": 1, "count": 2}, {"mode": "char", "count": 11}]
)
def test_a_read_of_a_complete_page_does_not_wait(proc: Process, part: Any) -> None:
    with proc.open_stream(page_size=4) as out:
        out.write("one\ntwo\nthr")
        out.flush()
        start = time.monotonic()

        proc.read(out.fd, **part, wait=30)

        assert time.monotonic() - start < 5


def test_waiting_too_long_for_a_page_raises_the_error_for_a_missing_page(proc: Process) -> None:
    with proc.open_stream() as out:
        with pytest.raises(PageOutOfRange):
            proc.read(out.fd, start=2, wait=0.05)
        with pytest.raises(PositionOutOfRange):
            proc.read(out.fd, mode="line", start=2, wait=0.05)


@pytest.mark.parametrize("wait", [-1, True, float("nan"), float("inf"), 2**60, "1", None])
def test_an_invalid_wait_is_refused(proc: Process, wait: Any) -> None:
    proc.create("x")

    with pytest.raises(InvalidArgument, match="wait"):
        proc.read("fd:1", wait=wait)


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


def test_followers_get_text_before_the_stream_ends(proc: Process) -> None:
    with proc.open_stream() as out:
        reader = Reader(proc, out.fd)

        out.write("one\n")
        reader.wait_for("one\n")
        out.write("tw")
        reader.wait_for("one\ntw")

    assert reader.done() == "one\ntw"


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


def test_the_awaitable_api_writes_follows_and_waits(redis_url: str) -> None:
    text = "".join(f"line {number} 漢字\n" for number in range(5000))

    async def run() -> None:
        async with await fdstore.aio.connect(redis_url) as store:
            proc = await store.process("triage")
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

    asyncio.run(run())


def test_the_awaitable_appender_stores_automatically_and_renews_its_lease(redis_url: str) -> None:
    async def run() -> None:
        async with await fdstore.aio.connect(redis_url) as store:
            proc = await store.process("triage")
            async with await proc.open_stream(lease_s=0.3) as out:
                await out.write("soon\n")

                assert (await proc.read(out.fd, mode="line", wait=5)).text == "soon\n"
                found = await proc.read(out.fd, start=1, wait=1.0)
                assert (found.text, found.state) == ("soon\n", "open")
            assert (await proc.stat(out.fd)).state == "sealed"

    asyncio.run(run())


def test_a_cancelled_task_breaks_its_stream(redis_url: str) -> None:
    async def run() -> None:
        async with await fdstore.aio.connect(redis_url) as store:
            proc = await store.process("triage")
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

    asyncio.run(run())


def test_a_follower_that_is_cancelled_leaves_the_store_usable(redis_url: str) -> None:
    async def run() -> None:
        async with await fdstore.aio.connect(redis_url) as store:
            proc = await store.process("triage")
            async with await proc.open_stream() as out:
                following = anext(proc.follow(out.fd))
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(following, 0.1)

                await out.write("text")
            assert (await proc.read(out.fd)).text == "text"

    asyncio.run(run())
