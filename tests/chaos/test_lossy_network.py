"""A network that loses and delays replies and cuts connections: results do not change, writes happen once."""

from __future__ import annotations

import io
import random
import threading
from pathlib import Path
from typing import Any

import pytest

import fdstore
import fdstore.aio
from fdstore.client import Process, Store
from fdstore.errors import StoreUnavailable, UnknownOutcome
from fdstore.local.redis_server import PrivateServer
from fdstore.wire import retry
from tests.chaos.agent_tree import AgentTree
from tests.chaos.agents import has_ended
from tests.chaos.conftest import Execute
from tests.chaos.history import Observer, check_tree
from tests.chaos.proxy import Proxy
from tests.chaos.worker_pool import WorkerPool
from tests.thorough import thorough
from tests.waiting import PATIENCE_S, stretched, wait_until, within

LONG = "".join(f"{number} of many\n" for number in range(150_000))


def run_workload(proc: Process, folder: Path) -> list[Any]:
    """Call every kind of operation and return all results."""
    found: list[Any] = []
    for number in range(6):
        found.append(proc.create(f"text {number}\n" * 50).fd)
    found.append(proc.create(LONG, page_size=3000).pages)
    found.append(proc.ingest(io.BytesIO(LONG.encode()), "a file").chars)
    found.append(proc.extract("fd:7#L10-20").origin)
    found.append(proc.read("fd:7#L70000-70010").text)
    found.append(proc.read("fd:8", read_all=True).text == LONG)
    found.append(proc.search("fd:7", "^1499.5 ").matches)
    found.append(proc.export("fd:7", folder / "out.txt").size_bytes)
    found.append((folder / "out.txt").read_text() == LONG)
    child, twin = proc.child(share=["fd:1", "fd:7"]), proc.fork()
    found += [child.id, twin.id, child.create("of a child").fd, twin.create("of a twin").fd]
    with child.open_stream() as out:
        for piece in ("a little, ", LONG, "and a little\n"):
            out.write(piece)
            out.flush()
    found.append(child.read(out.fd, read_all=True).text == f"a little, {LONG}and a little\n")
    proc.close("fd:7")
    twin.end()
    found.append([(d.fd, d.chars, d.lines) for each in (proc, child) for d in each.list()])
    tree = proc.store.tree(proc.id)
    found.append((tree.processes, tree.live, tree.fds, tree.bytes))
    return found


@pytest.fixture
def expected_results(store: Store, execute: Execute, tmp_path: Path) -> list[Any]:
    """Return the results of the workload on an undisturbed network."""
    found = run_workload(store.process("t"), tmp_path)
    execute("FLUSHALL")
    return found


@pytest.mark.parametrize("n", [3, *thorough("other commands lose their replies", 2, 4, 5, 7, 11)])
def test_losing_the_reply_of_every_nth_command_does_not_change_results(
    n: int, expected_results: list[Any], proxy: Proxy, tmp_path: Path
) -> None:
    with fdstore.connect(proxy.url) as far:
        proxy.lose_every(n)

        assert run_workload(far.process("t"), tmp_path) == expected_results

    print(f"{proxy.lost} replies lost")


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


def test_cutting_connections_at_random_does_not_change_results(
    seed: int, expected_results: list[Any], proxy: Proxy, tmp_path: Path
) -> None:
    rng = random.Random(seed)
    done = threading.Event()

    def cut() -> None:
        while not done.wait(rng.uniform(0, 0.03)):
            proxy.cut()

    cutter = threading.Thread(target=cut, daemon=True)
    with fdstore.connect(proxy.url) as far:
        cutter.start()

        found = run_workload(far.process("t"), tmp_path)

        done.set()
        cutter.join()
    assert found == expected_results


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
