"""Children and forks hold contents by reference; a content is removed with its last holder."""

from __future__ import annotations

from typing import Any

import pytest

from fdstore.client import Process, Store
from fdstore.errors import InvalidArgument, NotFound
from fdstore.store.contents import contents
from fdstore.store.processes import processes


def named(process: Process, name: str, text: str) -> None:
    process.store.run(contents.create(process.handle, text, "answer", name=name))


def holders(execute: Any, number: int) -> set[bytes]:
    listed = execute("SMEMBERS", f"fdstore:{{triage}}:triage:fd:{number}:holders")
    return set(listed or [b"triage"])


# --- children


def test_a_child_reads_shared_descriptors_under_the_same_ids(
    proc: Process, assert_counted: Any, execute: Any
) -> None:
    proc.create("one")
    proc.create("two")
    proc.create("three")

    child = proc.child(share=["fd:1", 3])

    assert child.id == "triage.1"
    assert [d.fd for d in child.list()] == ["fd:1", "fd:3"]
    assert child.read("fd:3").text == "three"
    assert child.stat("fd:1") == proc.stat("fd:1")
    with pytest.raises(NotFound, match="there are: fd:1, fd:3"):
        child.read("fd:2")
    assert holders(execute, 1) == {b"triage", b"triage.1"}
    assert holders(execute, 2) == {b"triage"}
    assert_counted(execute)


def test_a_child_shares_a_named_passage_by_its_name(proc: Process) -> None:
    named(proc, "ref:plan", "dig")

    child = proc.child(share=["ref:plan"])

    assert child.read("ref:plan#C1-2").text == "di"
    assert [d.fd for d in child.list()] == ["ref:plan"]


def test_process_ids_show_descent(proc: Process, store: Store) -> None:
    first, second = proc.child(), proc.fork()
    grandchild = first.child()

    assert (first.id, second.id, grandchild.id) == ("triage.1", "triage.2", "triage.1.1")
    assert [p.parent for p in store.tree("triage").members] == [None, "triage", "triage", "triage.1"]


@pytest.mark.parametrize("share", [["fd:9"], ["fd:1", "ref:none"], ["fd:1", "fd:1", "fd:7"]])
def test_a_child_is_not_created_if_a_shared_descriptor_is_missing(
    proc: Process, store: Store, share: list[Any]
) -> None:
    proc.create("x")

    with pytest.raises(NotFound, match="there are: fd:1"):
        proc.child(share=share)

    assert len(store.tree("triage").members) == 1
    assert proc.child().id == "triage.1"


@pytest.mark.parametrize("share", [["fd:1#L1"], ["x"], [True], "fd:1", [None]])
def test_only_ids_are_shared(proc: Process, share: Any) -> None:
    proc.create("x")

    with pytest.raises(InvalidArgument):
        proc.child(share=share)


def test_sharing_a_descriptor_twice_holds_it_once(proc: Process, assert_counted: Any, execute: Any) -> None:
    proc.create("x")

    child = proc.child(share=["fd:1", 1, "fd-1"])
    proc.close("fd:1")
    child.close("fd:1")

    assert_counted(execute)
    assert execute("EXISTS", "fdstore:{triage}:triage:fd:1:pages") == 0


# --- forks


@pytest.mark.thorough("its size takes long")
def test_a_fork_of_a_thousand_descriptors_is_one_step(
    proc: Process, assert_counted: Any, execute: Any
) -> None:
    for n in range(1000):
        proc.create(str(n))

    twin = proc.fork()

    assert [d.fd for d in twin.list()] == [f"fd:{n}" for n in range(1, 1001)]
    assert_counted(execute)


# --- dropping


def test_the_last_release_removes_every_key_of_the_content(proc: Process, store: Store, execute: Any) -> None:
    proc.create("text\n" * 5000, page_size=10)
    child, twin = proc.child(share=["fd:1"]), proc.fork()

    proc.close("fd:1")
    child.end()
    assert store.tree("triage").fds == 1
    twin.close("fd:1")

    assert not [key for key in execute("KEYS", "*") if b":fd:" in key]
    tree = store.tree("triage")
    assert (tree.fds, tree.bytes) == (0, 0)


def test_every_call_refuses_a_closed_descriptor(proc: Process) -> None:
    proc.create("x")
    proc.create("y")

    proc.close("fd:1")

    for use in (proc.read, proc.stat, proc.close, proc.extract, lambda fd: proc.child(share=[fd])):
        with pytest.raises(NotFound, match="there are: fd:2"):
            use("fd:1")


def test_the_last_passage_of_a_name_wins_and_the_earlier_is_dropped(proc: Process, store: Store) -> None:
    other = store.process("triage")
    named(proc, "ref:plan", "first")
    assert other.read("ref:plan").text == "first"
    keeper = proc.child(share=["ref:plan"])

    named(proc, "ref:plan", "second")

    assert proc.read("ref:plan").text == other.read("ref:plan").text == "second"
    assert other.read("ref:plan", read_all=True).text == "second"
    assert keeper.read("ref:plan").text == "first"
    keeper.close("ref:plan")
    assert store.tree("triage").fds == 1


# --- ending


def test_ending_a_process_drops_its_descriptors_and_keeps_its_record(proc: Process, store: Store) -> None:
    proc.create("own")
    child = proc.child(share=["fd:1"])
    child.create("the child's")

    child.end()

    assert [d.fd for d in proc.list()] == ["fd:1"]
    record = store.tree("triage").members[1]
    assert (record.id, record.state, record.exit_code) == ("triage.1", "exited", 0)
    assert record.ended_at is not None
    assert store.process("triage.1").list() == []


@pytest.mark.thorough("thousands of descriptors")
def test_ending_a_process_drops_a_large_table_completely(
    proc: Process, assert_counted: Any, execute: Any
) -> None:
    for n in range(1100):
        proc.create(str(n))
    twin = proc.fork()

    twin.end()
    assert len(proc.list()) == 1100
    assert_counted(execute)

    proc.end()
    assert execute("EXISTS", "fdstore:{triage}:contents") == 0
    assert_counted(execute)


def test_an_answer_passed_to_the_parent_is_listed_under_its_number_there(proc: Process, store: Store) -> None:
    child = proc.child()
    for _ in range(4):
        child.create("work")
    answer = child.create("the answer")

    store.run(processes.end(child.handle, answer_fd=answer.fd))
    proc.create("after")

    assert [d.fd for d in proc.list()] == ["fd:1", "fd:2"]
    assert proc.read("fd:1").text == "the answer"


# --- what exists


def test_the_tree_counters_match_its_contents(proc: Process, store: Store) -> None:
    proc.create("é" * 10)
    child = proc.child(share=["fd:1"])
    child.create("abc")
    proc.fork().end()

    tree = store.tree("triage")

    assert (tree.id, tree.bytes, tree.fds, tree.processes, tree.live) == ("triage", 23, 2, 3, 2)
    assert [member.id for member in tree.members] == ["triage", "triage.1", "triage.2"]
    assert [member.state for member in tree.members] == ["open", "open", "exited"]
    assert tree.members[0].next_fd == 2


def test_all_processes_of_all_trees_are_listed(proc: Process, store: Store) -> None:
    store.process("another").child()
    proc.child().end()

    assert [p.id for p in store.processes()] == ["another", "another.1", "triage", "triage.1"]


def test_opening_an_unknown_child_does_not_create_it(proc: Process, store: Store) -> None:
    with pytest.raises(NotFound, match=r"process triage\.1 does not exist; there are: triage"):
        store.process("triage.1")
    with pytest.raises(NotFound, match="there are: triage"):
        store.process("nobody.1")
    with pytest.raises(NotFound, match="tree nobody does not exist; there are: triage"):
        store.tree("nobody")


def test_a_process_without_a_name_is_a_new_one_each_time(store: Store) -> None:
    first, second = store.process(), store.process()

    assert first.id != second.id
    assert {first.id, second.id} == {tree.id for tree in store.trees()}
