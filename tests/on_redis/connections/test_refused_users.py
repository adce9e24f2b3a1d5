"""A user refused by Redis gets a permission error immediately, without retries."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import redis

import fdstore
import fdstore.aio
from fdstore.agents.runtime.queue import Dispatcher
from fdstore.errors import FDStoreError, StoreRefused
from fdstore.local.redis_server import PrivateServer
from fdstore.testing import Reply, Request, say
from tests.on_redis.running_agents import running
from tests.servers import FORBIDDEN_IN_A_SCRIPT, FORBIDDEN_KEY
from tests.waiting import PATIENCE_S, wait_until, within


@pytest.fixture(scope="module")
def server_with_users() -> Iterator[PrivateServer]:
    """A Redis with a password and users that lack permissions."""
    with PrivateServer({"requirepass": "topsecret"}, port=True) as server:
        with admin_of(server) as admin:
            for name, *rules in (
                ("ann", "~*", "+@all"),
                ("nokeys", "~other:*", "+@all"),
                ("noscripts", "~*", "+@all", "-evalsha", "-eval"),
                ("noinside", "~*", "+@all", "-zadd"),
                ("gone", "~*", "+@all"),
            ):
                admin.execute_command("ACL", "SETUSER", name, "on", ">topsecret", *rules)
            admin.execute_command("ACL", "SETUSER", "gone", "off")
        yield server


def admin_of(server: PrivateServer) -> redis.Redis:
    return redis.Redis.from_url(server.url.replace("redis://", "redis://:topsecret@"))


def url_of(server: PrivateServer, login: str) -> str:
    return server.url.replace("redis://", f"redis://{login}")


def work(url: str) -> None:
    with fdstore.connect(url) as store:
        store.process("triage").create("x")


def work_async(url: str) -> None:
    async def main() -> None:
        async with await fdstore.aio.connect(url) as store:
            await (await store.process("triage")).create("x")

    asyncio.run(main())


@pytest.mark.parametrize("how", [work, work_async])
@pytest.mark.parametrize(
    ("login", "said"),
    [
        ("", "Authentication required"),
        (":topsecrex@", "invalid username-password pair"),
        ("bob:topsecret@", "invalid username-password pair"),
        ("gone:topsecret@", "user is disabled"),
        ("nokeys:topsecret@", FORBIDDEN_KEY),
        ("noscripts:topsecret@", "'eval(sha)?' command"),
        ("noinside:topsecret@", FORBIDDEN_IN_A_SCRIPT),
    ],
)
def test_a_refused_command_is_a_permission_error_with_the_message_of_redis(
    server_with_users: PrivateServer, how: Any, login: str, said: str
) -> None:
    with within(5), pytest.raises(FDStoreError, match=said) as caught:
        how(url_of(server_with_users, login))

    assert caught.value.type == "permission_error"
    assert "topsecre" not in str(caught.value)
    user = login.partition(":")[0]
    assert f"redis://{user}" in str(caught.value)


def test_a_client_that_lost_its_permission_gets_an_error_at_its_next_call(
    server_with_users: PrivateServer,
) -> None:
    with (
        fdstore.connect(url_of(server_with_users, "ann:topsecret@")) as store,
        admin_of(server_with_users) as admin,
    ):
        proc = store.process()
        tools = fdstore.Toolset(proc)
        proc.create("x")
        try:
            admin.execute_command("ACL", "SETUSER", "ann", "-hget", "-hmget")
            with pytest.raises(StoreRefused, match="no permissions"):
                proc.read("fd:1")
            # not an error result: a model cannot fix it
            with pytest.raises(StoreRefused):
                tools.call("read_fd", {"fd": "fd:1"})
            admin.execute_command("ACL", "SETUSER", "ann", "off")
            admin.execute_command("CLIENT", "KILL", "USER", "ann")
            with pytest.raises(StoreRefused, match="user is disabled"):
                proc.create("y")
        finally:
            admin.execute_command("ACL", "SETUSER", "ann", "on", "+@all")
        assert proc.read("fd:1").text == "x"


def test_an_agent_of_a_worker_refused_by_redis_returns_to_the_queue(
    server_with_users: PrivateServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        fdstore.connect(url_of(server_with_users, "ann:topsecret@")) as store,
        admin_of(server_with_users) as admin,
    ):

        def script(request: Request) -> Reply:
            if not caplog.records:
                admin.execute_command("ACL", "SETUSER", "ann", "off")
                admin.execute_command("CLIENT", "KILL", "USER", "ann")
            return say("Done.")

        def restore_permission() -> None:
            wait_until(lambda: any("cannot go on now" in record.message for record in caplog.records))
            admin.execute_command("ACL", "SETUSER", "ann", "on")

        with running(store, script, tmp_path) as agents, ThreadPoolExecutor(1) as thread:
            agents.launch()
            taken_back = thread.submit(restore_permission)
            first = agents.attempt("solo")
            taken_back.result(PATIENCE_S)
            second = agents.attempt("solo")

        assert (first, second) == ("given back", "ended")
        assert agents.record("solo").losses == 0


def test_a_queue_that_refuses_its_user_is_a_clear_error(server_with_users: PrivateServer) -> None:
    dispatcher = Dispatcher(url_of(server_with_users, ":topsecrex@"))

    with pytest.raises(StoreRefused) as caught:
        dispatcher.wake("triage")

    dispatcher.close()
    assert "topsecre" not in str(caught.value)
