"""A client that is killed at any request leaves the store in the state before or after its operation."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from fdstore.client import Process, Store
from fdstore.errors import NotFound
from fdstore.local.redis_server import PrivateServer
from fdstore.store.streams import streams
from tests.chaos.conftest import Execute, Faults
from tests.chaos.victim import LONG, MOMENTS, WORK, append
from tests.children import Child
from tests.thorough import thorough
from tests.waiting import wait_until

PROJECT = Path(__file__).parents[2]
SHORT = "one\ntwo\nthree\n"
Victims = Callable[[str, str], Iterator[tuple[int, str, Process]]]
USUAL = ("rename",)
"""One for each way to store: in pieces, a stream with its call, a child, a name."""


@pytest.fixture
def run_victim(server: PrivateServer, tmp_path: Path) -> Iterator[Callable[[str, int, str], str]]:
    """`run_victim(work, number, moment)` runs a client that dies there, and returns `died` or `lived`."""
    program = tmp_path / "reader.toml"
    program.write_text('[model]\nname = "scripted"\n[prompt]\nsystem = "You read."\n')
    with Child(
        [sys.executable, "-m", "tests.chaos.victim", server.url, str(tmp_path)],
        cwd=PROJECT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:

        def send(work: str, number: int, moment: str) -> str:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(f"{work} {number} {moment}\n")
            process.stdin.flush()
            return process.stdout.readline().strip()

        yield send


def set_up_process(store: Store, execute: Execute, work: str) -> Process:
    """The process `t` with a short and, where the work is on it, a long text and a draft, and another one
    that holds the short one too."""
    execute("FLUSHALL")
    proc = store.process("t")
    proc.create(SHORT)
    proc.create(LONG[:1_500_000] if work == "extract-long" else SHORT)
    appender = store.run(streams.open_stream(proc.handle, "a draft", lease_s=None))
    store.run(appender.store_once("so far\n", None))
    proc.put("plan", "a plan")
    proc.child(share=["fd:1"])
    return proc


@pytest.fixture
def victims(
    run_victim: Callable[[str, int, str], str], store: Store, execute: Execute, faults: Faults
) -> Victims:
    """`victims(work, moment)` yields, for a client killed at the first request, the second, and so on until
    one lives: the number, `died` or `lived`, and its process as it was set up."""

    def run(work: str, moment: str) -> Iterator[tuple[int, str, Process]]:
        for number in count(1):
            proc = set_up_process(store, execute, work)
            ours = clients(execute)
            answer = run_victim(work, number, moment)
            if answer == "died":
                faults.note(f"client killed {moment} a request")
                # then Redis has read everything that the dead client sent
                wait_until(lambda ours=ours: clients(execute) == ours, what="the end of its connections")
            yield number, answer, proc
            if answer != "died":
                assert answer == "lived", answer
                return

    return run


def state(store: Store, execute: Execute) -> dict[str, Any]:
    """Return everything that a client can read."""
    found: dict[str, Any] = {}
    for tree in store.trees():
        for member in tree.members:
            process = store.process(member.id)
            texts = [
                (d.fd, d.source, d.state, process.read(d.fd, read_all=True).text) for d in process.list()
            ]
            found[member.id] = (member.state, member.next_fd, member.next_child, texts)
    try:
        tree = store.tree("t")
    except NotFound:
        return found
    return found | {"counted": (tree.processes, tree.live, tree.fds, tree.bytes)}


@pytest.mark.parametrize(
    "work", [*USUAL, *thorough("other operations", *(work for work in WORK if work not in USUAL))]
)
def test_a_client_killed_at_any_request_leaves_the_state_before_or_after_the_operation(
    work: str,
    run_victim: Callable[[str, int, str], str],
    victims: Victims,
    store: Store,
    execute: Execute,
    assert_counted: Callable[..., None],
) -> None:
    set_up_process(store, execute, work)
    before = state(store, execute)
    assert run_victim(work, 1000, "before") == "lived"
    after = state(store, execute)
    assert before != after
    outcomes = {"before": 0, "after": 0}

    for moment in MOMENTS:
        for number, answer, _ in victims(work, moment):
            found = state(store, execute)
            assert found in (before, after), f"{work}, request {number}, {moment}"
            outcomes["before" if found == before else "after"] += answer == "died"
            assert_counted(execute)
            assert not [key for key in leftover_keys(execute) if execute("PTTL", key) == -1]

    print(f"{work}: {outcomes}")
    assert all(outcomes.values()), "both ends must have been seen"


@pytest.mark.thorough("a fault at every request")
@pytest.mark.parametrize("moment", ["torn", "before", "short", "after"])
def test_retrying_an_append_after_its_client_was_killed_at_any_request_appends_once(
    moment: str, victims: Victims, tmp_path: Path
) -> None:
    path = tmp_path / "out.txt"
    path.write_text("old\n")
    found = set()
    for number, _, proc in victims("append-file", moment):
        found.add(path.read_text())

        again = append(proc, str(tmp_path))

        assert not again.is_error, again.content
        assert path.read_text() == "old\n" + SHORT, f"request {number}, {moment}"
        path.write_text("old\n")
    assert found == {"old\n", "old\n" + SHORT}, "both ends must have been seen"


def leftover_keys(execute: Execute) -> list[bytes]:
    """Return the keys left by an operation that was not completed."""
    return [key for key in execute("KEYS", "*") if b"}:staging:" in key or b"}:op:" in key]


def clients(execute: Execute) -> int:
    return len(execute("CLIENT", "LIST").splitlines())
