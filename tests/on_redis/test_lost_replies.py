"""Disconnects after a command was sent: the command takes effect exactly once."""

from __future__ import annotations

import asyncio
import io
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import redis

import fdstore
import fdstore.aio
from fdstore.client import Process, Store
from fdstore.errors import FDStoreError, Fenced, StoreUnavailable, UnknownOutcome
from fdstore.local.redis_server import PrivateServer
from fdstore.wire import retry
from fdstore.wire.operation import Disk, Operation, Receive, Send
from fdstore.wire.scripts import LENT_S
from tests.waiting import wait_until


class Proxy:
    """A proxy between client and Redis that loses replies.

    `lose(times, marker)` forwards the next requests that contain the marker, waits for their replies, and
    disconnects instead of forwarding those.
    """

    def __init__(self, redis_url: str, folder: Path) -> None:
        self._redis = redis_url.removeprefix("unix://").partition("?")[0]
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / "proxy.sock"))
        self._listener.listen()
        self.url = f"unix://{folder}/proxy.sock"
        self.lost = 0
        self._left = 0
        self._marker = b""
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def lose(self, times: int, marker: bytes = b"EVALSHA") -> None:
        with self._lock:
            self._left, self._marker = times, marker

    def hang_up(self) -> None:
        """Close all open connections."""
        for end in self._sockets:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._redis)
            doomed = threading.Event()
            for source, target, note in (
                (client, server, self._see(doomed)),
                (server, client, self._pass(doomed)),
            ):
                thread = threading.Thread(target=self._pump, args=(source, target, note), daemon=True)
                thread.start()
                self._threads.append(thread)
            self._sockets += [client, server]

    def _see(self, doomed: threading.Event) -> Callable[[bytes], bool]:
        def see(data: bytes) -> bool:
            with self._lock:
                if self._left and self._marker in data:
                    doomed.set()
            return True

        return see

    def _pass(self, doomed: threading.Event) -> Callable[[bytes], bool]:
        def may_pass(data: bytes) -> bool:
            if not doomed.is_set():
                return True
            with self._lock:
                self._left -= 1
                self.lost += 1
            return False

        return may_pass

    def _pump(self, source: socket.socket, target: socket.socket, note: Callable[[bytes], bool]) -> None:
        try:
            while (data := source.recv(1 << 16)) and note(data):
                target.sendall(data)
        except OSError:
            pass
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.hang_up()
        for thread in self._threads:
            thread.join(5)
        for end in self._sockets:
            end.close()


@pytest.fixture
def proxy(redis_url: str, tmp_path: Path) -> Iterator[Proxy]:
    made = Proxy(redis_url, tmp_path)
    yield made
    made.close()


@pytest.fixture
def remote_process(proxy: Proxy) -> Iterator[Process]:
    """A process behind the proxy; Redis knows the scripts already."""
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
    text = "".join(f"{n}\n" for n in range(700_000))
    proxy.lose(2, b"HSET")

    made = remote_process.ingest(io.BytesIO(text.encode()), source="big")

    assert proxy.lost == 2
    assert (made.fd, made.chars) == ("fd:1", len(text))
    assert remote_process.read("fd:1", read_all=True).text == text


@pytest.mark.parametrize("times", [1, 2, 3, 5])
def test_a_long_piece_of_a_stream_whose_reply_is_lost_is_stored_once(
    remote_process: Process, proxy: Proxy, times: int
) -> None:
    texts = ["".join(f"{word} {n}\n" for n in range(60_000)) for word in ("one", "two", "three")]
    with remote_process.open_stream() as out:
        for text in texts:
            out.write(text)
            out.flush()
            proxy.lose(times, b"EVAL")

    assert proxy.lost >= times
    assert remote_process.read(out.fd, read_all=True).text == "".join(texts)


def test_an_awaitable_long_piece_is_stored_once_too(
    redis_url: str, proxy: Proxy, remote_process: Process
) -> None:
    texts = ["".join(f"{word} {n}\n" for n in range(60_000)) for word in ("one", "two", "three")]

    async def run() -> None:
        async with await fdstore.aio.connect(proxy.url) as store:
            proc = await store.process("triage")
            async with await proc.open_stream() as out:
                for times, text in enumerate(texts, 1):
                    proxy.lose(times, b"EVAL")
                    await out.write(text)
                    await out.flush()
            assert (await proc.read(out.fd, read_all=True)).text == "".join(texts)

    asyncio.run(run())
    assert proxy.lost >= 6


def test_a_long_read_survives_lost_replies(remote_process: Process, proxy: Proxy) -> None:
    text = "".join(f"{n}\n" for n in range(700_000))
    remote_process.create(text)
    proxy.lose(3, b"HMGET")

    assert remote_process.read("fd:1", read_all=True).text == text
    assert proxy.lost == 3


def echoes(proxy: Proxy) -> Operation[list[bytes]]:
    """Four requests are in flight when the connection is closed after the first reply."""
    yield Send([("ECHO", "a")], "lane")
    [first] = yield Receive("lane")
    yield Send([("ECHO", "b")], "lane")
    yield Disk(proxy.hang_up)
    for word in "cde":
        yield Send([("ECHO", word)], "lane")
    replies = [first]
    for _ in "bcde":
        replies += yield Receive("lane")
    return replies


def test_requests_get_their_own_replies_after_a_disconnect(remote_process: Process, proxy: Proxy) -> None:
    assert remote_process.store.run(echoes(proxy)) == [b"a", b"b", b"c", b"d", b"e"]


def test_awaitable_requests_get_their_own_replies_after_a_disconnect(proxy: Proxy) -> None:
    async def main() -> list[bytes]:
        async with await fdstore.aio.connect(proxy.url) as store:
            return await store.run(echoes(proxy))

    assert asyncio.run(main()) == [b"a", b"b", b"c", b"d", b"e"]


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


def test_awaitable_calls_happen_once_too(redis_url: str, proxy: Proxy, remote_process: Process) -> None:
    async def main() -> list[Any]:
        async with await fdstore.aio.connect(proxy.url) as store:
            proc = await store.process("triage")
            proxy.lose(2)
            made = await proc.create("text")
            proxy.lose(1)
            child = await proc.child(share=[made.fd])
            proxy.lose(1)
            await proc.close(made.fd)
            return [made.fd, child.id, await proc.list(), (await child.read("fd:1")).text]

    assert asyncio.run(main()) == ["fd:1", "triage.1", [], "text"]
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


# --- a store that stays away


def test_an_unanswered_write_has_an_unknown_outcome(
    remote_process: Process, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry, "DEADLINE_S", 0.3)
    proxy.lose(10**6)

    with pytest.raises(UnknownOutcome, match="commit"):
        remote_process.create("text")


def test_an_unanswered_read_is_store_unavailable_not_an_unknown_outcome(
    remote_process: Process, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote_process.create("text")
    monkeypatch.setattr(retry, "DEADLINE_S", 0.3)
    proxy.lose(10**6, b"HGET")

    with pytest.raises(StoreUnavailable):
        remote_process.read("fd:1")


def test_the_client_works_again_after_the_server_returns(
    remote_process: Process, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(retry, "DEADLINE_S", 0.3)
        proxy.lose(10**6)
        with pytest.raises(FDStoreError):
            remote_process.create("text")
    proxy.lose(0)

    remote_process.create("again")

    assert "again" in [remote_process.read(d.fd).text for d in remote_process.list()]


# --- a server that restarts


@pytest.fixture
def durable_server() -> Iterator[tuple[PrivateServer, Store]]:
    with (
        PrivateServer({"appendonly": "yes", "appendfsync": "always"}) as server,
        fdstore.connect(server.url) as store,
    ):
        yield server, store


def test_a_client_survives_a_server_restart_between_calls(
    durable_server: tuple[PrivateServer, Store],
) -> None:
    server, store = durable_server
    proc = store.process("t")
    proc.create("before\n" * 2000)

    server.kill()
    server.restart()

    # the server has lost its scripts too
    assert proc.read("fd:1", start=2).text == "before\n" * 571
    assert proc.create("after").fd == "fd:2"
    server.restart()
    assert proc.fork().read("fd:2").text == "after"


def test_a_stream_of_long_pieces_is_whole_after_a_restart(
    durable_server: tuple[PrivateServer, Store],
) -> None:
    server, store = durable_server
    text = "".join(f"line {n}\n" for n in range(20_000))
    proc = store.process("t")
    out = proc.open_stream()
    for _ in range(3):
        out.write(text)
        out.flush()
    with redis.Redis.from_url(server.url) as client:
        client.set("later", "", ex=2 * LENT_S)
        wait_until(lambda: not client.exists("later"), 10)

    server.kill()
    server.restart()

    assert proc.read(out.fd, read_all=True).text == text * 3
    out.write(text)
    out.end()
    assert proc.read(out.fd, read_all=True).text == text * 4
    with redis.Redis.from_url(server.url) as client:
        assert not client.keys("*:lent")


def test_a_call_waits_for_an_absent_server(durable_server: tuple[PrivateServer, Store]) -> None:
    server, store = durable_server
    proc = store.process("t")
    proc.create("x")
    server.kill()
    answers: list[str] = []
    caller = threading.Thread(target=lambda: answers.append(proc.create("while away").fd))

    caller.start()
    server.restart()
    caller.join(20)

    assert answers == ["fd:2"]


def test_many_threads_share_a_store(store: Store) -> None:
    proc = store.process("t")
    made: list[str] = []

    def work(n: int) -> None:
        for i in range(20):
            made.append(proc.create(f"{n}-{i}").fd)
            assert proc.read(made[-1] if i % 2 else "fd:1").fd

    proc.create("first")
    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(set(made)) == 160
    assert len(proc.list()) == 161
