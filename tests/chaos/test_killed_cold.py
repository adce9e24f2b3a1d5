"""A process that is killed at any step of moving a content out, bringing it back, or deleting it leaves the
text whole, and at most an object that no content needs, which the next sweep deletes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Collection, Iterator
from itertools import count
from pathlib import Path

import pytest

from fdstore.client import Store
from fdstore.local.redis_server import PrivateServer
from fdstore.model.lifecycle import ENDED
from tests import cold_contents
from tests.chaos.conftest import Execute, Faults
from tests.children import Child
from tests.cold_contents import READERS, WORK, Known, long_text
from tests.waiting import wait_until

PROJECT = Path(__file__).parents[2]
TEXTS = {
    "fd:1": Known(long_text(400), 40),
    "fd:2": Known(long_text(300, "other"), 4000),
    "fd:3": Known("no end of a line " * 900, 1000),
}
GONE = {"close": {"fd:2"}, "end": set(TEXTS), "drop": set(TEXTS)}
"""What each work may take away from the process."""

MOMENTS = ("before", "torn", "after")


@pytest.fixture
def order(server: PrivateServer) -> Iterator[Callable[[str, int, str], str]]:
    """`order(work, number, moment)` has a client die there, and returns what it says."""
    command = [sys.executable, "-m", "tests.chaos.cold_victim", server.url]
    with Child(command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:

        def send(work: str, number: int, moment: str) -> str:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(f"{work} {number} {moment}\n")
            process.stdin.flush()
            return process.stdout.readline().strip()

        yield send


def set_up(store: Store, execute: Execute, work: str, place: Path) -> None:
    """The process `t` with its texts, cold unless they are to move out; a child holds the first one too."""
    execute("FLUSHALL")
    cold_contents.use_cold(store, f"file://{place}")
    proc = store.process("t")
    for known in TEXTS.values():
        proc.create(known.text, page_size=known.page_size)
    proc.child(share=["fd:1"])
    if work != "out":
        assert cold_contents.turn_cold(store) == len(TEXTS)


def check_all(store: Store, work: str, folder: Path, ways: Collection[str] = READERS) -> None:
    """Every text that a process holds is read in these ways."""
    for member in store.tree("t").members:
        proc = store.process(member.id)
        held = {d.fd for d in proc.list()}
        if member.id == "t":
            assert held >= TEXTS.keys() - GONE.get(work, set())
        for fd in held & TEXTS.keys():
            for way in ways:
                if way != "extract" or member.state not in ENDED:
                    READERS[way](TEXTS[fd], proc, fd, folder)


@pytest.mark.thorough("tests/on_redis/cold/test_objects_go.py has one move, and what is left of it")
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("work", WORK)
def test_a_process_killed_at_any_step_leaves_texts_whole_and_at_most_garbage_that_is_found(
    work: str,
    moment: str,
    order: Callable[[str, int, str], str],
    store: Store,
    execute: Execute,
    assert_counted: Callable[[Execute], None],
    faults: Faults,
    tmp_path: Path,
) -> None:
    kinds: set[str] = set()
    for number in count(1):
        place = tmp_path / f"{moment}-{number}"
        set_up(store, execute, work, place)
        ours = clients(execute)

        answer = order(work, number, moment)

        if answer == "lived":
            break
        assert answer.startswith("died "), answer
        where = f"{work}: {answer}, step {number}, {moment}"
        kinds.add(answer)
        faults.note(f"{answer.removeprefix('died ')}: killed {moment}")
        wait_until(lambda ours=ours: clients(execute) == ours, what="the end of its connections")
        assert_counted(execute)
        if "t" in {tree.id for tree in store.trees()}:
            check_all(store, work, tmp_path, ["read all", sorted(READERS)[number % len(READERS)]])
        assert cold_contents.garbage(store, place) <= cold_contents.listed_for_deletion(store), where
        cold_contents.tidy(store)
        cold_contents.turn_cold(store)
        assert not cold_contents.garbage(store, place), where
        if "t" in {tree.id for tree in store.trees()}:
            check_all(store, work, tmp_path, ["read all", "lines"])
        assert_counted(execute)
    print(f"{work}: {number - 1} steps, {sorted(kinds)}")
    assert len(kinds) > 1, "both Redis and the object store must have been met"


def clients(execute: Execute) -> int:
    return len(execute("CLIENT", "LIST").splitlines())
