"""A worker that stops takes no more processes, and gives back what it took and has not begun."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from fdstore.client import Store
from fdstore.lifecycle import ProcessEnd
from fdstore.store import pipelines
from fdstore.testing import say
from fdstore.tools.process_task import PipeTask, encode_task
from tests.on_redis.agents import StopsOnceTaken, running

BRIEF = encode_task(PipeTask(commands=[["true"]], page_size=4000))


class Pipelines:
    """What runs pipelines here: it notes each, and ends it well."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def __call__(self, store: Store, handle: Any, *_: Any) -> ProcessEnd:
        self.ran.append(handle.id)
        return ProcessEnd("exited", 0, "")


def told_to_stop() -> threading.Event:
    stopping = threading.Event()
    stopping.set()
    return stopping


@pytest.mark.parametrize("kind", ["agent", "pipeline"])
def test_a_worker_that_stops_takes_nothing_and_wakes_another(store: Store, tmp_path: Path, kind: str) -> None:
    with running(store, [say("Done.")], tmp_path) as agents:
        process = agents.launch().id
        if kind == "pipeline":
            process = store.run(pipelines.start(store.process("solo").handle, BRIEF, title="true")).process
        pipeline = Pipelines()

        ending = agents.attempt(process, stopping=told_to_stop(), pipeline=pipeline)

        record = agents.record(process)
        assert (ending, record.state, record.attempt) == ("given back", "ready", 0)
        assert (agents.woken, pipeline.ran) == ([process], [])


def test_a_pipeline_that_was_taken_and_not_begun_goes_to_another_worker(store: Store, tmp_path: Path) -> None:
    with running(store, [], tmp_path) as agents:
        agents.launch()
        process = store.run(pipelines.start(store.process("solo").handle, BRIEF, title="true")).process
        pipeline = Pipelines()

        first = agents.attempt(process, stopping=StopsOnceTaken(agents, process), pipeline=pipeline)

        record = agents.record(process)
        assert (first, record.state, record.losses) == ("given back", "ready", 0)
        assert (agents.woken, pipeline.ran) == ([process], [])

        assert agents.attempt(process, pipeline=pipeline) == "ended"
        assert (agents.record(process).state, pipeline.ran) == ("exited", [process])
