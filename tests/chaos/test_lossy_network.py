"""A network that loses replies or falls silent. Any sequence of calls on such a one: test_differential.py."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import fdstore
from fdstore.client import Store
from fdstore.errors import StoreUnavailable, UnknownOutcome
from fdstore.local.redis_server import PrivateServer
from fdstore.wire import retry
from tests.chaos.agent_tree import AgentTree
from tests.chaos.agents import has_ended
from tests.chaos.history import Observer, check_tree
from tests.chaos.proxy import Proxy
from tests.chaos.worker_pool import WorkerPool
from tests.thorough import thorough
from tests.waiting import PATIENCE_S, stretched, wait_until, within


@pytest.mark.parametrize("size", [1_000_000, *thorough("the shorter text", 100)])
def test_losing_every_reply_raises_a_typed_error_and_leaves_no_partial_write(
    size: int, store: Store, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry, "DEADLINE_S", 1.0)
    text = "text\n" * (size // 5)
    near = store.process("t")
    near.create("before")
    with fdstore.connect(proxy.url) as far:
        proc = far.process("t")
        proxy.lose_every(1)

        with within(2 * retry.DEADLINE_S + 5):
            with pytest.raises(UnknownOutcome):
                proc.create(text)
            with pytest.raises(StoreUnavailable):
                proc.read("fd:1")

    assert [(d.fd, near.read(d.fd, read_all=True).text) for d in near.list()] in (
        [("fd:1", "before")],
        [("fd:1", "before"), ("fd:2", text)],
    )
    assert near.create("after").fd in ("fd:2", "fd:3")


@pytest.mark.thorough("single calls on such a network are tested")
def test_agents_on_a_network_that_loses_replies_give_the_same_answer(
    server: PrivateServer, store: Store, worker_pool: WorkerPool, proxy: Proxy, tmp_path: Path
) -> None:
    agent_tree = AgentTree(tmp_path, pace_s=0.1)
    with worker_pool.scripted(agent_tree.script, FDSTORE_BROKER_URL=server.url):
        worker_pool.start_worker(4, quick=False, url=proxy.url).wait_until_ready()
        proxy.lose_every(5)
        root = agent_tree.launch(store)
        observer = Observer(store, root.id)
        with observer.watch():
            wait_until(lambda: has_ended(store, root.id), what="the end of the root")

    check_tree(store, root)
    observer.check_nothing_lost(root.id)


@pytest.mark.thorough("connections that are lost without a word are tested with clients")
def test_a_worker_drops_a_connection_to_the_queue_that_fell_silent(
    proxy: Proxy, worker_pool: WorkerPool
) -> None:
    worker = worker_pool.start_worker(1, quick=False, url=proxy.url)
    worker.wait_until_ready()

    proxy.silence(True)

    wait_until(lambda: "dropping stale connection" in worker.log, stretched(15), "the end of the connection")


def test_a_client_waits_for_a_store_that_is_silent_for_a_while(proxy: Proxy, store: Store) -> None:
    with fdstore.connect(proxy.url) as far:
        proc = far.process("t")
        made: list[str] = []
        proxy.silence(True)
        caller = threading.Thread(target=lambda: made.append(proc.create("said into silence").fd))
        caller.start()
        threading.Event().wait(1)
        assert made == []

        proxy.silence(False)
        caller.join(PATIENCE_S)

    assert made == ["fd:1"]
    assert store.process("t").read("fd:1").text == "said into silence"
