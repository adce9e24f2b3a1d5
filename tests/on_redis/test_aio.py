"""The awaited surface is the blocking one: the same calls, arguments, results and errors."""

from __future__ import annotations

import asyncio
import inspect
import io
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

import fdstore
from fdstore import aio, client
from fdstore.errors import InvalidArgument, NotFound, TargetExists

T = TypeVar("T")
DUNDERS = {"__enter__": "__aenter__", "__exit__": "__aexit__"}


def on_a_store(url: str, work: Callable[[aio.Store], Awaitable[T]]) -> T:
    async def main() -> T:
        async with await aio.connect(url) as store:
            return await work(store)

    return asyncio.run(main())


def public(kind: type) -> dict[str, Any]:
    return {
        name: member
        for name, member in vars(kind).items()
        if not name.startswith("_") or name in DUNDERS or name in DUNDERS.values()
    }


# --- the surface


@pytest.mark.parametrize(
    ("blocking", "awaited"),
    [
        (client.Store, aio.Store),
        (client.Process, aio.Process),
        (fdstore.StreamWriter, aio.StreamWriter),
        (fdstore.Toolset, aio.Toolset),
    ],
)
def test_every_call_is_there_with_the_same_arguments(blocking: type, awaited: type) -> None:
    twins = public(awaited)

    assert {DUNDERS.get(name, name) for name in public(blocking)} == set(twins)
    for name, original in public(blocking).items():
        twin = twins[DUNDERS.get(name, name)]
        assert isinstance(original, property) == isinstance(twin, property)
        if callable(original):
            ours, theirs = inspect.signature(original), inspect.signature(twin)
            assert list(ours.parameters.values()) == list(theirs.parameters.values()), name


@pytest.mark.parametrize("kind", [aio.Store, aio.Process, aio.StreamWriter, aio.Toolset])
def test_every_call_is_documented(kind: type) -> None:
    for name, member in public(kind).items():
        assert name in DUNDERS.values() or inspect.getdoc(member), name


def test_connect_takes_the_same_arguments() -> None:
    assert list(inspect.signature(aio.connect).parameters.values()) == list(
        inspect.signature(client.connect).parameters.values()
    )


@pytest.mark.parametrize("kind", [client.Process, client.Store])
def test_public_calls_have_a_docstring_with_errors_or_no_way_to_fail(kind: type) -> None:
    for name, member in public(kind).items():
        if name not in DUNDERS:
            assert inspect.getdoc(member), name


# --- the main flows


def test_text_comes_back(redis_url: str) -> None:
    async def work(store: aio.Store) -> None:
        proc = await store.process("triage")
        made = await proc.create("one\ntwo\nthree", page_size=5)

        assert made == await proc.stat(made.fd)
        assert [d.fd for d in await proc.list()] == ["fd:1"]
        assert (await proc.read("fd:1", start=2)).text == "two\n"
        assert (await proc.read("fd:1#L2-3")).text == "two\nthree"
        assert (await proc.read("fd:1", read_all=True)).text == "one\ntwo\nthree"

    on_a_store(redis_url, work)


def test_a_file_goes_in_and_out(redis_url: str, tmp_path: Path) -> None:
    text = "línea\n" * 500_000

    async def work(store: aio.Store) -> None:
        proc = await store.process("triage")
        made = await proc.ingest(io.BytesIO(text.encode()), source="big")
        part = await proc.extract(made.fd, mode="line", start=2, count=3)
        done = await proc.export(made.fd, tmp_path / "out")

        assert (part.chars, part.origin and part.origin.lines) == (18, "2-4")
        assert done.size_bytes == len(text.encode())
        with pytest.raises(TargetExists):
            await proc.export(made.fd, tmp_path / "out", exist_ok=False)

    on_a_store(redis_url, work)
    assert (tmp_path / "out").read_text() == text


def test_processes_share_and_end(redis_url: str) -> None:
    async def work(store: aio.Store) -> None:
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

    on_a_store(redis_url, work)


def test_errors_are_the_same(redis_url: str) -> None:
    async def work(store: aio.Store) -> None:
        proc = await store.process("triage")
        await proc.create("x")

        with pytest.raises(NotFound, match="there are: fd:1"):
            await proc.read("fd:2")
        with pytest.raises(InvalidArgument):
            await proc.read("fd:1", start=0)
        with pytest.raises(NotFound):
            await store.process("triage.9")

    on_a_store(redis_url, work)


def test_calls_made_at_once_do_not_mix(redis_url: str) -> None:
    async def work(store: aio.Store) -> None:
        proc = await store.process("triage")
        texts = [f"text {n}\n" * 3000 for n in range(40)]

        made = await asyncio.gather(*(proc.create(text) for text in texts))
        read = await asyncio.gather(*(proc.read(d.fd, read_all=True) for d in made))

        assert sorted(d.fd for d in made) == sorted(f"fd:{n}" for n in range(1, 41))
        assert [found.text for found in read] == texts

    on_a_store(redis_url, work)


def test_calls_cancelled_at_any_moment_leave_the_store_usable(redis_url: str) -> None:
    async def work(store: aio.Store) -> None:
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

    on_a_store(redis_url, work)


def test_a_wait_for_a_process_that_goes_on_is_over_in_its_time(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FDSTORE_BROKER_URL", "redis://127.0.0.1:1")  # a Cluster has no queue; none is used

    async def work(store: aio.Store) -> str:
        proc = await store.process("triage")
        child = await proc.child()
        tools = aio.Toolset(proc, enabled=["wait"])
        async with asyncio.timeout(20):
            return (await tools.call("wait", {"target": child.id, "seconds": 0.01})).content

    assert 'state="open"' in on_a_store(redis_url, work)


def test_both_surfaces_see_the_same_store(redis_url: str, store: client.Store) -> None:
    store.process("triage").create("from the blocking side")

    async def work(awaited: aio.Store) -> str:
        proc = await awaited.process("triage")
        await proc.create("from the other")
        return (await proc.read("fd:1")).text

    assert on_a_store(redis_url, work) == "from the blocking side"
    assert store.process("triage").read("fd:2").text == "from the other"


def test_a_cancelled_read_is_cancelled_wherever_it_is(redis_url):
    async def main() -> list[int]:
        store = await aio.connect(redis_url)
        proc = await store.process("p")
        await proc.create("x" * 3_000_000)
        survived = []
        for ticks in range(12):
            task = asyncio.create_task(proc.read("fd:1", read_all=True))
            for _ in range(ticks):
                await asyncio.sleep(0)
            task.cancel()
            try:
                await task
            except asyncio.CancelledError:
                continue
            survived.append(ticks)
        await store.close()
        return survived

    assert asyncio.run(main()) == []
