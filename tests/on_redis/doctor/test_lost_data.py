"""After Redis lost data (a truncated log, a flush), no text is mistaken for another: a client that knows a
descriptor reads the known text or gets `store_lost_data`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fdstore
from fdstore import Toolset
from fdstore.client import Process, Store
from fdstore.errors import StoreLostData

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
def snapshot(execute: Any) -> Callable[[], Rewind]:
    """`restore = snapshot()` saves the keys of Redis; `restore()` restores them, as a truncated log does."""

    def take_snapshot() -> Rewind:
        dumps = {key: (max(execute("PTTL", key), 0), execute("DUMP", key)) for key in execute("KEYS", "*")}

        def restore() -> None:
            execute("FLUSHALL")
            for key, (ttl_ms, dump) in dumps.items():
                execute("RESTORE", key, ttl_ms, dump)

        return restore

    return take_snapshot


def recreate(redis_url: str, execute: Any, text: str = NEW) -> None:
    """Flush Redis and let another client create a text under the same names."""
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
def test_another_text_under_a_known_number_is_never_returned(
    proc: Process, redis_url: str, execute: Any, read: Callable[[Process], Any], text: str
) -> None:
    recreate(redis_url, execute, text)

    for _ in range(2):
        with pytest.raises(StoreLostData, match="fd:1: its number now belongs to another text"):
            read(proc)


@pytest.mark.parametrize("read", READS)
def test_a_text_in_an_emptied_redis_is_reported_as_lost(
    proc: Process, redis_url: str, execute: Any, read: Callable[[Process], Any]
) -> None:
    execute("FLUSHALL")
    with pytest.raises(StoreLostData, match="process triage"):
        read(proc)

    recreate(redis_url, execute)
    with pytest.raises(StoreLostData, match="another text"):
        read(proc)


NAMED: list[Callable[[Process], Any]] = [
    lambda proc: proc.read("name:plan"),
    lambda proc: proc.read("name:plan#L1"),
    lambda proc: proc.read_bytes("name:plan"),
    lambda proc: proc.stat("name:plan"),
    lambda proc: proc.find("plan"),
    lambda proc: proc.list(prefix=""),
    lambda proc: proc.search("name:plan", "x"),
]


@pytest.mark.parametrize("read", NAMED)
def test_a_name_in_an_emptied_redis_is_reported_as_lost(
    store: Store, execute: Any, read: Callable[[Process], Any]
) -> None:
    proc = store.process("planner")
    proc.put("plan", OLD)
    execute("FLUSHALL")

    with pytest.raises(StoreLostData, match="process planner"):
        read(proc)


def test_an_export_of_a_lost_text_leaves_the_old_file(
    proc: Process, redis_url: str, execute: Any, tmp_path: Path
) -> None:
    (tmp_path / "out").write_text("before")
    recreate(redis_url, execute)

    with pytest.raises(StoreLostData):
        proc.export("fd:1", tmp_path / "out")

    assert (tmp_path / "out").read_text() == "before"


def test_a_model_gets_an_error_result_for_a_lost_text(proc: Process, redis_url: str, execute: Any) -> None:
    tools = Toolset(proc)
    recreate(redis_url, execute)

    answer = tools.call("read_fd", {"fd": "fd:1"})

    assert answer.is_error
    assert 'type="store_lost_data"' in answer.content


def test_a_content_that_lacks_some_pages_is_reported_as_lost(proc: Process, execute: Any) -> None:
    execute("HDEL", "fdstore:{triage}:triage:fd:1:pages", 4)

    assert proc.read("fd:1", start=3).text in OLD
    for read in (READS[2], READS[5], lambda proc: proc.read("fd:1", start=4)):
        with pytest.raises(StoreLostData, match="missing"):
            read(proc)
    proc.close("fd:1")


@pytest.mark.parametrize("key", ["pages", "index"])
def test_a_content_without_pages_or_index_is_reported_as_lost(
    proc: Process, store: Store, execute: Any, key: str
) -> None:
    execute("DEL", f"fdstore:{{triage}}:triage:fd:1:{key}")

    with pytest.raises(StoreLostData):
        store.process("triage").read("fd:1")
    proc.close("fd:1")


def test_a_number_that_a_client_has_seen_is_never_reused(
    proc: Process, snapshot: Callable[[], Rewind]
) -> None:
    restore = snapshot()
    for text in ("two", "three"):
        proc.create(text)
    first = proc.child()
    restore()

    for lost in ("fd:2", "fd:3"):
        with pytest.raises(StoreLostData, match="no longer has this number"):
            proc.read(lost)
    assert proc.create("four").fd == "fd:4"
    assert proc.create("five").fd == "fd:5"
    assert proc.open_stream().fd == "fd:6"
    assert proc.child().id != first.id
    assert proc.read("fd:4").text == "four"
    assert proc.read("fd:1").text == OLD[: len(proc.read("fd:1").text)]


def test_a_child_created_after_a_loss_gets_no_number_its_parent_has_seen(
    proc: Process, snapshot: Callable[[], Rewind]
) -> None:
    restore = snapshot()
    seen = proc.create("two").fd
    restore()

    child = proc.child(share=["fd:1"])

    assert child.create("the child's").fd != seen
    assert child.read("fd:1", start=2).text in OLD


def test_a_number_reused_by_another_client_after_a_loss_is_reported_as_lost(
    proc: Process, snapshot: Callable[[], Rewind], store: Store
) -> None:
    restore = snapshot()
    proc.create("the first")
    restore()
    assert store.process("triage").create("the second").fd == "fd:2"

    with pytest.raises(StoreLostData, match="another text"):
        proc.read("fd:2")


def test_following_a_stream_that_lost_its_end_raises_an_error(
    proc: Process, snapshot: Callable[[], Rewind]
) -> None:
    stream = proc.open_stream()
    stream.write("kept\n")
    stream.flush()
    restore = snapshot()
    stream.write("lost\n")
    stream.flush()
    pieces = proc.follow(stream.fd)
    assert next(pieces) == "kept\nlost\n"
    restore()

    with pytest.raises(StoreLostData, match="fewer than were read"):
        next(pieces)
    proc.end()
