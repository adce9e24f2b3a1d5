"""A connection that breaks after the command was sent: what was asked for happens exactly once."""

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
    """Stands between client and Redis, and loses replies: `lose(times, marker)` lets the next requests
    that hold the marker through, waits for their reply, and hangs up instead of passing it on."""

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
        """Ends every connection there is now."""
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
def far(proxy: Proxy) -> Iterator[Process]:
    """A process behind the proxy; Redis knows the scripts already."""
    with fdstore.connect(proxy.url) as store:
        warm = store.process("warm")
        warm.create("x")
        warm.fork().end()
        warm.close("fd:1")
        yield store.process("triage")


@pytest.mark.parametrize("times", [1, 3])
def test_a_create_whose_reply_is_lost_happens_once(far: Process, proxy: Proxy, times: int) -> None:
    proxy.lose(times)

    made = far.create("text")

    assert proxy.lost == times
    assert made.fd == "fd:1"
    assert [d.fd for d in far.list()] == ["fd:1"]
    assert far.read("fd:1").text == "text"
    assert far.create("next").fd == "fd:2"


def test_a_large_create_survives_losses_on_the_way(far: Process, proxy: Proxy) -> None:
    text = "".join(f"{n}\n" for n in range(700_000))
    proxy.lose(2, b"HSET")

    made = far.ingest(io.BytesIO(text.encode()), source="big")

    assert proxy.lost == 2
    assert (made.fd, made.chars) == ("fd:1", len(text))
    assert far.read("fd:1", read_all=True).text == text


@pytest.mark.parametrize("times", [1, 2, 3, 5])
def test_a_long_piece_of_a_stream_whose_reply_is_lost_is_stored_once(
    far: Process, proxy: Proxy, times: int
) -> None:
    texts = ["".join(f"{word} {n}\n" for n in range(60_000)) for word in ("one", "two", "three")]
    with far.open_stream() as out:
        for text in texts:
            out.write(text)
            out.flush()
            proxy.lose(times, b"EVAL")

    assert proxy.lost >= times
    assert far.read(out.fd, read_all=True).text == "".join(texts)


def test_an_awaited_long_piece_is_stored_once_too(redis_url: str, proxy: Proxy, far: Process) -> None:
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


def test_a_long_read_survives_losses_on_the_way(far: Process, proxy: Proxy) -> None:
    text = "".join(f"{n}\n" for n in range(700_000))
    far.create(text)
    proxy.lose(3, b"HMGET")

    assert far.read("fd:1", read_all=True).text == text
    assert proxy.lost == 3


def echoes(proxy: Proxy) -> Operation[list[bytes]]:
    """Four requests on their way at once, and a connection that breaks after the first."""
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


def test_replies_are_those_to_their_own_requests_after_a_break(far: Process, proxy: Proxy) -> None:
    assert far.store.run(echoes(proxy)) == [b"a", b"b", b"c", b"d", b"e"]


def test_awaited_replies_are_those_to_their_own_requests_after_a_break(proxy: Proxy) -> None:
    async def main() -> list[bytes]:
        async with await fdstore.aio.connect(proxy.url) as store:
            return await store.run(echoes(proxy))

    assert asyncio.run(main()) == [b"a", b"b", b"c", b"d", b"e"]


def test_a_child_whose_reply_is_lost_is_one_child(far: Process, proxy: Proxy) -> None:
    far.create("x")
    proxy.lose(2)

    child = far.child(share=["fd:1"])
    twin = far.fork()

    assert (child.id, twin.id) == ("triage.1", "triage.2")
    assert len(far.store.tree("triage").members) == 3


def test_a_close_whose_reply_is_lost_is_no_error(far: Process, proxy: Proxy) -> None:
    far.create("x")
    keeper = far.fork()
    proxy.lose(1)

    far.close("fd:1")

    assert proxy.lost == 1
    assert far.list() == []
    assert keeper.read("fd:1").text == "x"


def test_an_end_whose_reply_is_lost_is_counted_once(far: Process, proxy: Proxy) -> None:
    child = far.fork()
    proxy.lose(2)

    child.end()

    assert far.store.tree("triage").live == 1
    with pytest.raises(Fenced):
        child.create("x")


def test_a_new_tree_whose_reply_is_lost_is_made_once(far: Process, proxy: Proxy) -> None:
    proxy.lose(1)

    proc = far.store.process()

    assert proxy.lost == 1
    assert {tree.id for tree in far.store.trees()} == {"triage", "warm", proc.id}


def test_an_extraction_and_an_export_survive_losses(far: Process, proxy: Proxy, tmp_path: Path) -> None:
    far.create("".join(f"{n}\n" for n in range(300_000)))
    proxy.lose(1)
    assert far.extract("fd:1#L1-3").fd == "fd:2"
    proxy.lose(1, b"HMGET")

    done = far.export("fd:1", tmp_path / "out")

    assert proxy.lost == 2
    assert done.size_bytes == (tmp_path / "out").stat().st_size == far.stat("fd:1").bytes
    assert len(far.list()) == 2


def test_awaited_calls_happen_once_too(redis_url: str, proxy: Proxy, far: Process) -> None:
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


def test_a_tool_that_must_not_be_repeated_runs_though_the_note_of_its_begin_is_unanswered(
    far: Process, proxy: Proxy
) -> None:
    ran = []

    @fdstore.tool(repeatable=False)
    def post(words: str) -> str:
        ran.append(words)
        return "posted"

    tools = fdstore.Toolset(far, python=[post])
    proxy.lose(2)

    result = tools.call("post", {"words": "a"}, call_id="toolu_1")

    assert proxy.lost == 2
    assert (result.content, ran) == ("posted", ["a"])


# --- a store that stays away


def test_a_write_that_stays_unanswered_is_of_unknown_outcome(
    far: Process, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry, "DEADLINE_S", 0.3)
    proxy.lose(10**6)

    with pytest.raises(UnknownOutcome, match="commit"):
        far.create("text")


def test_a_read_that_stays_unanswered_leaves_nothing_in_doubt(
    far: Process, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    far.create("text")
    monkeypatch.setattr(retry, "DEADLINE_S", 0.3)
    proxy.lose(10**6, b"HGET")

    with pytest.raises(StoreUnavailable):
        far.read("fd:1")


def test_the_client_works_again_when_the_store_is_back(
    far: Process, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(retry, "DEADLINE_S", 0.3)
        proxy.lose(10**6)
        with pytest.raises(FDStoreError):
            far.create("text")
    proxy.lose(0)

    far.create("again")

    assert "again" in [far.read(d.fd).text for d in far.list()]


# --- a server that restarts


@pytest.fixture
def durable() -> Iterator[tuple[PrivateServer, Store]]:
    with (
        PrivateServer({"appendonly": "yes", "appendfsync": "always"}) as server,
        fdstore.connect(server.url) as store,
    ):
        yield server, store


def test_a_restart_between_calls_is_survived(durable: tuple[PrivateServer, Store]) -> None:
    server, store = durable
    proc = store.process("t")
    proc.create("before\n" * 2000)

    server.kill()
    server.restart()

    # scripts are gone from the server's memory too
    assert proc.read("fd:1", start=2).text == "before\n" * 571
    assert proc.create("after").fd == "fd:2"
    server.restart()
    assert proc.fork().read("fd:2").text == "after"


def test_a_stream_of_long_pieces_is_whole_after_a_restart(durable: tuple[PrivateServer, Store]) -> None:
    server, store = durable
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


def test_a_call_made_while_the_server_is_away_waits_for_it(durable: tuple[PrivateServer, Store]) -> None:
    server, store = durable
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
