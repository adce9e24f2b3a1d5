"""Fixtures of the tests on a real Redis.

After every test, the remaining keys are checked against the table in `fdstore.store.keys`.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, NamedTuple

import pytest
import redis

import fdstore.aio
from fdstore.aio import Process as AsyncProcess
from fdstore.client import Process, Store
from fdstore.local.redis_server import PrivateServer
from fdstore.store import keys
from fdstore.wire.connection_options import UNNAMED
from fdstore.wire.operation import Operation
from tests.children import Child
from tests.on_redis.damage import DamagedStore
from tests.stored_keys import Stored
from tests.waiting import wait_until

Execute = Callable[..., Any]


@pytest.fixture
def execute(redis_url: str) -> Iterator[Execute]:
    """Return a function that sends one command and returns the raw reply of Redis."""
    with redis.Redis.from_url(redis_url, protocol=2, **UNNAMED) as client:
        connection = client.connection_pool.get_connection()

        def send(*command: Any) -> Any:
            connection.send_command(*command)
            return connection.read_response()

        yield send
        client.connection_pool.release(connection)


@pytest.fixture
def proc(store: Store) -> Process:
    """The root process of a new tree."""
    return store.process("triage")


UPLOADER = """
import sys, fdstore
class Source:
    def read(self, count, parts=iter([b"a line\\n" * 100_000] * 3)):
        return next(parts, b"") or sys.stdin.buffer.read(1)  # which nothing is written to
fdstore.connect(sys.argv[1]).process("triage").ingest(Source(), "cut off")
"""


@pytest.fixture
def cut_off_upload(redis_url: str, execute: Execute) -> Callable[[], None]:
    """Return a function that leaves the upload of about 2 MB, `cut off`, into `triage` by a killed client."""

    def connections() -> set[bytes]:
        return set(re.findall(rb"(?m)^id=\d+", execute("CLIENT", "LIST")))

    def cut_off() -> None:
        before = connections()
        command = [sys.executable, "-c", UPLOADER, redis_url]
        with Child(command, stdin=subprocess.PIPE) as uploader:
            wait_until(lambda: execute("EXISTS", "fdstore:{triage}:staging"), what="staging")
            uploader.kill()
        # what it sent before is executed by then
        wait_until(lambda: connections() <= before, what="the end of its connections")

    return cut_off


@pytest.fixture(scope="module")
def shared_damaged_store(redis_server: PrivateServer) -> Iterator[DamagedStore]:
    """A store with three trees; a test that damages one restores it first."""
    redis_server.start()
    with redis.Redis.from_url(redis_server.url) as client, fdstore.connect(redis_server.url) as store:
        yield DamagedStore(store, client)
        client.flushall()


# --- the leak check


class Row(NamedTuple):
    """One key of the table: the pattern of its name, its type, and whether it expires."""

    pattern: re.Pattern[str]
    type: str
    expires: bool


def key_table() -> list[Row]:
    """The table in the docstring of `fdstore.store.keys`, so that it and the code cannot drift apart."""
    rows = []
    found = re.findall(
        r"^    (\S.*?) {2,}(zset|hash|set|string|list|stream) +(.*)$", keys.__doc__ or "", re.M
    )
    for written, kind, rest in found:
        first, *endings = written.split(", ")
        names = [first, *(first.rpartition(":")[0] + ending for ending in endings)]
        rows += [Row(_pattern(name), kind, "expires" in rest) for name in names]
    return rows


def _pattern(name: str) -> re.Pattern[str]:
    root = r"[a-z0-9][a-z0-9_-]{0,47}"
    process = root + r"(?:\.\d+)*"
    parts = [
        ("{triage}", r"\{(?P<tree>" + root + r")\}"),
        ("triage.1", r"(?P=tree)(?:\.\d+)*"),
        ("triage", r"(?P=tree)(?:\.\d+)*"),
        ("OP", r"[0-9a-f]+"),
        ("fd:3", r"fd:\d+"),
    ]
    if "{triage}" not in name:
        parts = [("WORKER", process)]
    pattern = re.escape(name)
    for i, (example, _) in enumerate(parts):
        pattern = pattern.replace(re.escape(example), f"<{i}>")
    for i, (_, meaning) in enumerate(parts):
        pattern = pattern.replace(f"<{i}>", meaning)
    return re.compile(r"[A-Za-z0-9_.:-]{1,64}:" + pattern)


TABLE = key_table()


@pytest.fixture(autouse=True)
def leak_check(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fails a test that leaves a key the table does not account for, or counters that are wrong."""
    if "redis_url" not in request.fixturenames:
        yield
        return
    check_keys: Callable[..., None] = request.getfixturevalue("assert_counted")
    execute: Execute = request.getfixturevalue("execute")
    yield
    stored = Stored(execute)
    for name in stored("KEYS", "*"):
        key, kind = name.decode(), stored("TYPE", name).decode()
        rows = [row for row in TABLE if row.pattern.fullmatch(key) and row.type == kind]
        assert rows or kind == "none", f"the table of keys does not account for {key!r} ({kind})"
        if rows and all(row.expires for row in rows):
            assert stored("PTTL", name) != -1, f"{key!r} should expire by itself"
    check_keys(stored)


@pytest.fixture
def awaited(redis_url: str) -> Callable[[Callable[[AsyncProcess], Awaitable[Any]]], Any]:
    """`awaited(work)` returns the result of `work(proc)` with the process `triage` of an asyncio client."""

    def run(work: Callable[[AsyncProcess], Awaitable[Any]]) -> Any:
        async def main() -> Any:
            async with await fdstore.aio.connect(redis_url) as store:
                return await work(await store.process("triage"))

        return asyncio.run(main())

    return run


@pytest.fixture
def dropped_after() -> Iterator[Callable[[Operation[Any], int], Operation[bool]]]:
    """`dropped_after(operation, requests)` serves so many requests and abandons the operation, as if its
    worker were killed; it returns whether there were more. Abandoned operations are kept until the test ends:
    closing one runs its cleanup."""
    abandoned: list[Operation[Any]] = []

    def serve(operation: Operation[Any], requests: int) -> Operation[bool]:
        abandoned.append(operation)
        reply: Any = None
        try:
            for _ in range(requests):
                reply = yield operation.send(reply)
            operation.send(reply)
        except StopIteration:
            return False
        return True

    yield serve
    for each in abandoned:
        each.close()


@pytest.fixture
def fill_redis(execute: Any) -> Iterator[Callable[[], None]]:
    """`fill_redis()` sets the memory limit of Redis below its usage."""
    yield lambda: execute("CONFIG", "SET", "maxmemory", "1")
    execute("CONFIG", "SET", "maxmemory", "0")


@pytest.fixture
def own_redis() -> Iterator[PrivateServer]:
    """A Redis of the test's own, which it may make refuse."""
    with PrivateServer() as server:
        yield server


@pytest.fixture
def own_store(own_redis: PrivateServer) -> Iterator[Store]:
    with fdstore.connect(own_redis.url) as store:
        yield store
