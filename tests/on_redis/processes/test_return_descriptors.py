"""A process that hands back: its parent has its descriptors, and the session of its programs."""

from __future__ import annotations

import pytest

from fdstore.client import Process, Store
from fdstore.errors import Fenced
from fdstore.store.doctor.audit import check_tree
from fdstore.store.processes import processes, python_state


def child_of(store: Store, proc: Process) -> Process:
    return Process(store, store.run(processes.create_child(proc.handle, None)))


def leave(store: Store, proc: Process, session: bytes) -> None:
    store.run(python_state.begin(proc.handle, "c", 1))
    store.run(python_state.end(proc.handle, "c", session))


def session_of(store: Store, proc: Process) -> bytes | None:
    return store.run(python_state.read(proc.handle, "other")).session


def damage(store: Store, proc: Process) -> list[object]:
    return list(store.run(check_tree(proc.handle.keys.tree)))


def test_the_parent_has_the_descriptors_and_the_session_after_the_child_has_released_its_own(
    store: Store, proc: Process
) -> None:
    proc.create("given")
    child = child_of(store, proc)
    made = child.create("made")
    child.put("notes", "named")
    leave(store, child, b"variables")

    store.run(processes.return_descriptors(child.handle))
    store.run(processes.return_descriptors(child.handle))
    child.end()

    assert proc.read(made.fd).text == "made"
    assert proc.read("name:notes").text == "named"
    assert len(proc.list()) == 3
    assert session_of(store, proc) == b"variables"
    proc.create("later")
    assert len(proc.list()) == 4
    assert damage(store, proc) == []


def test_a_name_means_the_content_of_the_child(store: Store, proc: Process) -> None:
    proc.put("notes", "old")
    child = child_of(store, proc)
    child.put("notes", "new")

    store.run(processes.return_descriptors(child.handle))
    child.end()

    assert proc.read("name:notes").text == "new"
    assert store.tree(proc.id).fds == 1
    assert damage(store, proc) == []


def test_a_number_that_the_parent_has_given_meanwhile_keeps_its_content_and_the_session(
    store: Store, proc: Process
) -> None:
    leave(store, proc, b"before")
    child = child_of(store, proc)
    assert child.create("of the child").fd == proc.create("of the parent").fd
    leave(store, child, b"names fd:1")

    store.run(processes.return_descriptors(child.handle))
    store.run(processes.return_descriptors(child.handle))

    assert [proc.read(each.fd).text for each in proc.list()] == ["of the parent", "of the child"]
    assert session_of(store, proc) == b"before"


def test_a_parent_that_has_ended_stays_as_it_is(store: Store, proc: Process) -> None:
    child = child_of(store, proc)
    child.create("made")
    store.run(processes.end(proc.handle, release=False))

    store.run(processes.return_descriptors(child.handle))

    assert list(proc.list()) == []


def test_a_process_that_has_ended_hands_nothing_back(store: Store, proc: Process) -> None:
    child = child_of(store, proc)
    child.end()

    with pytest.raises(Fenced):
        store.run(processes.return_descriptors(child.handle))
