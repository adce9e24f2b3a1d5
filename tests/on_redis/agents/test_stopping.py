"""A stopping worker claims no more processes and requeues claimed ones that it has not started."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from fdstore.client import Store
from fdstore.model.lifecycle import ProcessEnd
from fdstore.store.processes import pipelines
from fdstore.testing import say
from fdstore.tools.process_task import PipeTask, encode_task
from tests.on_redis.running_agents import AgentsOf, StopAfterClaim

BRIEF = encode_task(PipeTask(commands=[["true"]], page_size=4000))


class Pipelines:
    """A pipeline runner that records each pipeline and ends it successfully."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def __call__(self, store: Store, handle: Any, *_: Any) -> ProcessEnd:
        self.ran.append(handle.id)
        return ProcessEnd("exited", 0, "")


def stop_requested() -> threading.Event:
    stopping = threading.Event()
    stopping.set()
    return stopping


@pytest.mark.parametrize("kind", ["agent", "pipeline"])
def test_a_stopping_worker_claims_nothing_and_wakes_another(
    agents_of: AgentsOf, store: Store, kind: str
) -> None:
    agents = agents_of([say("Done.")])
    process = agents.launch().id
    if kind == "pipeline":
        process = store.run(pipelines.start(store.process("solo").handle, BRIEF, title="true")).process
    pipeline = Pipelines()

    ending = agents.attempt(process, stopping=stop_requested(), pipeline=pipeline)

    record = agents.record(process)
    assert (ending, record.state, record.attempt) == ("given back", "ready", 0)
    assert (agents.woken, pipeline.ran) == ([process], [])


def test_a_claimed_pipeline_that_was_not_started_goes_to_another_worker(
    agents_of: AgentsOf, store: Store
) -> None:
    agents = agents_of([])
    agents.launch()
    process = store.run(pipelines.start(store.process("solo").handle, BRIEF, title="true")).process
    pipeline = Pipelines()

    first = agents.attempt(process, stopping=StopAfterClaim(agents, process), pipeline=pipeline)

    record = agents.record(process)
    assert (first, record.state, record.losses) == ("given back", "ready", 0)
    assert (agents.woken, pipeline.ran) == ([process], [])

    assert agents.attempt(process, pipeline=pipeline) == "ended"
    assert (agents.record(process).state, pipeline.ran) == ("exited", [process])
