"""A failover to another server while connections to the old one stay open."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from typing import NamedTuple

import pytest
import redis

import fdstore
import fdstore.aio
from fdstore.errors import StoreReadOnly
from fdstore.local.redis_server import PrivateServer
from fdstore.wire import retry
from tests.chaos.proxy import Proxy
from tests.waiting import wait_until


def replicate(client: redis.Redis, port: int) -> None:
    client.execute_command("REPLICAOF", "127.0.0.1", port)


def port_of(client: redis.Redis) -> int:
    client.config_set("port", free_port())
    return int(client.config_get("port")["port"])


def free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return int(made.getsockname()[1])


class Pair(NamedTuple):
    """An address that leads to a primary, clients of it and of its replica, and the replica."""

    address: Proxy
    primary: redis.Redis
    replica: redis.Redis
    second: PrivateServer

    def fail_over(self) -> None:
        """Promote the replica and point the address at it, without closing connections."""
        sent = self.primary.info("replication")["master_repl_offset"]
        wait_until(lambda: self.replica.info("replication")["slave_repl_offset"] >= sent)
        self.replica.execute_command("REPLICAOF", "NO", "ONE")
        self.address.lead_to(self.second.url)
        replicate(self.primary, port_of(self.replica))


@pytest.fixture
def pair() -> Iterator[Pair]:
    with (
        PrivateServer({"repl-diskless-sync-delay": "0"}) as first,
        PrivateServer() as second,
        redis.Redis.from_url(first.url) as primary,
        redis.Redis.from_url(second.url) as replica,
    ):
        replicate(replica, port_of(primary))
        wait_until(lambda: replica.info("replication")["master_link_status"] == "up")
        with Proxy(first.url) as address:
            yield Pair(address, primary, replica, second)


def test_the_next_write_goes_to_the_new_primary(pair: Pair) -> None:
    with fdstore.connect(pair.address.url) as store:
        proc = store.process("triage")
        proc.create("before")
        pair.fail_over()

        made = proc.create("after")

        assert (proc.read("fd:1").text, proc.read(made.fd).text) == ("before", "after")


async def test_the_next_awaitable_write_goes_to_the_new_primary_too(pair: Pair) -> None:
    async with await fdstore.aio.connect(pair.address.url) as store:
        proc = await store.process("triage")
        await proc.create("before")
        await asyncio.to_thread(pair.fail_over)
        made = await proc.create("after")

        assert [(await proc.read(fd)).text for fd in ("fd:1", made.fd)] == ["before", "after"]


def test_without_a_new_primary_writes_are_refused_and_reads_work(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fdstore.connect(pair.address.url) as store:
        monkeypatch.setattr(retry, "DEADLINE_S", 0.3)
        proc = store.process("triage")
        proc.create("before")
        replicate(pair.primary, port_of(pair.replica))

        with pytest.raises(StoreReadOnly):
            proc.create("after")

        pair.primary.execute_command("REPLICAOF", "NO", "ONE")
        assert proc.create("later").fd == "fd:2"
