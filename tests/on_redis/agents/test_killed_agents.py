"""Agents that are killed while their model is silent: nothing waits for the answer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

import fdstore
from fdstore.client import Store
from fdstore.store.processes import processes
from fdstore.testing import call, fail, held, say, slow
from tests.dialects import every_dialect
from tests.on_redis.conftest import Execute
from tests.on_redis.running_agents import READER, AgentsOf
from tests.waiting import PATIENCE_S, wait_until

pytestmark = every_dialect

NEVER = 600.0


def kill_blocking(store: Store, process: str) -> None:
    store.run(processes.cancel("fdstore", process))


def kill_awaited(store: Store, process: str) -> None:
    async def kill() -> None:
        async with await fdstore.aio.connect(store.url) as awaited:
            await awaited.run(processes.cancel("fdstore", process))

    asyncio.run(kill())


Kill = Callable[[Store, str], None]


@pytest.mark.parametrize("kill", [kill_blocking, kill_awaited])
@pytest.mark.parametrize(
    "reply",
    [
        slow(say("Late."), NEVER),
        held(say("Half a sentence."), 3, threading.Event()),
        fail(429, retry_after=NEVER),
    ],
    ids=["silent", "in mid-answer", "overloaded"],
)
@pytest.mark.parametrize("wait_here", [True, False], ids=["run", "worker"])
def test_an_attempt_ends_when_its_agent_is_killed(
    agents_of: AgentsOf, store: Store, kill: Kill, reply: object, wait_here: bool, threads: ThreadPoolExecutor
) -> None:
    agents = agents_of([reply])
    agents.launch()
    attempt = threads.submit(agents.attempt, "solo", wait_here=wait_here)
    agents.model.wait_for(1)

    kill(store, "solo")

    assert attempt.result(PATIENCE_S) == "lost"
    assert (agents.record().state, agents.record().reason) == ("cancelled", "killed")


def test_an_agent_killed_while_it_waits_for_a_stream_does_not_wait_on(
    agents_of: AgentsOf, store: Store, execute: Execute, threads: ThreadPoolExecutor
) -> None:
    draft = call("write_fd", data="A line.\n", eof=False)
    spawn = call(
        "spawn", program_name="reader", query="Read.", additional_preload_fds=["fd:1"], background=True
    )
    read = call("read_fd", fd="fd:1", start=2, wait_seconds=60)
    script = {"SOLO": [draft, spawn, call("wait", target="solo.1")], "READER": [read]}
    agents = agents_of(script)
    agents.launch(tools=("write_fd", "spawn", "wait", "read_fd"), others=[READER])
    agents.attempt("solo")
    attempt = threads.submit(agents.attempt, "solo.1")
    wait_until(lambda: b"blocked_clients:1" in execute("INFO", "clients"), what="the wait for the stream")

    kill_blocking(store, "solo.1")

    assert attempt.result(PATIENCE_S / 2) == "lost"
