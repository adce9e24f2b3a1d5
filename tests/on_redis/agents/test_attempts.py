"""Attempts at a process: claimed, renewed, given back, replaced, and stopped by errors of the store."""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest

from fdstore.agents.loop.launch import launch_root
from fdstore.agents.loop.program_loader import Bundle, Program
from fdstore.agents.runtime.claim import Lease
from fdstore.agents.runtime.run_process import AttemptOutcome, run_process
from fdstore.client import Process, Store
from fdstore.errors import (
    FDStoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    UnknownOutcome,
    UnsafeStore,
)
from fdstore.files.permissions import Permissions
from fdstore.model.lifecycle import ProcessEnd
from fdstore.store.clock import redis_now
from fdstore.store.keys import process_keys
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes import leases, pipelines, processes
from fdstore.store.views import worker_registry
from fdstore.testing import Request, Turn, call, fail, say, turn
from fdstore.wire._sync.runner import Runner
from fdstore.wire.operation import Operation
from tests.dialects import every_dialect
from tests.on_redis.child_agents import agent
from tests.on_redis.running_agents import AgentsOf, ran, tool
from tests.round_trips import count_round_trips
from tests.servers import values_of
from tests.waiting import PATIENCE_S, wait_until

Execute = Callable[..., Any]


def test_a_process_is_claimed_once(agents_of: AgentsOf, store: Store) -> None:
    agents = agents_of([say("Done.")])
    agents.launch()
    keys = process_keys("fdstore", "solo")

    first = store.run(leases.claim(keys, "a"))
    second = store.run(leases.claim(keys, "b"))

    assert first is not None
    assert (first.attempt, second) == (1, None)


def test_an_agent_worker_leaves_pipelines_to_pipeline_workers(agents_of: AgentsOf, store: Store) -> None:
    agents = agents_of([])
    proc = store.process("solo")
    started = store.run(pipelines.start(proc.handle, "{}", title="true"))

    assert agents.attempt(started.process) == "pipeline"

    assert (agents.record(started.process).state, agents.record(started.process).attempt) == ("ready", 0)


def test_a_worker_without_a_model_leaves_agents_to_others(agents_of: AgentsOf, store: Store) -> None:
    def no_commands(*_: Any) -> ProcessEnd:
        raise AssertionError("an agent is no pipeline")

    agents = agents_of([])
    agents.launch()

    endings = [
        run_process(
            store,
            "solo",
            worker="here",
            model=None,
            wake=agents.woken.append,
            permissions=Permissions(),
            pipeline=pipeline,
        )
        for pipeline in (no_commands, None)
    ]

    assert endings == ["agent", "agent"]
    assert (agents.record().state, agents.record().attempt, agents.woken) == ("ready", 0, [])


def test_a_worker_registers_whether_it_runs_agents(store: Store) -> None:
    now_s = store.run(redis_now())

    store.run(worker_registry.register_worker("fdstore", "keyless:1", 10, now_s, no_agents="there is no key"))
    store.run(worker_registry.register_worker("fdstore", "keyed:2", 10, now_s))
    found = store.run(worker_registry.read_workers("fdstore")).alive

    assert {each.name: each.no_agents for each in found} == {"keyless:1": "there is no key", "keyed:2": ""}


def test_the_end_of_a_process_is_one_log_line_with_program_duration_turns_and_reason(
    agents_of: AgentsOf, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "fdstore.agent")
    agents = agents_of([say("Done."), fail(401)])
    agents.launch()
    agents.attempt("solo")
    other = launch_root(
        store, Bundle(root="solo", programs={"solo": Program(name="solo", model="any")}), "Go."
    )
    agents.attempt(other.id)

    well, badly = caplog.messages
    assert re.fullmatch(r"solo exited: program solo, exit code 0, \d+\.\d s, 1 turn", well)
    assert re.fullmatch(
        rf"{other.id} failed: program solo, \d+\.\d s, 0 turns: the model answered 401 .*", badly
    )


def test_a_claim_whose_reply_was_lost_can_be_repeated(agents_of: AgentsOf, store: Store) -> None:
    def repeat_request(operation: Operation[Any]) -> Operation[Any]:
        request = next(operation)
        yield request
        reply = yield request
        try:
            operation.send(reply)
        except StopIteration as done:
            return done.value
        raise AssertionError("a claim is one round trip")

    agents = agents_of([])
    agents.launch()

    claimed = store.run(repeat_request(leases.claim(process_keys("fdstore", "solo"), "a")))

    assert claimed.attempt == 1
    assert agents.record().attempt == 1


def test_a_lease_is_renewed_until_another_attempt_replaces_it(
    agents_of: AgentsOf, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "RENEW_EVERY_S", 0.01)
    agents = agents_of([])
    root = agents.launch()
    keys = process_keys("fdstore", "solo")
    claimed = store.run(leases.claim(keys, "a"))
    assert claimed is not None
    first = agents.record().lease_until
    assert first is not None

    handle = ProcessHandle(keys, root.handle.limits, claimed.attempt)
    lease = Lease(store, handle, threading.Event(), agents.woken.append)
    with lease.kept():
        wait_until(lambda: (agents.record().lease_until or 0) > first)
        assert not lease.lost.is_set()

        def lost() -> bool:
            agents.lose("solo")  # which a renewal may undo
            return lease.lost.wait(0.05)

        wait_until(lost)


def test_one_look_finds_which_of_many_leases_were_lost(store: Store, proc: Process, execute: Execute) -> None:
    proc.create("shared")
    held = [agent(store, proc, "running") for _ in range(4)]
    kept = [Lease(store, handle, threading.Event(), lambda process: None) for handle in held]

    with ExitStack() as stack:
        for lease in kept:
            stack.enter_context(lease.kept())
        store.run(processes.cancel("fdstore", held[1].id))

        assert kept[1].lost.wait(PATIENCE_S)
        assert [lease.lost.is_set() for lease in kept] == [False, True, False, False]
    execute("HSET", held[3].keys.record, "attempt", 2)
    assert count_round_trips(store, leases.not_held(held)) == ([held[1], held[3]], 1)
    execute("RENAME", held[2].keys.record, "fdstore:aside")
    execute("SET", held[2].keys.record, "no hash")
    assert store.run(leases.not_held(held)) == [held[1], held[3]]
    execute("RENAME", "fdstore:aside", held[2].keys.record)


@every_dialect
def test_a_stopping_worker_returns_its_agent_to_the_queue(agents_of: AgentsOf) -> None:
    stopping = threading.Event()

    def script(request: Request) -> Turn:
        stopping.set()
        return call("echo", words="a", id="toolu_a") if request.turn_number == 0 else say("Done.")

    agents = agents_of(script)
    agents.launch(python=(tool("echo"),))

    assert agents.attempt("solo", stopping=stopping) == "given back"
    record = agents.record()
    assert (record.state, record.losses, record.worker) == ("ready", 0, None)
    assert agents.woken == ["solo"]
    assert agents.attempt("solo") == "ended"
    assert agents.answer() == "Done."


@every_dialect
def test_a_stopping_worker_does_not_wait_for_the_retry_pause(agents_of: AgentsOf) -> None:
    stopping = threading.Event()

    def script(request: Request) -> Any:
        stopping.set()
        return fail(429, retry_after=250)

    agents = agents_of(script)
    agents.launch()

    assert agents.attempt("solo", stopping=stopping) == "given back"


@every_dialect
def test_a_replaced_attempt_writes_nothing(agents_of: AgentsOf, execute: Execute) -> None:
    answer_count = itertools.count()
    let_go = threading.Event()

    def script(request: Request) -> Turn:
        if request.turn_number == 0:
            return call("echo", words="first", id="toolu_first")
        if next(answer_count) > 0:
            return say('<ref id="new">Alive.</ref>')
        let_go.wait(PATIENCE_S)
        return turn(say('<ref id="old">From the grave.</ref>'), call("echo", words="too late"))

    agents = agents_of(script)
    agents.launch(tools=("read_fd",), python=(tool("echo"),))
    ended: list[AttemptOutcome] = []
    old = threading.Thread(target=lambda: ended.append(agents.attempt("solo")))
    old.start()
    agents.model.wait_for(2, PATIENCE_S)
    agents.lose("solo")
    assert agents.attempt("solo") == "ended"
    before = values_of(execute, execute("KEYS", "*"))

    let_go.set()
    old.join(PATIENCE_S)

    assert ended == ["lost"]
    assert values_of(execute, execute("KEYS", "*")) == before
    assert (ran, agents.record().attempt, agents.record().losses) == (["first"], 2, 1)
    assert agents.answer() == '<ref id="new">Alive.</ref>'


class FailingStore(Store):
    """A store that raises this error at some operations of the main thread, beginning with the n-th."""

    def __init__(self, url: str, operations: int, error: FDStoreError, failures: int = 2) -> None:
        super().__init__(Runner(url), "fdstore", url)
        self._left = operations
        self._failures = failures
        self._error = error

    def run(self, operation: Operation[Any]) -> Any:
        if threading.current_thread() is not threading.main_thread():
            return super().run(operation)
        self._left -= 1
        if -self._failures <= self._left < 0:
            operation.close()
            raise self._error
        return super().run(operation)


store_trouble = pytest.mark.parametrize(
    "error",
    [
        StoreUnavailable("redis://", "gone"),
        UnknownOutcome("'journal'"),
        StoreFull("x"),
        StoreReadOnly("x"),
        UnsafeStore("x", "y"),
    ],
    ids=lambda error: error.type,
)


@store_trouble
def test_a_store_error_neither_ends_the_agent_nor_counts_as_a_loss(
    agents_of: AgentsOf, redis_url: str, error: FDStoreError
) -> None:
    agents = agents_of([call("echo", words="a"), say("Done.")])
    agents.launch(python=(tool("echo"),))

    with FailingStore(redis_url, 5, error) as failing:
        assert agents.attempt("solo", failing) == "given back"
    assert (agents.record().state, agents.record().losses) == ("ready", 0)
    assert agents.woken == []  # the sweep requeues it later

    agents.run_all("solo")
    assert (agents.answer(), ran) == ("Done.", ["a"])


@store_trouble
def test_a_store_error_is_raised_to_a_caller_that_runs_the_root_itself(
    agents_of: AgentsOf, redis_url: str, error: FDStoreError
) -> None:
    agents = agents_of([call("echo", words="a"), say("Done.")])
    agents.launch(python=(tool("echo"),))

    with FailingStore(redis_url, 5, error) as failing, pytest.raises(type(error)):
        agents.attempt("solo", failing, wait_here=True)
    assert agents.record().state == "running"

    agents.lose("solo")
    agents.run_all("solo")
    assert (agents.answer(), ran) == ("Done.", ["a"])
