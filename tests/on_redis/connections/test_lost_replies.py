"""Disconnects after a command was sent: the command takes effect exactly once."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import fdstore
import fdstore.aio
from fdstore.client import Process
from fdstore.errors import FDStoreError, Fenced, StoreUnavailable, UnknownOutcome
from fdstore.store.contents import contents
from fdstore.wire import retry
from fdstore.wire.operation import Disk, Operation, Receive, Send
from tests.chaos.proxy import Proxy
from tests.round_trips import Tally, tallied

LONG = "\n".join(map(str, range(700_000)))
PIECES = ["".join(map(f"{word} {{}}\n".format, range(60_000))) for word in ("one", "two", "three")]


@pytest.fixture
def proxy(redis_url: str) -> Iterator[Proxy]:
    with Proxy(redis_url) as made:
        yield made


@pytest.fixture
def lose_all(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """`lose_all()` loses all further replies, with a short deadline for retries."""

    def lose(marker: bytes = b"EVAL") -> None:
        monkeypatch.setattr(retry, "DEADLINE_S", 0.3)
        proxy.lose(10**6, marker)

    return lose


@pytest.fixture
def remote_process(proxy: Proxy) -> Iterator[Process]:
    """A process behind the proxy; Redis knows its scripts."""
    with fdstore.connect(proxy.url) as store:
        warm = store.process("warm")
        warm.create("x")
        warm.fork().end()
        warm.close("fd:1")
        yield store.process("triage")


@pytest.mark.parametrize("times", [1, 3])
def test_a_text_is_created_once_when_its_reply_is_lost(
    remote_process: Process, proxy: Proxy, times: int
) -> None:
    proxy.lose(times)

    made = remote_process.create("text")

    assert proxy.lost == times
    assert made.fd == "fd:1"
    assert [d.fd for d in remote_process.list()] == ["fd:1"]
    assert remote_process.read("fd:1").text == "text"
    assert remote_process.create("next").fd == "fd:2"


def test_a_large_create_survives_lost_replies(remote_process: Process, proxy: Proxy) -> None:
    proxy.lose(2, b"HSET")

    made = remote_process.ingest(io.BytesIO(LONG.encode()), source="big")

    assert proxy.lost == 2
    assert (made.fd, made.chars) == ("fd:1", len(LONG))
    assert remote_process.read("fd:1", read_all=True).text == LONG


@pytest.mark.thorough("many megabytes")
@pytest.mark.parametrize("times", [1, 2, 3, 5])
def test_a_long_piece_of_a_stream_whose_reply_is_lost_is_stored_once(
    remote_process: Process, proxy: Proxy, times: int
) -> None:
    with remote_process.open_stream() as out:
        for text in PIECES:
            out.write(text)
            out.flush()
            proxy.lose(times, b"EVAL")

    assert proxy.lost >= times
    assert remote_process.read(out.fd, read_all=True).text == "".join(PIECES)


async def test_an_awaitable_long_piece_is_stored_once_too(
    redis_url: str, proxy: Proxy, remote_process: Process
) -> None:

    async with await fdstore.aio.connect(proxy.url) as store:
        proc = await store.process("triage")
        async with await proc.open_stream() as out:
            for times, text in enumerate(PIECES, 1):
                proxy.lose(times, b"EVAL")
                await out.write(text)
                await out.flush()
        assert (await proc.read(out.fd, read_all=True)).text == "".join(PIECES)
    assert proxy.lost >= 6


def test_a_long_read_survives_lost_replies(remote_process: Process, proxy: Proxy) -> None:
    remote_process.create(LONG)
    proxy.lose(3, b"HMGET")

    assert remote_process.read("fd:1", read_all=True).text == LONG
    assert proxy.lost == 3


def echoes(proxy: Proxy) -> Operation[list[bytes]]:
    """Four requests are in flight when the connection is closed after the first reply."""
    yield Send([("ECHO", "a")], "lane")
    [first] = yield Receive("lane")
    yield Send([("ECHO", "b")], "lane")
    yield Disk(proxy.cut)
    for word in "cde":
        yield Send([("ECHO", word)], "lane")
    replies = [first]
    for _ in "bcde":
        replies += yield Receive("lane")
    return replies


def test_requests_get_their_own_replies_after_a_disconnect(remote_process: Process, proxy: Proxy) -> None:
    assert remote_process.store.run(echoes(proxy)) == [b"a", b"b", b"c", b"d", b"e"]


async def test_awaitable_requests_get_their_own_replies_after_a_disconnect(proxy: Proxy) -> None:
    async with await fdstore.aio.connect(proxy.url) as store:
        assert await store.run(echoes(proxy)) == [b"a", b"b", b"c", b"d", b"e"]


def test_a_child_is_created_once_when_its_reply_is_lost(remote_process: Process, proxy: Proxy) -> None:
    remote_process.create("x")
    proxy.lose(2)

    child = remote_process.child(share=["fd:1"])
    twin = remote_process.fork()

    assert (child.id, twin.id) == ("triage.1", "triage.2")
    assert len(remote_process.store.tree("triage").members) == 3


def test_a_close_succeeds_when_its_reply_is_lost(remote_process: Process, proxy: Proxy) -> None:
    remote_process.create("x")
    keeper = remote_process.fork()
    proxy.lose(1)

    remote_process.close("fd:1")

    assert proxy.lost == 1
    assert remote_process.list() == []
    assert keeper.read("fd:1").text == "x"


def test_an_end_is_counted_once_when_its_reply_is_lost(remote_process: Process, proxy: Proxy) -> None:
    child = remote_process.fork()
    proxy.lose(2)

    child.end()

    assert remote_process.store.tree("triage").live == 1
    with pytest.raises(Fenced):
        child.create("x")


def test_a_tree_is_created_once_when_its_reply_is_lost(remote_process: Process, proxy: Proxy) -> None:
    proxy.lose(1)

    proc = remote_process.store.process()

    assert proxy.lost == 1
    assert {tree.id for tree in remote_process.store.trees()} == {"triage", "warm", proc.id}


def test_an_extraction_and_an_export_survive_lost_replies(
    remote_process: Process, proxy: Proxy, tmp_path: Path
) -> None:
    remote_process.create("".join(f"{n}\n" for n in range(300_000)))
    proxy.lose(1)
    assert remote_process.extract("fd:1#L1-3").fd == "fd:2"
    proxy.lose(1, b"HMGET")

    done = remote_process.export("fd:1", tmp_path / "out")

    assert proxy.lost == 2
    assert done.size_bytes == (tmp_path / "out").stat().st_size == remote_process.stat("fd:1").bytes
    assert len(remote_process.list()) == 2


async def test_awaitable_calls_happen_once_too(redis_url: str, proxy: Proxy, remote_process: Process) -> None:
    async with await fdstore.aio.connect(proxy.url) as store:
        proc = await store.process("triage")
        proxy.lose(2)
        made = await proc.create("text")
        proxy.lose(1)
        child = await proc.child(share=[made.fd])
        proxy.lose(1)
        await proc.close(made.fd)

        assert [made.fd, child.id, await proc.list(), (await child.read("fd:1")).text] == [
            "fd:1",
            "triage.1",
            [],
            "text",
        ]
    assert proxy.lost == 4


def test_a_run_once_tool_runs_although_the_reply_to_its_start_record_is_lost(
    remote_process: Process, proxy: Proxy
) -> None:
    ran = []

    @fdstore.tool(repeatable=False)
    def post(words: str) -> str:
        ran.append(words)
        return "posted"

    tools = fdstore.Toolset(remote_process, python=[post])
    proxy.lose(2)

    result = tools.call("post", {"words": "a"}, call_id="toolu_1")

    assert proxy.lost == 2
    assert (result.content, ran) == ("posted", ["a"])


def test_an_unanswered_write_has_an_unknown_outcome(
    remote_process: Process, lose_all: Callable[..., None]
) -> None:
    lose_all()

    with pytest.raises(UnknownOutcome, match="commit"):
        remote_process.create("text")


def test_a_process_that_may_have_been_created_can_be_opened_again(
    proxy: Proxy, lose_all: Callable[..., None]
) -> None:
    with fdstore.connect(proxy.url) as store:
        lose_all()

        with pytest.raises(StoreUnavailable, match="does not answer"):
            store.process("of-a-host")


def test_a_write_that_reads_the_ceilings_is_given_up_at_the_same_deadline(
    remote_process: Process, proxy: Proxy, lose_all: Callable[..., None]
) -> None:
    handle, tally = remote_process.handle, Tally()
    handle.ceilings_due_at = 0.0
    lose_all()

    with fdstore.connect(proxy.url) as store, pytest.raises(UnknownOutcome, match="commit"):
        store.run(tallied(contents.create(handle, "text", "text", 100), tally))

    assert tally.round_trips == 1


def test_a_stream_that_cannot_be_failed_is_given_up_at_the_deadline_of_its_text(
    remote_process: Process, lose_all: Callable[..., None]
) -> None:
    out = remote_process.open_stream()
    lose_all()
    out.write("never stored")

    with pytest.raises(UnknownOutcome, match="append"):
        out.fail("disk full")


def test_an_unanswered_read_is_store_unavailable_not_an_unknown_outcome(
    remote_process: Process, lose_all: Callable[..., None]
) -> None:
    remote_process.create("text")
    lose_all(b"HGET")

    with pytest.raises(StoreUnavailable):
        remote_process.read("fd:1")


def test_the_client_works_again_after_the_server_returns(
    remote_process: Process, proxy: Proxy, lose_all: Callable[..., None]
) -> None:
    lose_all()
    with pytest.raises(FDStoreError):
        remote_process.create("text")
    proxy.lose(0)

    remote_process.create("again")

    assert "again" in [remote_process.read(d.fd).text for d in remote_process.list()]
