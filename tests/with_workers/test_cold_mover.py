"""The thread of a worker that moves contents out."""

from __future__ import annotations

from pathlib import Path

import pytest

from fdstore.client import Store
from fdstore.store.trees import ceilings
from fdstore_workers.cold_mover import ColdMover
from tests.waiting import wait_until

pytest.importorskip("obstore")


def test_the_thread_of_the_sweeping_worker_moves_contents_out(store: Store, tmp_path: Path) -> None:
    for name, value in (("cold", f"file://{tmp_path}/cold"), ("cold_after", "0s"), ("cold_min", "1KiB")):
        store.run(ceilings.put(store.prefix, name, value))
    proc = store.process("triage")
    proc.create("some text\n" * 5000)
    problems: list[str] = []
    mover = ColdMover(store, lambda: True, lambda _, problem: problems.append(problem))

    mover.start()
    try:
        wait_until(lambda: store.tree("triage").cold_fds == 1, what="the move")
    finally:
        mover.stop()

    assert problems == []
    assert proc.read("fd:1", start=2).text == "some text\n" * 400
    proc.close("fd:1")


def test_a_worker_that_does_not_sweep_moves_nothing(store: Store) -> None:
    asked: list[None] = []

    def is_sweeping() -> bool:
        asked.append(None)
        return False

    mover = ColdMover(store, is_sweeping, lambda *_: None)
    mover.start()
    wait_until(lambda: asked, what="a turn")
    mover.stop()
