"""Agents of a scripted model, whose model ends with the test."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from fdstore.client import Store
from fdstore.testing import Script
from fdstore.testing.rules import Feature
from tests.on_redis.running_agents import Agents, AgentsOf, Play, running


@pytest.fixture
def agents_of(store: Store, tmp_path: Path) -> Iterator[AgentsOf]:
    """`agents_of(script, refuses=())`: agents whose model follows a script; what its server refuses."""
    with ExitStack() as stack:
        yield lambda script, **more: stack.enter_context(running(store, script, tmp_path, **more))


@pytest.fixture
def play(agents_of: AgentsOf) -> Play:
    """`play(script, query, crashes=(), refuses=(), **program)`: an agent that was run to its end with all
    below it; its worker crashed before these requests to Redis, one attempt for each number."""

    def played(
        script: Script,
        query: Any = "Go.",
        crashes: tuple[int, ...] = (),
        refuses: Collection[Feature] = (),
        **fields: Any,
    ) -> Agents:
        agents = agents_of(script, refuses=refuses)
        agents.launch(query, **fields)
        agents.crash(*crashes)
        agents.run_all("solo")
        return agents

    return played


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    pool = ThreadPoolExecutor(2)
    yield pool
    pool.shutdown(wait=False)  # the model releases a held answer when it closes, after this
