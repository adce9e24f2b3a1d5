"""Forks are created once, all or none, and only where the conversation is stored."""

from __future__ import annotations

from typing import Any

import pytest

from fdstore import TreeLimits
from fdstore.client import Process, Store
from fdstore.errors import InvalidArgument, NotFound, SpawnLimit
from fdstore.store.processes import forks
from fdstore.store.processes.processes import StoredProgram
from fdstore.toolset._sync import Toolset
from fdstore.wire.operation import Operation


def serve_request(request: Any) -> Operation[Any]:
    """Return an operation that sends one request and returns its reply."""
    return (yield request)


def finish_operation(operation: Operation[Any], reply: Any) -> Operation[Any]:
    """Run an operation that waits for this reply to its end."""
    while True:
        reply = yield operation.send(reply)


def test_forks_are_cancelled_if_another_process_uses_up_the_limit_meanwhile(
    store: Store, proc: Process
) -> None:
    root = store.process("small", limits=TreeLimits(tree_live=4))
    making = forks.create_copies(root.handle, [("{}", "")] * 3, StoredProgram("p", "0", "{}"), "toolu_1")

    looked = store.run(serve_request(next(making)))
    root.child()
    with pytest.raises(SpawnLimit, match="tree_live"):
        store.run(finish_operation(making, looked))

    states = [(member.id, member.state) for member in store.tree("small").members]
    assert states == [
        ("small", "open"),
        ("small.1", "open"),
        ("small.2", "cancelled"),
        ("small.3", "cancelled"),
    ]


def test_a_repeated_fork_call_creates_no_further_forks(store: Store, proc: Process) -> None:
    program = StoredProgram("p", "0", "{}")

    first = store.run(forks.create_copies(proc.handle, [("{}", "")] * 2, program, "toolu_1"))

    assert [copy.id for copy in first] == ["triage.1", "triage.2"]
    again = store.run(forks.create_copies(proc.handle, [("{}", "")] * 2, program, "toolu_1"))
    assert [copy.id for copy in again] == ["triage.1", "triage.2"]


def test_a_fork_in_a_tree_that_is_gone_says_so(store: Store, proc: Process) -> None:
    store.drop_tree("triage", kill=True)

    with pytest.raises(NotFound, match="process triage does not exist"):
        store.run(
            forks.create_copies(proc.handle, [("{}", "")] * 2, StoredProgram("p", "0", "{}"), "toolu_1")
        )


def test_a_custom_agent_loop_cannot_fork_and_gets_the_reason(proc: Process) -> None:
    with pytest.raises(InvalidArgument, match="the conversation of your own loop is not stored here"):
        Toolset(proc, enabled=["read_fd", "fork"])
