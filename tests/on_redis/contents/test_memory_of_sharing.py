"""Sharing is by reference: children and forks hold contents without copying them."""

from __future__ import annotations

from typing import Any

from fdstore.client import Process
from tests.stored_keys import lasting_keys


def memory(execute: Any) -> int:
    """Return the memory in bytes of all keys of the tree that do not expire."""
    keys = lasting_keys(execute, "fdstore:{triage}*")
    return sum(execute("MEMORY", "USAGE", key, "SAMPLES", 0) for key in keys)


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
