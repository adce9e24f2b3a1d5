"""Two workers that both believe they hold a process: only the later holder can write."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from fdstore.client import Store
from fdstore.store.processes import journal
from fdstore.testing import Reply, Request, call, say, turn
from tests.chaos.agents import answer_of, has_ended, launch, write_program
from tests.chaos.conftest import Execute, Faults
from tests.chaos.worker_pool import WorkerPool
from tests.servers import values_of
from tests.waiting import PATIENCE_S, wait_until

SECTIONS = """
[tools]
enabled = ["read_fd", "spawn"]
python = ["agent_tools:numbered", "agent_tools:rest"]
[linked_programs]
writer = "writer.toml"
"""


@pytest.fixture
def writer(tmp_path: Path) -> Path:
    return write_program(tmp_path, "writer", SECTIONS)


def everything(execute: Execute, tree: str) -> dict[bytes | str, Any]:
    """Return the values of all keys of a tree, except those that expire."""
    keys = execute("KEYS", f"fdstore:{{{tree}}}*")
    return values_of(execute, [key for key in keys if execute("PTTL", key) == -1])


@pytest.mark.thorough("another lease that ends")
@pytest.mark.parametrize(
    "late",
    [
        pytest.param(say("the words of a ghost"), id="an end"),
        pytest.param(
            turn(
                say("<ref id='ghost'>boo</ref>"),
                call("numbered", count=5000),
                call("spawn", program_name="writer", query="another"),
            ),
            id="tools, a reference and a child",
        ),
    ],
)
def test_a_worker_suspended_past_its_lease_writes_nothing_after_resuming(
    late: Reply, writer: Path, store: Store, worker_pool: WorkerPool, execute: Execute, faults: Faults
) -> None:
    asked = threading.Event()
    asleep = threading.Event()

    def script(request: Request) -> Reply:
        if not asked.is_set():
            asked.set()
            assert asleep.wait(PATIENCE_S)
            return late
        return call("numbered", count=3000) if request.turn_number == 0 else say("the right words")

    with worker_pool.scripted(script):
        sleeper = worker_pool.start_worker(1).wait_until_ready()
        root = launch(store, writer, "write")
        assert asked.wait(PATIENCE_S)
        sleeper.stop()
        faults.note("worker stopped past its lease")
        asleep.set()
        other = worker_pool.start_worker(1)
        wait_until(lambda: has_ended(store, root.id))
        before = everything(execute, root.id)

        sleeper.resume()
        wait_until(
            lambda: f"{root.id} is no longer run here" in sleeper.log,
            what="the sleeper's end of that attempt",
        )

    assert everything(execute, root.id) == before
    ended = answer_of(store, root.id)
    # the second attempt is alone until it is past the point of the loss, and gives the process back there
    assert (ended.text, ended.record.attempt, ended.record.losses) == ("the right words", 3, 1)
    assert [d.source for d in root.list()] == ["numbered"]
    assert len(store.tree(root.id).members) == 1
    assert b"ghost" not in b"".join(store.run(journal.read(store.prefix, root.id)))
    assert sleeper.is_alive
    assert other.is_alive
