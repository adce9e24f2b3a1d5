"""A Redis that lost data (its log lost its tail, it was emptied) never shows one text as another: a client
that knows a descriptor reads the text it knows or is told `store_lost_data`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fdstore
from fdstore import Toolset
from fdstore.client import Process, Store
from fdstore.errors import NotFound, StoreLostData

OLD = "".join(f"old line {number}\n" for number in range(5000))
NEW = "".join(f"new line {number}\n" for number in range(900))

Rewind = Callable[[], None]


@pytest.fixture
def proc(store: Store) -> Process:
    """A process that knows a text of several pages, and its index."""
    proc = store.process("triage")
    proc.create(OLD)
    proc.read("fd:1", start=3)
    return proc


@pytest.fixture
def rewind(execute: Any) -> Callable[[], Rewind]:
    """`put_back = rewind()` remembers what Redis holds, `put_back()` restores it: what a log without its
    tail leaves."""

    def remember() -> Rewind:
        dumps = {key: (max(execute("PTTL", key), 0), execute("DUMP", key)) for key in execute("KEYS", "*")}

        def put_back() -> None:
            execute("FLUSHALL")
            for key, (ttl_ms, dump) in dumps.items():
                execute("RESTORE", key, ttl_ms, dump)

        return put_back

    return remember


def recreated(redis_url: str, execute: Any, text: str = NEW) -> None:
    """Redis is emptied, and another client makes a text under the same names."""
    execute("FLUSHALL")
    with fdstore.connect(redis_url) as other:
        other.process("triage").create(text)


READS: list[Callable[[Process], Any]] = [
    lambda proc: proc.read("fd:1"),
    lambda proc: proc.read("fd:1", start=3),
    lambda proc: proc.read("fd:1#P2-4"),
    lambda proc: proc.read("fd:1#L4000-4001"),
    lambda proc: proc.read("fd:1#C5"),
    lambda proc: proc.read("fd:1", read_all=True),
    lambda proc: proc.stat("fd:1"),
    lambda proc: proc.search("fd:1", "line 7"),
    lambda proc: proc.extract("fd:1", mode="line", start=2),
    lambda proc: "".join(proc.follow("fd:1")),
]


@pytest.mark.parametrize("text", [NEW, OLD.replace("old", "new")], ids=["another size", "the same size"])
@pytest.mark.parametrize("read", READS)
def test_another_text_under_a_known_number_is_never_read(
    proc: Process, redis_url: str, execute: Any, read: Callable[[Process], Any], text: str
) -> None:
    recreated(redis_url, execute, text)

    for _ in range(2):
        with pytest.raises(StoreLostData, match="fd:1: its number now belongs to another text"):
            read(proc)


@pytest.mark.parametrize("read", READS)
def test_a_text_that_is_gone_with_everything_else_is_called_lost(
    proc: Process, redis_url: str, execute: Any, read: Callable[[Process], Any]
) -> None:
    execute("FLUSHALL")
    with pytest.raises(StoreLostData, match="process triage"):
        read(proc)

    recreated(redis_url, execute)
    with pytest.raises(StoreLostData, match="another text"):
        read(proc)


def test_the_awaited_client_never_reads_another_text(redis_url: str, execute: Any) -> None:
    async def check() -> None:
        store = await fdstore.aio.connect(redis_url)
        proc = await store.process("triage")
        await proc.create(OLD)
        await proc.read("fd:1", start=3)
        recreated(redis_url, execute)
        for arguments in ({}, {"start": 3}, {"read_all": True}, {"mode": "line", "start": 5}):
            with pytest.raises(StoreLostData):
                await proc.read("fd:1", **arguments)  # type: ignore[arg-type]
        await store.close()

    asyncio.run(check())


def test_an_export_of_a_lost_text_leaves_the_old_file(
    proc: Process, redis_url: str, execute: Any, tmp_path: Path
) -> None:
    (tmp_path / "out").write_text("before")
    recreated(redis_url, execute)

    with pytest.raises(StoreLostData):
        proc.export("fd:1", tmp_path / "out")

    assert (tmp_path / "out").read_text() == "before"


def test_a_model_is_told_that_a_text_was_lost(proc: Process, redis_url: str, execute: Any) -> None:
    tools = Toolset(proc)
    recreated(redis_url, execute)

    answer = tools.call("read_fd", {"fd": "fd:1"})

    assert answer.is_error
    assert 'type="store_lost_data"' in answer.content


def test_a_text_that_another_client_closed_is_not_called_lost(proc: Process, store: Store) -> None:
    store.process("triage").close("fd:1")

    with pytest.raises(NotFound):
        proc.read("fd:1", start=3)


def test_a_content_without_some_of_its_pages_is_called_lost(proc: Process, execute: Any) -> None:
    execute("HDEL", "fdstore:{triage}:triage:fd:1:pages", 4)

    assert proc.read("fd:1", start=3).text in OLD
    for read in (READS[2], READS[5], lambda proc: proc.read("fd:1", start=4)):
        with pytest.raises(StoreLostData, match="missing"):
            read(proc)
    proc.close("fd:1")


@pytest.mark.parametrize("key", ["pages", "index"])
def test_a_content_without_pages_or_index_is_called_lost_by_a_client_that_meets_it(
    proc: Process, store: Store, execute: Any, key: str
) -> None:
    execute("DEL", f"fdstore:{{triage}}:triage:fd:1:{key}")

    with pytest.raises(StoreLostData):
        store.process("triage").read("fd:1")
    proc.close("fd:1")


def test_a_number_that_a_client_has_seen_is_never_given_out_again(
    proc: Process, rewind: Callable[[], Rewind]
) -> None:
    put_back = rewind()
    for text in ("two", "three"):
        proc.create(text)
    first = proc.child()
    put_back()

    for lost in ("fd:2", "fd:3"):
        with pytest.raises(StoreLostData, match="no longer has this number"):
            proc.read(lost)
    assert proc.create("four").fd == "fd:4"
    assert proc.create("five").fd == "fd:5"
    assert proc.open_stream().fd == "fd:6"
    assert proc.child().id != first.id
    assert proc.read("fd:4").text == "four"
    assert proc.read("fd:1").text == OLD[: len(proc.read("fd:1").text)]


def test_a_child_made_after_a_loss_shares_no_number_with_what_its_parent_has_seen(
    proc: Process, rewind: Callable[[], Rewind]
) -> None:
    put_back = rewind()
    seen = proc.create("two").fd
    put_back()

    child = proc.child(share=["fd:1"])

    assert child.create("the child's").fd != seen
    assert child.read("fd:1", start=2).text in OLD


def test_a_number_that_another_client_took_after_a_loss_is_called_lost(
    proc: Process, rewind: Callable[[], Rewind], store: Store
) -> None:
    put_back = rewind()
    proc.create("the first")
    put_back()
    assert store.process("triage").create("the second").fd == "fd:2"

    with pytest.raises(StoreLostData, match="another text"):
        proc.read("fd:2")


def test_a_follower_of_a_stream_that_lost_its_end_is_told(
    proc: Process, rewind: Callable[[], Rewind]
) -> None:
    stream = proc.open_stream()
    stream.write("kept\n")
    stream.flush()
    put_back = rewind()
    stream.write("lost\n")
    stream.flush()
    pieces = proc.follow(stream.fd)
    assert next(pieces) == "kept\nlost\n"
    put_back()

    with pytest.raises(StoreLostData, match="fewer than were read"):
        next(pieces)
    proc.end()
