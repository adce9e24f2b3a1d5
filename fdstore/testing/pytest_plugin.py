"""Fixtures for tests of agents and tools, in every pytest run where fdstore is installed.

fdstore_store        an empty store of the test's own, on a Redis that is started for the test session;
                     `fdstore.connect()` of the tested code means it, too
fdstore_async_store  the same store for asyncio, for async tests of anyio, or of pytest-asyncio's mode auto
fdstore_agent        `fdstore_agent(program, script, query)` runs a program on it, see `AgentRun`

def test_the_agent_reads_the_page_that_it_needs(fdstore_agent):
    script = [call("read_fd", fd="fd:1#L120"), say("line 120")]

    run = fdstore_agent("agents/reader.toml", script, "What is line 120?")

    assert run.answer == "line 120"
    run.assert_shown("line 120 of the build")
    run.assert_not_shown("line 121 of the build")
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from fdstore import aio
    from fdstore.client import Store
    from fdstore.local.redis_server import PrivateServer
    from fdstore.testing.agent_run import AgentRun


@pytest.fixture(scope="session")
def fdstore_server() -> Iterator[PrivateServer]:
    """A Redis that ends with the test session; with pytest-xdist, one for each of its processes."""
    from fdstore.local.redis_server import PrivateServer

    with PrivateServer() as server:
        yield server


@pytest.fixture
def fdstore_store(fdstore_server: PrivateServer) -> Iterator[Store]:
    """An empty store of the test's own: its keys have a prefix that no other test uses. During the test it is
    that of the environment, so that code under test starts no server and touches no other store."""
    from fdstore.client import connect
    from fdstore.wire.operation import new_op

    prefix = f"test-{new_op()}"
    with pytest.MonkeyPatch.context() as environment, connect(fdstore_server.url, prefix) as store:
        environment.setenv("FDSTORE_URL", fdstore_server.url)
        environment.setenv("FDSTORE_PREFIX", prefix)
        yield store


@pytest.fixture
async def fdstore_async_store(fdstore_store: Store) -> AsyncIterator[aio.Store]:
    """`fdstore_store` for asyncio."""
    from fdstore import aio

    async with await aio.connect() as store:
        yield store


@pytest.fixture
def fdstore_agent(fdstore_store: Store) -> Callable[..., AgentRun]:
    """A function that runs a program with a scripted model: `fdstore_agent(program, script, query=None)`."""
    from fdstore.testing.agent_run import run_agent

    return partial(run_agent, fdstore_store)
