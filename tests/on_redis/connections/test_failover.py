"""A failover to another server while connections to the old one stay open."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import redis

import fdstore
import fdstore.aio
from fdstore.errors import StoreReadOnly
from fdstore.local.redis_server import PrivateServer
from tests.waiting import PATIENCE_S, wait_until


class Address:
    """A proxy whose target can change; open connections keep the old target."""

    def __init__(self, folder: Path, server: PrivateServer) -> None:
        self.server = server
        self.url = f"unix://{folder}/address.sock"
        self._sockets: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / "address.sock"))
        self._listener.listen()
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self.server.url.removeprefix("unix://").partition("?")[0])
            self._sockets += [client, server]
            for source, target in ((client, server), (server, client)):
                threading.Thread(target=self._pump, args=(source, target), daemon=True).start()

    @staticmethod
    def _pump(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(PATIENCE_S)
        for end in self._sockets:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


def replicate(client: redis.Redis, port: int) -> None:
    client.execute_command("REPLICAOF", "127.0.0.1", port)


def port_of(client: redis.Redis) -> int:
    client.config_set("port", free_port())
    return int(client.config_get("port")["port"])


def free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return int(made.getsockname()[1])


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Address, redis.Redis, redis.Redis, PrivateServer]]:
    """An address that leads to a primary, clients of it and of its replica, and the replica."""
    with (
        PrivateServer({"repl-diskless-sync-delay": "0"}) as first,
        PrivateServer() as second,
        redis.Redis.from_url(first.url) as primary,
        redis.Redis.from_url(second.url) as replica,
    ):
        replicate(replica, port_of(primary))
        wait_until(lambda: replica.info("replication")["master_link_status"] == "up")
        address = Address(tmp_path, first)
        yield address, primary, replica, second
        address.close()


def fail_over(address: Address, primary: redis.Redis, replica: redis.Redis, second: PrivateServer) -> None:
    """Promote the replica and point the address at it, without closing connections."""
    sent = primary.info("replication")["master_repl_offset"]
    wait_until(lambda: replica.info("replication")["slave_repl_offset"] >= sent)
    replica.execute_command("REPLICAOF", "NO", "ONE")
    address.server = second
    replicate(primary, port_of(replica))


def test_the_next_write_goes_to_the_new_primary(
    pair: tuple[Address, redis.Redis, redis.Redis, PrivateServer],
) -> None:
    with fdstore.connect(pair[0].url) as store:
        proc = store.process("triage")
        proc.create("before")
        fail_over(*pair)

        made = proc.create("after")

        assert (proc.read("fd:1").text, proc.read(made.fd).text) == ("before", "after")


async def test_the_next_awaitable_write_goes_to_the_new_primary_too(
    pair: tuple[Address, redis.Redis, redis.Redis, PrivateServer],
) -> None:
    async with await fdstore.aio.connect(pair[0].url) as store:
        proc = await store.process("triage")
        await proc.create("before")
        await asyncio.to_thread(fail_over, *pair)
        made = await proc.create("after")

        assert [(await proc.read(fd)).text for fd in ("fd:1", made.fd)] == ["before", "after"]


def test_without_a_new_primary_writes_are_refused_and_reads_work(
    pair: tuple[Address, redis.Redis, redis.Redis, PrivateServer],
) -> None:
    address, primary, replica, _ = pair
    with fdstore.connect(address.url) as store:
        proc = store.process("triage")
        proc.create("before")
        replicate(primary, port_of(replica))

        with pytest.raises(StoreReadOnly):
            proc.create("after")

        primary.execute_command("REPLICAOF", "NO", "ONE")
        assert proc.create("later").fd == "fd:2"
