"""Sharing is by reference: children and forks hold contents without copying them."""

from __future__ import annotations

from typing import Any

from fdstore.client import Process


def memory(execute: Any) -> int:
    """Return the memory in bytes of all keys of the tree that do not expire."""
    return sum(
        execute("MEMORY", "USAGE", key, "SAMPLES", 0)
        for key in execute("KEYS", "fdstore:{triage}*")
        if execute("PTTL", key) == -1
    )


def test_a_child_that_shares_ten_megabytes_costs_less_than_ten_kilobytes(proc: Process, execute: Any) -> None:
    proc.create("a line of ten megabytes\n" * 420_000)
    before = memory(execute)

    child = proc.child(share=["fd:1"])

    assert before > 10_000_000
    assert memory(execute) - before < 10_000
    assert child.read("fd:1", start=2000).text


def test_a_fork_of_a_table_costs_its_descriptors_and_no_text(proc: Process, execute: Any) -> None:
    for _ in range(20):
        proc.create("x" * 500_000)
    before = memory(execute)

    proc.fork()

    assert memory(execute) - before < 10_000


def test_closing_the_last_descriptor_frees_all_memory(proc: Process, execute: Any) -> None:
    empty = memory(execute)
    proc.create("x" * 5_000_000)
    child = proc.child(share=["fd:1"])

    proc.close("fd:1")
    child.end()

    assert memory(execute) - empty < 10_000  # the child's record and its end event
