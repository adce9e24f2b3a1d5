"""A lost node of the Cluster: calls to its trees raise typed errors by the deadline, other trees work, and
the same client continues when the node returns or a replica is promoted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from redis.crc import key_slot

import fdstore
import fdstore.aio
from fdstore.cli import cli
from fdstore.client import Process, Store
from fdstore.errors import StoreUnavailable, UnknownOutcome
from fdstore.store.cold.moving import move_due
from fdstore.store.processes import leases
from fdstore.store.trees import ceilings
from fdstore.wire import connection_options, retry
from fdstore_workers.sweeper import Sweeper, collect_due, sweep
from tests.on_cluster.cluster import Cluster, ClusterNode
from tests.outages import advance, stopped
from tests.thorough import thorough
from tests.waiting import wait_until, within

DURABLE = {"appendonly": "yes", "appendfsync": "always"}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A Cluster for this test alone, whose nodes keep their data after a kill."""
    with Cluster(DURABLE) as made:
        yield made


@pytest.fixture
def store(cluster: Cluster) -> Iterator[Store]:
    """A store without the key check after the test: not all keys can be reached then."""
    with fdstore.connect(cluster.url) as connected:
        yield connected


@pytest.fixture
def victim(cluster: Cluster) -> ClusterNode:
    """The node to lose: not the one that holds the list of trees."""
    return next(node for node in cluster.nodes if node is not cluster.node_of("fdstore:trees"))


@pytest.fixture
def processes_on_both_nodes(cluster: Cluster, store: Store, victim: ClusterNode) -> tuple[Process, Process]:
    """Return a process on the node to lose and one on another node."""
    names = [f"tree-{number}" for number in range(30)]
    at_victim = next(name for name in names if cluster.node_of(f"{{{name}}}") is victim)
    elsewhere = next(name for name in names if cluster.node_of(f"{{{name}}}") is not victim)
    lost, safe = store.process(at_victim), store.process(elsewhere)
    for proc in (lost, safe):
        proc.create("one\n" * 5000)
        proc.read("fd:1", start=2)
    return lost, safe


@pytest.mark.parametrize("kind", ["blocking", *thorough("the other colour", "asyncio")])
async def test_with_patience_a_node_that_hangs_is_given_up_and_other_trees_work(
    cluster: Cluster, victim: ClusterNode, processes_on_both_nodes: tuple[Process, Process], kind: str
) -> None:
    lost, safe = (proc.id for proc in processes_on_both_nodes)

    async def calls(store: Any, call: Callable[[Any], Awaitable[Any]]) -> None:
        opened = await call(store.process(lost))
        with stopped(victim.server):
            problems = []
            for _ in range(3):
                with pytest.raises((StoreUnavailable, UnknownOutcome)) as caught:
                    await call(opened.list())
                problems.append(str(caught.value))
                assert await call((await call(store.process(safe))).list())
            assert ["it is tried again in" in problem for problem in problems] == [False, True, True]
        wait_until(cluster.is_whole, what="the end of the outage")
        advance(store, 1.5)
        assert await call(opened.list())

    async def done(value: Any) -> Any:
        return value

    if kind == "asyncio":
        async with await fdstore.aio.connect(cluster.url, patience=0.3) as store:
            await calls(store, lambda awaited: awaited)
    else:
        with fdstore.connect(cluster.url, patience=0.3) as blocking:
            await calls(blocking, done)


@pytest.mark.thorough("a node that is lost")
def test_trees_on_a_lost_node_raise_typed_errors_and_other_trees_work(
    cluster: Cluster,
    victim: ClusterNode,
    processes_on_both_nodes: tuple[Process, Process],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lost, safe = processes_on_both_nodes
    deadline_s = 1.0
    monkeypatch.setattr(retry, "DEADLINE_S", deadline_s)
    victim.server.kill()

    for call in (lambda: lost.read("fd:1", start=2), lambda: lost.read("fd:1", read_all=True), lost.list):
        limit_s = deadline_s + 2 * connection_options.SOCKET_TIMEOUT_S
        with within(limit_s), pytest.raises(StoreUnavailable, match=str(victim.port)):
            call()
    with pytest.raises((StoreUnavailable, UnknownOutcome)):
        lost.create("two")
    assert safe.read("fd:1", start=2).page == 2
    assert safe.create("two").fd == "fd:2"
    with fdstore.connect(cluster.url) as another:
        assert another.process(safe.id).read("fd:2").text == "two"
    status = CliRunner().invoke(cli, ["doctor", "--url", cluster.url])
    assert f"server at 127.0.0.1:{victim.port}" in status.stdout
    assert status.exit_code == 1


def test_a_lost_node_hides_its_own_trees_alone(
    cluster: Cluster, victim: ClusterNode, processes_on_both_nodes: tuple[Process, Process], store: Store
) -> None:
    lost, safe = processes_on_both_nodes
    victim.server.kill()

    reported: list[str] = []
    with within(connection_options.SOCKET_TIMEOUT_S):
        swept = sweep(store, reported.append, report=lambda what, *_: reported.append(what))
        collect_due(store)
        survey = store.survey()
    assert len(swept.usage) == 1
    assert set(reported) == {f"tree {lost.id}"}
    assert [tree.id for tree in survey.trees] == [safe.id]
    [unreadable] = survey.unreadable
    assert unreadable.what == f"tree {lost.id}"
    assert "its node does not answer" in unreadable.problem


def test_a_worker_sweeps_without_a_node_that_has_what_workers_say_of_themselves(
    cluster: Cluster, store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(retry, "DEADLINE_S", 0.2)
    monkeypatch.setattr(leases, "LEASE_S", 0.0)  # a new sweeper waits for half a lease
    victim = cluster.node_of("fdstore:workers:load")
    assert victim is cluster.node_of("fdstore:totals")
    names = [f"tree-{number}" for number in range(30)]
    lost = next(name for name in names if cluster.node_of(f"{{{name}}}") is victim)
    safe = next(name for name in names if cluster.node_of(f"{{{name}}}") is not victim)
    for name in (lost, safe):
        store.process(name).create("one")
    sweeper = Sweeper(store, "host:1", lambda _: None)
    victim.server.kill()

    sweeper._round()

    skipped = {each.getMessage().partition(" is skipped")[0] for each in caplog.records}
    assert skipped >= {"the registration of this worker", "the sums of all trees", f"tree {lost}"}
    assert f"tree {safe}" not in skipped


def test_contents_move_out_and_objects_go_without_a_lost_node(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("obstore")

    def holders(prefix: str) -> list[ClusterNode]:
        return [cluster.node_of(f"{prefix}:{key}") for key in ("trees", "limits", "cold:trees", "cold:store")]

    # of one prefix all keys of no tree are on the two other nodes
    prefix = next(each for each in map("p{}".format, range(100)) if len(set(map(id, holders(each)))) < 3)
    victim = next(node for node in cluster.nodes if node not in holders(prefix))
    trees = {f"tree-{number}": cluster.node_of(f"{{tree-{number}}}") is victim for number in range(12)}
    monkeypatch.setattr(retry, "DEADLINE_S", 0.2)
    with fdstore.connect(cluster.url, prefix=prefix) as store:
        for name, value in (("cold", f"file://{tmp_path}/o"), ("cold_after", "0s"), ("cold_min", "0")):
            store.run(ceilings.put(store.prefix, name, value))
        for name in trees:
            store.process(name).create("one\n" * 5000)
        assert move_due(store).contents == len(trees)
        for name in trees:
            store.process(name).create("two\n" * 5000)
            store.process(name).close("fd:1")
        victim.server.kill()

        moved = move_due(store)

    assert 0 < sum(trees.values()) < len(trees)
    assert moved.contents == moved.deleted == len(trees) - sum(trees.values())
    assert "is out of reach" in moved.problem


@pytest.mark.thorough("the same as with the blocking client")
async def test_an_awaitable_client_keeps_working_on_other_nodes_too(
    cluster: Cluster,
    victim: ClusterNode,
    processes_on_both_nodes: tuple[Process, Process],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(retry, "DEADLINE_S", 1.0)
    async with await fdstore.aio.connect(cluster.url) as store:
        lost, safe = [await store.process(proc.id) for proc in processes_on_both_nodes]
        victim.server.kill()
        with pytest.raises(StoreUnavailable):
            await lost.read("fd:1", read_all=True)
        assert (await safe.read("fd:1", read_all=True)).chars == "1-20000"


@pytest.mark.thorough("another moment of the same failure")
def test_a_call_waits_for_a_node_that_returns_in_time(
    cluster: Cluster, victim: ClusterNode, processes_on_both_nodes: tuple[Process, Process], store: Store
) -> None:
    lost, _ = processes_on_both_nodes
    victim.server.kill()
    victim.server.restart()

    assert lost.create("two").fd == "fd:2"
    assert lost.read("fd:1", read_all=True).chars == "1-20000"
    assert lost.read("fd:2").text == "two"
    assert store.tree(lost.id).fds == 2


@pytest.mark.thorough("another moment of the same failure")
def test_a_promoted_replica_is_found(
    cluster: Cluster, victim: ClusterNode, processes_on_both_nodes: tuple[Process, Process], store: Store
) -> None:
    lost, safe = processes_on_both_nodes
    replica = cluster.add_replica_of(victim)
    wait_until(lambda: int(victim.ask("WAIT", 1, 100)) == 1)
    victim.server.kill()
    replica.ask("CLUSTER", "FAILOVER", "TAKEOVER")
    slot = key_slot(lost.id.encode())
    others = [node for node in cluster.nodes if node is not victim]
    wait_until(lambda: all(node.owner_of(slot) == replica.port for node in others))

    assert lost.create("two").fd == "fd:2"
    assert lost.read("fd:1", read_all=True).chars == "1-20000"
    assert safe.create("two").fd == "fd:2"
    assert {tree.id: tree.fds for tree in store.trees()} == {lost.id: 2, safe.id: 2}
