"""Clients of a server that stays away for a while, or restarts."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import redis

import fdstore
from fdstore.client import Store
from fdstore.local.redis_server import PrivateServer
from fdstore.wire.scripts import LENT_S
from tests.waiting import PATIENCE_S, wait_until


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
        wait_until(lambda: not client.exists("later"))

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
    caller.join(PATIENCE_S)

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
