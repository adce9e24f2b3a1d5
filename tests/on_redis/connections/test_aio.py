"""The awaitable API equals the blocking one: the same calls, arguments, results and errors."""

from __future__ import annotations

import asyncio
import gc
import io
import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import fdstore.aio
from fdstore import aio
from fdstore.errors import TargetExists, WrongEventLoop
from tests.waiting import PATIENCE_S, wait_until

# --- the main flows


async def test_stored_text_is_read_back(redis_url: str) -> None:
    async with await aio.connect(redis_url) as store:
        proc = await store.process("triage")
        made = await proc.create("one\ntwo\nthree", page_size=5)

        assert made == await proc.stat(made.fd)
        assert [d.fd for d in await proc.list()] == ["fd:1"]
        assert (await proc.read("fd:1", start=2)).text == "two\n"
        assert (await proc.read("fd:1#L2-3")).text == "two\nthree"
        assert (await proc.read("fd:1", read_all=True)).text == "one\ntwo\nthree"


async def test_a_file_is_ingested_and_exported(redis_url: str, tmp_path: Path) -> None:
    text = "línea\n" * 500_000

    async with await aio.connect(redis_url) as store:
        proc = await store.process("triage")
        made = await proc.ingest(io.BytesIO(text.encode()), source="big")
        part = await proc.extract(made.fd, mode="line", start=2, count=3)
        done = await proc.export(made.fd, tmp_path / "out")

        assert (part.chars, part.origin and part.origin.lines) == (18, "2-4")
        assert done.size_bytes == len(text.encode())
        with pytest.raises(TargetExists):
            await proc.export(made.fd, tmp_path / "out", exist_ok=False)
    assert (tmp_path / "out").read_text() == text


async def test_processes_share_descriptors_and_end(redis_url: str) -> None:
    async with await aio.connect(redis_url) as store:
        proc = await store.process("triage")
        await proc.create("x")
        child, twin = await proc.child(share=["fd:1"]), await proc.fork()
        await proc.close("fd:1")

        assert (await child.read("fd:1")).text == (await twin.read("fd:1")).text == "x"
        await twin.end()
        tree = await store.tree("triage")
        assert (tree.fds, tree.live, tree.processes) == (1, 2, 3)
        assert [p.id for p in await store.processes()] == ["triage", "triage.1", "triage.2"]
        assert [tree.id for tree in await store.trees()] == ["triage"]
        assert (await store.process("triage.1")).id == child.id


async def test_concurrent_calls_do_not_mix_up_replies(redis_url: str) -> None:
    async with await aio.connect(redis_url) as store:
        proc = await store.process("triage")
        texts = [f"text {n}\n" * 3000 for n in range(40)]

        made = await asyncio.gather(*(proc.create(text) for text in texts))
        read = await asyncio.gather(*(proc.read(d.fd, read_all=True) for d in made))

        assert sorted(d.fd for d in made) == sorted(f"fd:{n}" for n in range(1, 41))
        assert [found.text for found in read] == texts


async def test_calls_cancelled_at_any_moment_leave_the_store_usable(redis_url: str) -> None:
    async with await aio.connect(redis_url) as store:
        proc = await store.process("triage")
        text = "line\n" * 400_000
        await proc.create(text)
        cancelled = 0

        for n in range(60):
            try:
                async with asyncio.timeout(n / 40_000):
                    assert (await proc.read("fd:1", read_all=True)).text == text
            except TimeoutError:
                cancelled += 1
            try:
                async with asyncio.timeout(n / 100_000):
                    await proc.create(f"{n}\n" * 1000)
            except TimeoutError:
                cancelled += 1
            assert (await proc.read("fd:1", mode="line", start=7)).text == "line\n"

        assert cancelled > 10
        numbers = {d.fd: (await proc.read(d.fd, mode="line")).text for d in (await proc.list())[1:]}
        assert len(set(numbers.values())) == len(numbers)


async def test_a_wait_for_a_running_process_ends_at_its_timeout(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FDSTORE_BROKER_URL", "redis://127.0.0.1:1")  # a Cluster has no queue; none is used
    async with await aio.connect(redis_url) as store, asyncio.timeout(20):
        proc = await store.process("triage")
        child = await proc.child()

        waited = await aio.Toolset(proc, enabled=["wait"]).call("wait", {"target": child.id, "seconds": 0.01})

        assert 'state="open"' in waited.content


# --- cancelled calls and their files


@contextmanager
def no_file_left_open() -> Iterator[None]:
    """Fail if the block leaves a file open; connections are the store's."""
    before = _open_files()
    yield
    assert _open_files() <= before


def _open_files() -> set[tuple[str, str]]:
    found = set()
    for number in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # closed meanwhile
            found.add((number, os.readlink(f"/proc/self/fd/{number}")))
    return {(number, target) for number, target in found if target.startswith("/")}


@pytest.mark.thorough("many moments")
@pytest.mark.parametrize("mode", ["write", "append"])
async def test_an_export_cancelled_at_any_moment_leaves_no_hidden_file_and_no_descriptor(
    redis_url: str, tmp_path: Path, mode: Any
) -> None:
    old, text = b"old\n" * 2_000_000, "new\n" * 300_000
    path = tmp_path / "out.txt"
    seen: set[bytes] = set()
    async with await aio.connect(redis_url) as store:
        proc = await store.process("triage")
        await proc.create(text)
        cancelled = 0
        with no_file_left_open():
            for n in range(24):
                path.write_bytes(old)
                exporting = asyncio.create_task(proc.export("fd:1", path, mode=mode))
                if n % 2:
                    while not exporting.done() and len(os.listdir(tmp_path)) == 1:
                        await asyncio.sleep(0)  # until the hidden file is there
                await asyncio.sleep(n / 3000)
                exporting.cancel()
                await asyncio.wait([exporting])
                cancelled += exporting.cancelled()
                assert os.listdir(tmp_path) == ["out.txt"]
                seen.add(path.read_bytes())

    assert cancelled > 6
    assert seen <= {old, (old if mode == "append" else b"") + text.encode()}


async def test_a_cancelled_export_returns_after_its_thread_closed_the_file(
    redis_url: str, tmp_path: Path
) -> None:
    writes, may_go_on = threading.Event(), threading.Event()

    def progress(_: int) -> None:
        writes.set()
        assert may_go_on.wait(PATIENCE_S)

    async with await aio.connect(redis_url) as store:
        proc = await store.process("triage")
        await proc.create("new\n" * 1000)
        with no_file_left_open():
            exporting = asyncio.create_task(proc.export("fd:1", tmp_path / "out.txt", progress=progress))
            await asyncio.to_thread(writes.wait, 20)

            for _ in range(3):
                exporting.cancel()
                await asyncio.sleep(0)
                assert not exporting.done()
                assert (await proc.read("fd:1#L1")).text == "new\n"
            may_go_on.set()
            await asyncio.wait([exporting])

            assert exporting.cancelled()
            assert os.listdir(tmp_path) == []


async def test_a_spawn_cancelled_while_it_opens_a_file_leaves_no_descriptor(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FDSTORE_BROKER_URL", "redis://127.0.0.1:1")  # a Cluster has no queue; none is used
    (tmp_path / "agent.toml").write_text('[model]\nname = "any"\n[prompt]\nsystem = "You are one."\n')
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "notes").write_text("text")
    real_open = os.open
    opens, may_go_on = threading.Event(), threading.Event()

    def slow_open(path: Any, *arguments: Any, **options: Any) -> int:
        opened = real_open(path, *arguments, **options)
        if path == "notes":
            opens.set()
            assert may_go_on.wait(PATIENCE_S)
        return opened

    async with await aio.connect(redis_url) as store:
        proc = await store.process("triage")
        tools = aio.Toolset(
            proc,
            enabled=["spawn", "wait", "read_fd"],
            programs={"one": tmp_path / "agent.toml"},
            preload_root=tmp_path / "docs",
        )
        with no_file_left_open():
            monkeypatch.setattr(os, "open", slow_open)
            arguments = {"program_name": "one", "query": "Go.", "additional_preload_files": ["notes"]}
            spawning = asyncio.create_task(tools.call("spawn", arguments))
            await asyncio.to_thread(opens.wait, 20)
            spawning.cancel()
            await asyncio.sleep(0)
            may_go_on.set()
            await asyncio.wait([spawning])
            assert spawning.cancelled()


# --- event loops


@pytest.mark.parametrize("ask", ["process", "read", "reach", "close"])
def test_a_store_awaited_in_a_second_event_loop_says_so(redis_url: str, ask: str) -> None:
    async def open_and_read() -> tuple[aio.Store, aio.Process]:
        store = await aio.connect(redis_url)
        proc = await store.process("triage")
        await proc.create("one\n")
        await proc.read("fd:1")
        return store, proc

    async def again() -> None:
        await {
            "process": lambda: store.process("other"),
            "read": lambda: proc.read("fd:1"),
            "reach": store.reach,
            "close": store.close,
        }[ask]()

    with asyncio.Runner() as first, asyncio.Runner() as second:
        store, proc = first.run(open_and_read())

        with pytest.raises(WrongEventLoop, match="belongs to another event loop; connect in each loop"):
            second.run(again())

        first.run(store.close())


def test_a_closed_store_can_be_used_in_another_event_loop(redis_url: str) -> None:
    async def read(store: aio.Store) -> str:
        text = (await (await store.process("triage")).read("fd:1")).text
        await store.close()
        return text

    async def create() -> aio.Store:
        store = await aio.connect(redis_url)
        await (await store.process("triage")).create("one\n")
        await store.close()
        return store

    store = asyncio.run(create())

    assert [asyncio.run(read(store)) for _ in range(2)] == ["one\n"] * 2


def test_a_store_that_is_dropped_without_close_leaves_no_connection_in_its_loop(
    redis_url: str, execute: Any
) -> None:
    def clients() -> int:
        return len(execute("CLIENT", "LIST").splitlines())

    async def drop_some() -> int:
        for _ in range(10):
            store = await fdstore.aio.connect(redis_url)
            await (await store.process("triage")).list()
            del store
        gc.collect()
        await asyncio.sleep(0)
        return clients()

    before = clients()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        asyncio.run(drop_some())
        gc.collect()
    wait_until(lambda: clients() <= before, what="the end of the connections")
