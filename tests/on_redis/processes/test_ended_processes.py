"""The descriptors of ended processes are dropped, and their contents freed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fdstore.client import Process, Store
from fdstore.errors import Fenced, NotFound
from fdstore.store.contents import descriptors
from fdstore.store.processes import processes
from tests.on_redis.child_agents import agent


@pytest.mark.parametrize("state", ["exited", "failed", "cancelled"])
def test_descriptors_of_an_ended_process_are_dropped_and_free_their_contents(
    store: Store, proc: Process, execute: Any, state: Any
) -> None:
    proc.create("x" * 100_000)
    proc.create("kept")
    store.run(processes.end(proc.handle, state, release=False))

    proc.close("fd:1")

    assert [d.fd for d in proc.list()] == ["fd:2"]
    assert (store.tree("triage").bytes, store.tree("triage").fds) == (4, 1)
    assert execute("KEYS", "*fd:1*") == []


def test_a_content_held_by_a_child_survives_closing_it_in_the_ended_parent(
    store: Store, proc: Process
) -> None:
    proc.create("shared")
    child = proc.child(share=["fd:1"])
    store.run(processes.end(proc.handle, "failed", release=False))

    proc.close("fd:1")

    assert child.read("fd:1").text == "shared"
    with pytest.raises(NotFound):
        proc.read("fd:1")


def test_an_older_attempt_of_an_ended_process_drops_nothing(store: Store, proc: Process) -> None:
    proc.create("x")
    child = agent(store, proc, "running")
    store.run(processes.cancel("fdstore", child.id))

    with pytest.raises(Fenced):
        store.run(descriptors.close(child, "fd:1"))

    assert [d.fd for d in Process(store, child).list()] == ["fd:1"]


def test_an_ended_process_accepts_no_new_descriptors(store: Store, proc: Process) -> None:
    proc.create("x")
    store.run(processes.end(proc.handle, "failed", release=False))

    for write in (
        lambda: proc.create("y"),
        proc.fork,
        lambda: proc.open_stream(),
        lambda: proc.extract("fd:1"),
    ):
        with pytest.raises(Fenced):
            write()


def test_ending_a_killed_process_drops_its_descriptors(store: Store, proc: Process) -> None:
    for number in range(processes.RELEASE_PIECE + 7):
        proc.create(str(number))
    store.run(processes.cancel("fdstore", "triage"))
    assert store.tree("triage").fds == processes.RELEASE_PIECE + 7

    proc.end()

    assert (proc.list(), store.tree("triage").bytes) == ([], 0)
    assert store.tree("triage").members[0].state == "cancelled"


def test_descriptors_of_an_ended_process_are_dropped_in_a_full_redis(
    store: Store, proc: Process, fill_redis: Callable[[], None]
) -> None:
    proc.create("x" * 100_000)
    store.run(processes.cancel("fdstore", "triage"))
    fill_redis()

    store.process("triage").close("fd:1")

    assert store.tree("triage").bytes == 0


@pytest.fixture(params=[1, 10_000])
def tables_as_lists(execute: Any, request: pytest.FixtureRequest) -> Iterator[None]:
    """Hash tables of up to so many fields are lists in Redis's memory, which HSCAN returns whole."""
    setting = "hash-max-ziplist-entries"
    before = execute("CONFIG", "GET", setting)[1]
    execute("CONFIG", "SET", setting, request.param)
    yield
    execute("CONFIG", "SET", setting, before)


@pytest.mark.thorough("thousands of descriptors")
@pytest.mark.usefixtures("tables_as_lists")
def test_an_end_releases_a_large_table_in_pieces_and_passes_the_answer(
    store: Store, proc: Process, execute: Any
) -> None:
    count = 2 * processes.RELEASE_PIECE + 50
    for number in range(count - 50):
        proc.create(f"text {number}")
    for number in range(50):
        proc.put(f"name {number}", "text")
    child = proc.fork()
    answer = child.create("the answer").fd
    assert len(child.list()) == count + 1

    store.run(processes.end(child.handle, answer_fd=answer))

    assert (child.list(), child.list("name"), store.tree("triage").fds) == ([], [], count + 1)
    passed = [d.fd for d in proc.list() if d.fd.startswith("fd:")][-1]
    assert (proc.read(passed).text, proc.read("name:name 7").text) == ("the answer", "text")
    proc.end()
    assert store.tree("triage").fds == 0
    assert execute("KEYS", "*:fd:*") == []
