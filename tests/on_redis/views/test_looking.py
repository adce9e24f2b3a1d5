"""Reading is never refused: not by an unsafe eviction policy, a full Redis, or one that refuses writes."""

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
from fdstore.store.processes import processes
from fdstore.store.streams import streams
from fdstore.store.views import usage
from tests.waiting import within

TEXT = "".join(f"{number}\n" for number in range(5000))


def make_evicting(execute: Any) -> None:
    execute("CONFIG", "SET", "maxmemory-policy", "volatile-ttl")


def make_full(execute: Any) -> None:
    execute("CONFIG", "SET", "maxmemory", "1")


def make_replica(execute: Any) -> None:
    execute("REPLICAOF", "127.0.0.1", "1")


def require_missing_replicas(execute: Any) -> None:
    execute("CONFIG", "SET", "min-replicas-to-write", "3")


CONDITIONS = [make_evicting, make_full, make_replica, require_missing_replicas]


@pytest.fixture
def set_condition(execute: Any) -> Iterator[Callable[[Callable[[Any], None]], None]]:
    """`set_condition(make_full)` brings Redis into a condition until the end of the test."""
    yield lambda condition: condition(execute)
    execute("REPLICAOF", "NO", "ONE")
    for setting in ("maxmemory 0", "maxmemory-policy noeviction", "min-replicas-to-write 0"):
        execute("CONFIG", "SET", *setting.split())


@pytest.fixture
def read_process(proc: Process, execute: Any) -> Process:
    """A process with a text, whose use is due to be recorded by the next client that opens it."""
    proc.create(TEXT)
    proc.fork()
    execute("HSET", "fdstore:{triage}", "used_at", "1000000000")
    return proc


def read_everything(store: Store, folder: Path) -> None:
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
def test_every_read_only_operation_works(
    condition: Any, read_process: Process, redis_url: str, set_condition: Any, tmp_path: Path
) -> None:
    set_condition(condition)

    with fdstore.connect(redis_url, looking=True) as store:
        read_everything(store, tmp_path)


@pytest.mark.parametrize("condition", [make_full, make_replica, require_missing_replicas])
def test_a_read_write_client_can_read_where_writes_are_refused(
    condition: Any, read_process: Process, redis_url: str, set_condition: Any, tmp_path: Path
) -> None:
    set_condition(condition)

    with fdstore.connect(redis_url) as store, within(2):  # whoever writes waits for 10 s
        read_everything(store, tmp_path)
    with fdstore.connect(redis_url, patience=0.1) as store, pytest.raises((StoreFull, StoreReadOnly)):
        store.process("triage").create("x")


def test_a_read_only_client_sends_no_writes(read_process: Process, redis_url: str, execute: Any) -> None:
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


def test_an_awaitable_read_only_client_reads_too(
    read_process: Process, redis_url: str, set_condition: Any
) -> None:
    async def main() -> str:
        async with await fdstore.aio.connect(redis_url, looking=True) as store:
            proc = await store.process("triage")
            with pytest.raises(UnsafeStore, match="looking=True"):
                await proc.create("x")
            with pytest.raises(NotFound):
                await proc.read("fd:9")
            return (await proc.read("fd:1", start=2)).text

    set_condition(make_evicting)

    assert asyncio.run(main()) == read_process.read("fd:1", start=2).text


@pytest.mark.parametrize("condition", [make_full, make_replica])
def test_a_stream_of_a_lost_writer_can_be_read_where_it_cannot_be_marked_broken(
    condition: Callable[[Any], None], proc: Process, execute: Any, set_condition: Any
) -> None:
    appender = proc.store.run(streams.open_stream(proc.handle, "build"))
    appender.put("half a line")
    proc.store.run(appender.store())
    execute("HSET", "fdstore:{triage}:triage:fd:1", "writer_until", "1")
    set_condition(condition)

    with within(2):
        found = proc.read("fd:1", read_all=True)

        assert (found.text, found.state, found.eof) == ("half a line", "open", False)
        assert proc.read("fd:1", wait=0.05).state == "open"


def test_removing_from_an_evicting_redis_is_allowed(
    proc: Process, redis_url: str, set_condition: Any, execute: Any
) -> None:
    from fdstore.client._sync.store import connect_unsafe

    proc.create("x")
    proc.child()
    set_condition(make_evicting)

    with connect_unsafe(redis_url, None, looking=False) as store:
        store.process("triage").close("fd:1")
        store.run(processes.cancel("fdstore", "triage.1"))
        store.drop_tree("triage")
        with pytest.raises(UnsafeStore):
            store.process("triage")

    assert execute("KEYS", "*{triage}*:triage*") == []
