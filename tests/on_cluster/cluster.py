"""A local Redis Cluster of three primaries, created with Redis commands alone, so any redis-server works."""

from __future__ import annotations

import os
import re
import socket
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any

import redis
from redis.crc import key_slot

from fdstore.local.redis_conf import find_binary
from fdstore.local.redis_server import PrivateServer
from tests.children import Child
from tests.waiting import wait_until

SLOTS = 16384
KEYLESS = {"CONFIG", "FLUSHALL", "INFO", "KEYS", "TIME"}
BUS = 10_000
"""Nodes talk to each other on their port and so much more."""


class ClusterNode:
    """One node of a Cluster."""

    def __init__(self, stack: ExitStack, options: dict[str, str | int]) -> None:
        self.port = reserve_ports(stack)
        self.server = PrivateServer(
            {
                "port": self.port,
                "bind": "127.0.0.1",
                "cluster-enabled": "yes",
                "cluster-node-timeout": 1000,
                # the other nodes keep serving their slots when one is lost
                "cluster-require-full-coverage": "no",
                # start replication immediately instead of waiting for more replicas
                "repl-diskless-sync-delay": 0,
                **options,
            }
        )
        stack.enter_context(self.server)
        self._client = stack.enter_context(
            redis.Redis(port=self.port, protocol=2, decode_responses=True, socket_timeout=20)
        )

    def ask(self, *command: Any) -> Any:
        """Its reply as Redis gives it, without redis-py's shapes."""
        connection = self._client.connection_pool.get_connection()
        try:
            connection.send_command(*command)
            return connection.read_response()
        finally:
            self._client.connection_pool.release(connection)

    @property
    def id(self) -> str:
        return str(self.ask("CLUSTER", "MYID"))

    def owner_of(self, slot: int) -> int | None:
        """Return the port of the node that serves a slot, according to this node."""
        for first, last, (_, port, *_), *_ in self.ask("CLUSTER", "SLOTS"):
            if first <= slot <= last:
                return int(port)
        return None


class Cluster:
    """Three nodes that share the slots: a context manager that stops them at exit."""

    def __init__(self, options: dict[str, str | int] | None = None) -> None:
        self._options = options or {}

    def __enter__(self) -> Cluster:
        with ExitStack() as stack:
            self.nodes = [ClusterNode(stack, self._options) for _ in range(3)]
            self._form()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _form(self) -> None:
        first, *others = self.nodes
        for number, node in enumerate(self.nodes):
            begin, end = number * SLOTS // 3, (number + 1) * SLOTS // 3
            node.ask("CLUSTER", "ADDSLOTS", *range(begin, end))
            node.ask("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        for node in others:
            first.ask("CLUSTER", "MEET", "127.0.0.1", node.port)
        wait_until(self.is_whole)

    def add_replica_of(self, primary: ClusterNode) -> ClusterNode:
        """Add a replica of `primary`, which is promoted when that is lost."""
        replica = ClusterNode(self._stack, self._options)
        primary.ask("CLUSTER", "MEET", "127.0.0.1", replica.port)
        wait_until(lambda: primary.id in replica.ask("CLUSTER", "NODES"))
        replica.ask("CLUSTER", "REPLICATE", primary.id)
        wait_until(lambda: replica.ask("ROLE")[3] == "connected")
        for node in self.nodes:
            wait_until(lambda node=node: replica.id in node.ask("CLUSTER", "NODES"))
            wait_until(lambda node=node: node.id in replica.ask("CLUSTER", "NODES"))
        return replica

    def is_whole(self) -> bool:
        """Return whether every node knows the owner of every slot."""
        return all(
            len(node.ask("CLUSTER", "SLOTS")) >= 3
            and "cluster_slots_ok:16384" in node.ask("CLUSTER", "INFO")
            and "cluster_state:ok" in node.ask("CLUSTER", "INFO")
            for node in self.nodes
        )

    @property
    def url(self) -> str:
        return "redis+cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)

    def empty(self) -> None:
        for node in self.nodes:
            node.ask("FLUSHALL")

    def node_of(self, key: str) -> ClusterNode:
        """The node that serves a key."""
        slot = key_slot(key.encode())
        return next(node for node in self.nodes if node.owner_of(slot) == node.port)

    def elsewhere(self, key: str) -> ClusterNode:
        """A node that does not serve a key."""
        return next(node for node in self.nodes if node is not self.node_of(key))

    def execute(self, *command: Any) -> Any:
        """One command, at the node of its key; at all of them if it has none, for the sum or the first
        of their replies."""
        if command[0] in KEYLESS or (command[0] == "EVAL" and command[2] == 0):
            replies = [_encoded(node.ask(*command)) for node in self.nodes]
            return list(chain(*replies)) if command[0] in ("KEYS", "EVAL") else replies[0]
        key = command[1].decode() if isinstance(command[1], bytes) else command[1]
        return _encoded(self.node_of(key).ask(*command))


class Move:
    """The move of a slot from one node to another, key by key."""

    def __init__(self, cluster: Cluster, key: str) -> None:
        self._cluster = cluster
        self._slot = key_slot(key.encode())
        self.source, self.target = cluster.node_of(key), cluster.elsewhere(key)
        self.target.ask("CLUSTER", "SETSLOT", self._slot, "IMPORTING", self.source.id)
        self.source.ask("CLUSTER", "SETSLOT", self._slot, "MIGRATING", self.target.id)

    def keys_left(self) -> list[str]:
        return list(self.source.ask("CLUSTER", "GETKEYSINSLOT", self._slot, 10_000))

    def migrate(self, *keys: str) -> None:
        """Move these keys, or all remaining ones."""
        for key in keys or self.keys_left():
            self.source.ask("MIGRATE", "127.0.0.1", self.target.port, key, 0, 5000)

    def finish(self) -> None:
        """Move the remaining keys and announce the new owner to all nodes."""
        while self.keys_left():
            self.migrate()
        for node in (self.target, self.source, *self._cluster.nodes):
            node.ask("CLUSTER", "SETSLOT", self._slot, "NODE", self.target.id)
        wait_until(self._is_settled)

    def _is_settled(self) -> bool:
        """Return whether all nodes agree on the new owner and the epoch: the next move must not be older."""
        owners = {
            (node.owner_of(self._slot), *re.findall(r"current_epoch:\d+", node.ask("CLUSTER", "INFO")))
            for node in self._cluster.nodes
        }
        return len(owners) == 1 and {port for port, _ in owners} == {self.target.port}


def _encoded(reply: Any) -> Any:
    if isinstance(reply, list):
        return [_encoded(each) for each in reply]
    return reply.encode() if isinstance(reply, str) else reply


def reserve_ports(stack: ExitStack) -> int:
    """A port for clients and one for the other nodes, kept ours; below those that connections get."""
    for attempt in range(2000):
        port = 12_000 + (os.getpid() * 7 + attempt) % 10_000
        held = ExitStack()
        try:
            for each in (port, port + BUS):
                reserved = held.enter_context(socket.socket())
                reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                reserved.bind(("127.0.0.1", each))
        except OSError:
            held.close()
            continue
        stack.push(held)
        return port
    raise OSError("no two ports are free")


def start_sentinel(stack: ExitStack, folder: Path, primary: PrivateServer, *config: str, **login: str) -> int:
    """Start a Sentinel that watches a server as `main`, and return its port when it does."""
    port = reserve_ports(stack)
    file = folder / "sentinel.conf"
    watched = f"sentinel monitor main 127.0.0.1 {port_of(primary)} 1"
    file.write_text("\n".join([f"port {port}", "bind 127.0.0.1", f"dir {folder}", watched, *config, ""]))
    with (folder / "sentinel.log").open("wb") as log:
        process = Child([find_binary(), file, "--sentinel"], deadline_s=None, stdout=log, stderr=log)
    stack.callback(process.end)

    def watches() -> bool:
        try:
            return bool(client.sentinel_master("main")["flags"] == "master")
        except redis.ConnectionError:
            return False

    with redis.Redis(port=port, protocol=2, **login) as client:
        wait_until(watches)
    return port


def port_of(server: PrivateServer) -> int:
    return int(server.url.rpartition(":")[2].partition("/")[0])
