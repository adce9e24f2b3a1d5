"""Operations on a tree access only its own keys, as MONITOR shows."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from fdstore.client import Store
from fdstore.errors import FDStoreError
from fdstore.local.redis_server import PrivateServer
from fdstore.store.contents import contents
from fdstore.store.keys import TreeKeys
from fdstore.store.trees import collect_trees

KEYLESS = {"TIME", "INFO", "PING", "CLIENT", "SELECT", "HELLO", "ECHO"}
OUTSIDE = {"fdstore:trees", "fdstore:limits"}


class Watched:
    """Return the commands that Redis reports: (by a script or not, command, key)."""

    def __init__(self, connection: Any, execute: Any) -> None:
        self._connection, self._execute = connection, execute

    def calls(self) -> Iterator[tuple[bool, str, str]]:
        self._execute("ECHO", "that was all")
        while True:
            line = self._connection.read_response().decode()
            _, where, rest = re.match(r"(\S+) \[(.*?)\] (.*)", line).groups()
            command, *arguments = re.findall(r'"((?:[^"\\]|\\.)*)"', rest)
            if command == "ECHO":
                return
            name = command.upper()
            if name == "EVALSHA" or name == "EVAL":
                for key in arguments[2 : 2 + int(arguments[1])]:
                    yield False, name, key
            elif name not in KEYLESS and arguments:
                yield where.endswith("lua"), name, arguments[0]


@pytest.fixture(scope="module")
def redis_server() -> Iterator[PrivateServer]:
    """A server of its own: nothing that another test left in the background writes to it."""
    with PrivateServer() as server:
        yield server


@pytest.fixture
def watched(redis_url: str, execute: Any) -> Iterator[Watched]:
    with redis.Redis.from_url(redis_url, protocol=2) as client:
        connection = client.connection_pool.get_connection()
        connection.send_command("MONITOR")
        assert connection.read_response() == b"OK"
        yield Watched(connection, execute)
        connection.disconnect()
        client.connection_pool.release(connection)


def test_operations_on_a_tree_access_only_its_own_keys(
    store: Store, watched: Watched, tmp_path: Path
) -> None:
    proc = store.process("triage")
    proc.create("one\ntwo\n" * 1000, page_size=3)
    proc.ingest(io.BytesIO(b"line\n" * 400_000), source="big")
    store.run(contents.create(proc.handle, "dig", "answer", name="ref:plan"))
    store.run(contents.create(proc.handle, "dig deeper", "answer", name="ref:plan"))
    child, twin = proc.child(share=["fd:1", "ref:plan"]), proc.fork()
    for reader in (child, twin, store.process("triage.1")):
        reader.read("fd:1", start=900)
        reader.read("fd:1", mode="line", start=1900, count=5)
        reader.read("fd:1", mode="char", start=1900, count=5)
    child.extract("fd:1#L3-9")
    child.export("fd:1", tmp_path / "out")
    for refused in (
        lambda: child.read("fd:77"),
        lambda: child.close("fd:77"),
        lambda: child.child(["fd:77"]),
    ):
        with pytest.raises(FDStoreError):
            refused()
    proc.close("fd:1")
    twin.end()
    store.tree("triage")
    store.run(collect_trees.collect_tree(TreeKeys("fdstore", "triage")))

    calls = list(watched.calls())

    by_scripts = {name for by_script, name, _ in calls if by_script}
    assert by_scripts >= {"HSET", "SADD", "RENAME", "UNLINK", "HINCRBY"}
    for by_script, name, key in calls:
        own = key == "fdstore:{triage}" or key.startswith("fdstore:{triage}:")
        assert own or (key in OUTSIDE and not by_script), (name, key)
    assert not {name for _, name, _ in calls} & {"KEYS", "SCAN", "DEL", "FLUSHALL"}
