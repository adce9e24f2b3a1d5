"""Slots that move from node to node under readers and writers, a key at a time, as `redis-cli --cluster
reshard` moves them."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from redis.exceptions import AskError

import fdstore.aio
from fdstore.client import Process, Store
from fdstore.errors import StoreUnavailable
from fdstore.wire import retry
from fdstore.wire._sync.cluster import ClusterRunner
from fdstore.wire.store_url import parse_store_url
from tests.on_cluster.cluster import Cluster, Move
from tests.on_redis.conftest import Execute
from tests.on_redis.followers import Reader
from tests.slices import pages_of
from tests.stored_keys import check_keys
from tests.thorough import thorough
from tests.waiting import PATIENCE_S, wait_until

TEXT = "".join(f"line {number} of a text that takes some room\n" for number in range(1, 20_001))
PAGES = pages_of(TEXT, 4000)
TREE = "fdstore:{triage}"
EXAMPLES = 8


def process_with_read_pages(store: Store) -> Process:
    """Return a process whose client has read every page of a content."""
    proc = store.process("triage")
    proc.create(TEXT)
    for number in range(1, len(PAGES) + 1):
        proc.read("fd:1", start=number)
    return proc


def start_thread(call: Callable[[], Any]) -> Any:
    """Run a call in a thread and return its future."""
    threads = ThreadPoolExecutor(1)
    future = threads.submit(call)
    threads.shutdown(wait=False)
    return future


# --- reading


def test_pages_are_read_while_their_slot_moves_and_after(cluster: Cluster, store: Store) -> None:
    proc = process_with_read_pages(store)
    pages = f"{TREE}:triage:fd:1:pages"
    move = Move(cluster, pages)

    assert proc.read("fd:1", start=3).text == PAGES[2]
    move.migrate(pages)
    with pytest.raises(AskError):
        move.source.ask("HGET", pages, 1)
    assert [proc.read("fd:1", start=n + 1).text for n in range(len(PAGES))] == PAGES
    assert proc.read("fd:1", read_all=True).text == TEXT
    assert proc.search("fd:1", "line 1999[0-9]").matches == 10
    move.finish()
    assert proc.read("fd:1", start=3).text == PAGES[2]
    assert proc.read("fd:1", read_all=True).text == TEXT
    assert store.process("triage").read("fd:1#L7").text == TEXT.splitlines(keepends=True)[6]


@pytest.mark.thorough("the same as with the blocking client")
async def test_an_awaitable_reader_follows_redirections_too(cluster: Cluster) -> None:
    async with await fdstore.aio.connect(cluster.url) as store:
        proc = await store.process("triage")
        await proc.create(TEXT)
        await proc.read("fd:1", read_all=True)
        move = Move(cluster, TREE)
        await asyncio.to_thread(move.migrate, f"{TREE}:triage:fd:1:pages")

        assert (await proc.read("fd:1", start=3)).text == PAGES[2]
        assert (await proc.read("fd:1", read_all=True)).text == TEXT
        writing = asyncio.create_task(proc.create("two"))
        await asyncio.to_thread(move.finish)
        assert (await writing).fd == "fd:2"
        assert (await proc.read("fd:1", read_all=True)).text == TEXT


def test_every_read_is_correct_while_a_slot_moves_between_nodes(cluster: Cluster, store: Store) -> None:
    proc = process_with_read_pages(store)
    lines = TEXT.splitlines(keepends=True)
    over = threading.Event()
    reads = {"page": 0, "first": 0, "line": 0, "all": 0}

    def read_on(seed: int) -> None:
        dice = random.Random(seed)
        while not over.is_set():
            kind = dice.choice(list(reads))
            reader = store.process("triage") if kind == "first" else proc
            if kind in ("page", "first"):
                number = dice.randint(1, len(PAGES))
                assert reader.read("fd:1", start=number).text == PAGES[number - 1]
            elif kind == "line":
                number = dice.randint(1, len(lines) - 40)
                assert (
                    reader.read("fd:1", mode="line", start=number, count=40).text.splitlines(True)
                    == (lines[number - 1 : number + 39])
                )
            else:
                assert reader.read("fd:1", read_all=True).text == TEXT
            reads[kind] += 1

    with ThreadPoolExecutor(3) as threads:
        readers = [threads.submit(read_on, seed) for seed in range(3)]
        try:
            for _ in range(6):
                Move(cluster, TREE).finish()
                before = dict(reads)
                wait_until(
                    lambda before=before: (
                        any(reader.done() for reader in readers)
                        or all(reads[kind] > before[kind] for kind in reads)
                    )
                )
        finally:
            over.set()
        for reader in readers:
            reader.result()


# --- writing


def test_a_write_waits_until_its_slot_has_moved_and_is_done_once(cluster: Cluster, store: Store) -> None:
    proc = process_with_read_pages(store)
    move = Move(cluster, TREE)
    move.migrate(*move.keys_left()[::2])

    writing = start_thread(lambda: (proc.create("two"), proc.child(share=["fd:1"]).id))
    move.finish()

    made, child = writing.result(PATIENCE_S)
    assert (made.fd, child) == ("fd:2", "triage.1")
    assert [d.fd for d in proc.list()] == ["fd:1", "fd:2"]
    assert len(store.tree("triage").members) == 2


def test_a_script_that_creates_keys_is_never_interrupted_by_a_slot_move(
    cluster: Cluster, store: Store, execute: Execute
) -> None:
    proc = process_with_read_pages(store)
    for number in range(20):
        proc.create(f"content {number}")
    proc.fork()
    keys = sorted(execute("KEYS", "*"))
    move = Move(cluster, TREE)
    # the declared keys are still here; the keys that the script derives have moved
    move.migrate(*(key for key in move.keys_left() if ":fd:" in key and ":triage:fd:1" in key))

    ending = start_thread(proc.end)
    while not ending.done() and len(move.keys_left()) > 5:
        move.migrate(move.keys_left()[-1])
        assert sorted(execute("KEYS", "*")) == keys
    move.finish()
    ending.result(PATIENCE_S)

    assert [member.state for member in store.tree("triage").members] == ["exited", "open"]
    check_keys(execute)


def test_a_slot_move_that_takes_too_long_is_a_typed_error_and_writes_nothing(
    cluster: Cluster, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    proc = process_with_read_pages(store)
    move = Move(cluster, TREE)
    move.migrate(*move.keys_left()[:3])
    with monkeypatch.context() as patch:
        patch.setattr(retry, "DEADLINE_S", 0.3)

        with pytest.raises(StoreUnavailable, match="on its way to another node"):
            proc.child(share=["fd:1"])
        with pytest.raises(StoreUnavailable, match="on its way to another node"):
            store.process("triage").read("fd:1#L3")
        assert proc.read("fd:1", start=2).text == PAGES[1]
    move.finish()

    assert proc.create("two").fd == "fd:2"
    assert len(store.tree("triage").members) == 1


@pytest.mark.parametrize("ending", [" and much more" * 2000 + "\n", *thorough("shorter", "\n")])
def test_a_stream_stays_complete_for_writer_and_followers_while_its_slot_moves(
    ending: str, cluster: Cluster, store: Store
) -> None:
    proc = store.process("triage")
    expected = []
    with proc.open_stream() as out:
        readers = [Reader(store.process("triage"), out.fd) for _ in range(2)]
        for round_ in range(4):
            move = Move(cluster, TREE)
            move.migrate(*move.keys_left()[::2])
            moving = start_thread(move.finish)
            for number in range(50):
                expected.append(f"round {round_}, line {number}{ending}")
                out.write(expected[-1])
                if number % 10 == 0:
                    out.flush()
            out.flush()
            moving.result(PATIENCE_S)

    assert [reader.done() for reader in readers] == ["".join(expected)] * 2
    assert [reader.error for reader in readers] == [None, None]
    assert proc.read(out.fd, read_all=True).text == "".join(expected)


def test_a_large_content_is_stored_completely_while_its_slot_moves(cluster: Cluster, store: Store) -> None:
    proc = store.process("triage")
    expected = TEXT * 2

    for number in range(1, 7):
        moving = start_thread(lambda: Move(cluster, TREE).finish())
        made = proc.create(expected)
        moving.result(PATIENCE_S)
        assert made.fd == f"fd:{number}"
        assert proc.read(made.fd, read_all=True).text == expected

    assert store.tree("triage").fds == 6


@pytest.mark.thorough("single calls are in the tests above")
def test_any_sequence_of_calls_matches_plain_strings_while_the_slot_moves(
    cluster: Cluster, store_model: Any, execute: Execute, tmp_path: Path
) -> None:
    dice = random.Random(1)

    class SlotMovingRunner(ClusterRunner):
        def run(self, operation: Any) -> Any:
            if dice.random() > 0.3:
                return super().run(operation)
            moving = start_thread(lambda: Move(cluster, "{t}").finish())
            try:
                return super().run(operation)
            finally:
                moving.result(PATIENCE_S)

    class OnAMovingSlot(store_model):
        pass

    with Store(SlotMovingRunner(parse_store_url(cluster.url)), "fdstore", cluster.url) as restless:
        OnAMovingSlot.store, OnAMovingSlot.execute = restless, staticmethod(execute)
        OnAMovingSlot.folder = tmp_path

        run_state_machine_as_test(
            OnAMovingSlot,
            settings=settings(
                max_examples=EXAMPLES,
                stateful_step_count=15,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
