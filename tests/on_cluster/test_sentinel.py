"""A store behind Sentinels: the client finds the primary, and the new one after a failover."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
import redis
from click.testing import CliRunner

import fdstore
import fdstore.aio
from fdstore.agents.runtime.queue import Dispatcher
from fdstore.cli import cli
from fdstore.errors import StoreUnavailable
from fdstore.local.redis_server import PrivateServer
from fdstore.testing import ScriptedModel
from fdstore.toolset._sync import Toolset
from tests.elements import only
from tests.on_cluster.cluster import port_of, start_sentinel
from tests.on_redis.followers import Reader
from tests.waiting import wait_until
from tests.with_workers.conftest import agent_workers

AT_ONCE = {"repl-diskless-sync-delay": 0}
"""A replica gets its copy at once; by default its primary waits 5 s for others who want one too."""


class Watched:
    """A primary, its replicas, and a Sentinel that watches them."""

    def __init__(self, stack: ExitStack, folder: Path, replicas: int = 1, needed: int = 0) -> None:
        """Start them. The primary takes writes only with as many replicas as are `needed`."""
        options = {**AT_ONCE, "min-replicas-to-write": needed}
        self.primary = stack.enter_context(PrivateServer(options, port=True))
        self.replicas = [stack.enter_context(PrivateServer(options, port=True)) for _ in range(replicas)]
        self.replica = self.replicas[0]
        for replica in self.replicas:
            with redis.Redis.from_url(replica.url) as client:
                client.replicaof("127.0.0.1", port_of(self.primary))
                wait_until(lambda client=client: client.info("replication")["master_link_status"] == "up")
        config = "sentinel down-after-milliseconds main 500", "sentinel failover-timeout main 5000"
        port = start_sentinel(stack, folder, self.primary, *config)
        self._client = stack.enter_context(redis.Redis(port=port, protocol=2))
        wait_until(lambda: self._client.sentinel_master("main")["num-slaves"] == replicas)
        self.url = f"sentinel://127.0.0.1:1,127.0.0.1:{port}/main"

    def fail_over(self) -> None:
        """Promote a replica by order of the Sentinel, and return when the old primary takes no writes, which
        would be lost."""
        self._client.execute_command("SENTINEL", "FAILOVER", "main")
        with redis.Redis.from_url(self.primary.url, protocol=2) as client:

            def is_replica() -> bool:
                try:
                    return bool(client.info("replication")["role"] == "slave")
                except redis.ConnectionError:  # the Sentinel has closed it
                    return False

            wait_until(is_replica)

    def names(self, server: PrivateServer) -> bool:
        """Return whether the Sentinel reports this server as the primary."""
        return bool(self._client.sentinel_get_master_addr_by_name("main")[1] == port_of(server))


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    with ExitStack() as stack:
        yield Watched(stack, tmp_path)


def stored_by_replica(watched: Watched) -> bool:
    with redis.Redis.from_url(watched.primary.url) as client:
        return bool(client.wait(1, 100) == 1)


def test_a_client_continues_with_the_promoted_replica(watched: Watched) -> None:
    with fdstore.connect(watched.url) as store:
        proc = store.process("triage")
        proc.create("one\n" * 5000)
        with proc.open_stream() as out:
            out.write("before\n")
            out.flush()
            reader = Reader(proc, out.fd)
            reader.wait_for("before\n")
            wait_until(lambda: stored_by_replica(watched))
            watched.primary.kill()
            wait_until(lambda: watched.names(watched.replica))

            assert proc.read("fd:1", start=2).page == 2
            assert proc.create("two").fd == "fd:3"
            out.write("after\n")
        assert reader.done() == "before\nafter\n"
        assert proc.read("fd:1", read_all=True).chars == "1-20000"


@pytest.mark.thorough("half a minute of waiting")
def test_what_runs_goes_on_through_a_failover_in_which_redis_refuses_writes(tmp_path: Path) -> None:
    """Until replicas have attached, the new primary has too few of them to write."""
    with ExitStack() as stack:
        watched = Watched(stack, tmp_path, replicas=2, needed=1)
        model = stack.enter_context(ScriptedModel([]))
        start_worker = stack.enter_context(agent_workers(tmp_path))
        worker = start_worker(watched.url, model, 2, "threads", "--unsandboxed-commands")
        store = stack.enter_context(fdstore.connect(watched.url))
        proc = store.process("triage")
        out = stack.enter_context(proc.open_stream())
        out.write("before\n")
        out.flush()
        reader = Reader(proc, out.fd)
        reader.wait_for("before\n")
        tools = Toolset(proc, enabled=["pipe"], commands=["cat"])
        piped = only(tools.call("pipe", {"commands": ["cat"], "in_fd": out.fd}).content)
        wait_until(lambda: proc.stat(piped["fd"]).chars > 0, what="the first line")

        watched.fail_over()
        with ThreadPoolExecutor(4) as threads:
            made = list(threads.map(lambda _: proc.create("a short text").fd, range(80)))
        out.write("after\n")
        out.end()
        ended = {"exited", "failed", "cancelled"}
        wait_until(lambda: store.tree("triage").members[-1].state in ended, what="the end of the pipeline")

        assert len(set(made)) == 80
        assert reader.done() == "before\nafter\n"
        piping = store.tree("triage").members[-1]
        assert (piping.state, piping.reason) == ("exited", None), worker.log
        assert proc.read(piped["fd"]).text == "before\nafter\n"
        assert "Traceback" not in worker.log


@pytest.mark.thorough("the same as with the blocking client")
async def test_an_awaitable_client_continues_with_the_promoted_replica_too(watched: Watched) -> None:
    async with await fdstore.aio.connect(watched.url) as store:
        proc = await store.process("triage")
        await proc.create("one\n" * 5000)
        await asyncio.to_thread(wait_until, lambda: stored_by_replica(watched))
        watched.primary.kill()
        await asyncio.to_thread(wait_until, lambda: watched.names(watched.replica))

        assert (await proc.create("two")).fd == "fd:2"
        assert (await proc.read("fd:1", read_all=True)).chars == "1-20000"


@pytest.mark.thorough("the same without Sentinels is tested")
def test_a_worker_behind_sentinels_drops_invalid_process_ids(watched: Watched, tmp_path: Path) -> None:
    hostile = [b"7", b"[1]", b"null", b"\xff", b'{"body": ' + b"[" * 100_000, b"x" * 3_000_000]
    with ScriptedModel([]) as model, agent_workers(tmp_path) as start_worker:
        worker = start_worker(watched.url, model)
        with redis.Redis.from_url(watched.primary.url) as client:
            for message in hostile:
                client.lpush("fdq:fdstore:queue", message)
        dispatcher = Dispatcher(watched.url)
        dispatcher.wake("triage")
        dispatcher.close()

        wait_until(lambda: "triage no longer exists" in worker.log or not worker.is_alive)

    assert worker.log.count("dropped a message") == len(hostile)
    assert "Traceback" not in worker.log


def test_status_and_doctor_show_that_the_store_is_behind_sentinels(watched: Watched) -> None:
    status = CliRunner().invoke(cli, ["status", "--url", watched.url])
    doctor = CliRunner().invoke(cli, ["doctor", "--url", watched.url])

    assert "the master that Sentinels report" in status.stdout
    assert "the Redis that Sentinels call main" in doctor.stdout
    assert "a primary: it accepts writes" in doctor.stdout


def test_a_name_unknown_to_the_sentinels_is_an_immediate_error(watched: Watched) -> None:
    with pytest.raises(StoreUnavailable, match="no reachable Sentinel knows a primary called 'other'"):
        fdstore.connect(watched.url.replace("/main", "/other"))


def test_unreachable_sentinels_are_an_immediate_error() -> None:
    with pytest.raises(StoreUnavailable, match="no reachable Sentinel"):
        fdstore.connect("sentinel://127.0.0.1:1,127.0.0.1:2/main")
