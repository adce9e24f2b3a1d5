"""Looking is never refused: not by a wrong eviction policy, a full Redis, or one that takes no writes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import fdstore
import fdstore.aio
from fdstore.client import Process, Store
from fdstore.errors import NotFound, StoreFull, StoreReadOnly, UnsafeStore
from fdstore.store import processes, streams, usage

TEXT = "".join(f"{number}\n" for number in range(5000))


def evicting(execute: Any) -> None:
    execute("CONFIG", "SET", "maxmemory-policy", "volatile-ttl")


def full(execute: Any) -> None:
    execute("CONFIG", "SET", "maxmemory", "1")


def replica(execute: Any) -> None:
    execute("REPLICAOF", "127.0.0.1", "1")


def without_replicas(execute: Any) -> None:
    execute("CONFIG", "SET", "min-replicas-to-write", "3")


CONDITIONS = [evicting, full, replica, without_replicas]


@pytest.fixture
def into(execute: Any) -> Iterator[Callable[[Callable[[Any], None]], None]]:
    """`into(full)` brings Redis into a condition, until the test is over."""
    yield lambda condition: condition(execute)
    execute("REPLICAOF", "NO", "ONE")
    for name, value in (
        ("maxmemory", "0"),
        ("maxmemory-policy", "noeviction"),
        ("min-replicas-to-write", "0"),
    ):
        execute("CONFIG", "SET", name, value)


@pytest.fixture
def looked_at(proc: Process, execute: Any) -> Process:
    """A process with a text, whose use should be noted by the next client that opens it."""
    proc.create(TEXT)
    proc.fork()
    execute("HSET", "fdstore:{triage}", "used_at", "1000000000")
    return proc


def everything_read(store: Store, folder: Path) -> None:
    again = store.process("triage")
    assert again.read("fd:1", mode="line", start=500).text == "499\n"
    assert again.read("fd:1", read_all=True).text == TEXT
    assert again.search("fd:1", "^777$").matches == 1
    assert again.export("fd:1", folder / "out").char_count == len(TEXT)
    assert [d.fd for d in again.list()] == ["fd:1"]
    assert again.stat("fd:1").chars == len(TEXT)
    assert "".join(again.follow("fd:1")) == TEXT
    assert [tree.id for tree in store.trees()] == ["triage"]
    assert len(store.processes()) == 2
    assert store.run(usage.usage_of_trees("fdstore")).trees[0].bytes == len(TEXT)
    assert len(store.run(usage.holders(again.handle, "fd:1"))) == 2


@pytest.mark.parametrize("condition", CONDITIONS)
def test_everything_that_only_reads_works(
    condition: Callable[[Any], None], looked_at: Process, redis_url: str, into: Any, tmp_path: Path
) -> None:
    into(condition)

    with fdstore.connect(redis_url, looking=True) as store:
        everything_read(store, tmp_path)


@pytest.mark.parametrize("condition", [full, replica, without_replicas])
def test_a_client_that_may_write_reads_where_writes_are_refused(
    condition: Callable[[Any], None], looked_at: Process, redis_url: str, into: Any, tmp_path: Path
) -> None:
    into(condition)

    with fdstore.connect(redis_url) as store:
        everything_read(store, tmp_path)
        with pytest.raises((StoreFull, StoreReadOnly)):
            store.process("triage").create("x")


def test_what_writes_is_not_sent_by_who_only_looks(looked_at: Process, redis_url: str, execute: Any) -> None:
    calls = ("fork", "child", "open_stream", "end")
    writes: list[Callable[[Process], object]] = [
        lambda proc, name=name: getattr(proc, name)() for name in calls
    ]
    writes += [
        lambda proc: proc.create("x"),
        lambda proc: proc.create("x" * 1_000_000),
        lambda proc: proc.extract("fd:1"),
        lambda proc: proc.close("fd:1"),
        lambda proc: proc.store.process("new"),
        lambda proc: proc.store.drop_tree("triage"),
    ]
    before = sorted(execute("KEYS", "*")), execute("HGETALL", "fdstore:{triage}")

    with fdstore.connect(redis_url, looking=True) as store:
        proc = store.process("triage")
        for write in writes:
            with pytest.raises(UnsafeStore, match=r"looking=True.*was not sent") as caught:
                write(proc)
            assert caught.value.type == "unsafe_store"

    assert (sorted(execute("KEYS", "*")), execute("HGETALL", "fdstore:{triage}")) == before


def test_an_awaiting_client_looks_too(looked_at: Process, redis_url: str, into: Any) -> None:
    async def main() -> str:
        async with await fdstore.aio.connect(redis_url, looking=True) as store:
            proc = await store.process("triage")
            with pytest.raises(UnsafeStore, match="looking=True"):
                await proc.create("x")
            with pytest.raises(NotFound):
                await proc.read("fd:9")
            return (await proc.read("fd:1", start=2)).text

    into(evicting)

    assert asyncio.run(main()) == looked_at.read("fd:1", start=2).text


@pytest.mark.parametrize("condition", [full, replica])
def test_a_stream_whose_writer_is_gone_can_be_read_where_nobody_may_say_so(
    condition: Callable[[Any], None], proc: Process, execute: Any, into: Any
) -> None:
    appender = proc.store.run(streams.open_stream(proc.handle, "build"))
    appender.put("half a line")
    proc.store.run(appender.store())
    execute("HSET", "fdstore:{triage}:triage:fd:1", "writer_until", "1")
    into(condition)

    found = proc.read("fd:1", read_all=True)

    assert (found.text, found.state, found.eof) == ("half a line", "open", False)
    assert proc.read("fd:1", wait=0.05).state == "open"


def test_removing_in_a_redis_that_evicts_is_not_refused(
    proc: Process, redis_url: str, into: Any, execute: Any
) -> None:
    from fdstore.client._sync.store import connect_unsafe

    proc.create("x")
    proc.child()
    into(evicting)

    with connect_unsafe(redis_url, None, looking=False) as store:
        store.process("triage").close("fd:1")
        store.run(processes.cancel("fdstore", "triage.1"))
        store.drop_tree("triage")
        with pytest.raises(UnsafeStore):
            store.process("triage")

    assert execute("KEYS", "*{triage}*:triage*") == []
