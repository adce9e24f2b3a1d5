"""Attempts at a process: claimed, renewed, lost, requeued, crashed, and resumed by the next one."""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fdstore.agent.launch import launch_root
from fdstore.agent.program_loader import Bundle, Limits, Program
from fdstore.client import Store
from fdstore.errors import (
    FDStoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    UnknownOutcome,
    UnsafeStore,
)
from fdstore.lifecycle import ENDED, ProcessEnd
from fdstore.permissions import Permissions
from fdstore.runtime.claim import Lease
from fdstore.runtime.run_process import Ending, run_process
from fdstore.store import leases, pipelines, worker_registry
from fdstore.store.clock import redis_now
from fdstore.store.keys import ProcessKeys, process_keys
from fdstore.store.process_handle import ProcessHandle
from fdstore.testing import Request, Turn, call, fail, say, turn
from fdstore.wire._sync.runner import Runner
from fdstore.wire.operation import Operation
from fdstore_workers.sweeper import sweep
from tests.on_redis.agents import READER, SMALL, Agents, ran, running, tool
from tests.waiting import wait_until

Execute = Callable[..., Any]


def test_a_process_is_claimed_once(store: Store, tmp_path: Path) -> None:
    with running(store, [say("Done.")], tmp_path) as agents:
        agents.launch()
        keys = process_keys("fdstore", "solo")

        first = store.run(leases.claim(keys, "a"))
        second = store.run(leases.claim(keys, "b"))

        assert first is not None
        assert (first.attempt, second) == (1, None)


def test_an_agent_worker_leaves_pipelines_to_pipeline_workers(store: Store, tmp_path: Path) -> None:
    with running(store, [], tmp_path) as agents:
        proc = store.process("solo")
        started = store.run(pipelines.start(proc.handle, "{}", title="true"))

        assert agents.attempt(started.process) == "pipeline"

        assert (agents.record(started.process).state, agents.record(started.process).attempt) == ("ready", 0)


def test_a_worker_without_a_model_leaves_agents_to_others(store: Store, tmp_path: Path) -> None:
    def no_commands(*_: Any) -> ProcessEnd:
        raise AssertionError("an agent is no pipeline")

    with running(store, [], tmp_path) as agents:
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
    without = store.run(worker_registry.has_agent_worker("fdstore"))
    store.run(worker_registry.register_worker("fdstore", "keyed:2", 10, now_s))
    refusals = dict(
        zip(
            living := store.run(worker_registry.workers("fdstore")),
            store.run(worker_registry.agent_refusals_of("fdstore", living)),
            strict=True,
        )
    )

    assert refusals == {"keyless:1": "there is no key", "keyed:2": ""}
    assert (without, store.run(worker_registry.has_agent_worker("fdstore"))) == (False, True)


def test_the_end_of_a_process_is_one_log_line_with_program_duration_turns_and_reason(
    store: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "fdstore.agent")
    with running(store, [say("Done."), fail(401)], tmp_path) as agents:
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


def test_a_claim_whose_reply_was_lost_can_be_repeated(store: Store, tmp_path: Path) -> None:
    def repeat_request(operation: Operation[Any]) -> Operation[Any]:
        request = next(operation)
        yield request
        reply = yield request
        try:
            operation.send(reply)
        except StopIteration as done:
            return done.value
        raise AssertionError("a claim is one round trip")

    with running(store, [], tmp_path) as agents:
        agents.launch()

        claimed = store.run(repeat_request(leases.claim(process_keys("fdstore", "solo"), "a")))

        assert claimed.attempt == 1
        assert agents.record().attempt == 1


def test_a_lease_is_renewed_until_another_attempt_replaces_it(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "RENEW_EVERY_S", 0.01)
    with running(store, [], tmp_path) as agents:
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


def test_a_stopping_worker_returns_its_agent_to_the_queue(store: Store, tmp_path: Path) -> None:
    stopping = threading.Event()

    def script(request: Request) -> Turn:
        stopping.set()
        return call("echo", words="a", id="toolu_a") if request.turn_number == 0 else say("Done.")

    with running(store, script, tmp_path) as agents:
        agents.launch(python=(tool("echo"),))

        assert agents.attempt("solo", stopping=stopping) == "given back"
        record = agents.record()
        assert (record.state, record.losses, record.worker) == ("ready", 0, None)
        assert agents.woken == ["solo"]
        assert agents.attempt("solo") == "ended"
        assert agents.answer() == "Done."


def test_a_stopping_worker_does_not_wait_for_the_retry_pause(store: Store, tmp_path: Path) -> None:
    stopping = threading.Event()

    def script(request: Request) -> Any:
        stopping.set()
        return fail(429, retry_after=250)

    with running(store, script, tmp_path) as agents:
        agents.launch()

        assert agents.attempt("solo", stopping=stopping) == "given back"


def test_a_replaced_attempt_writes_nothing(store: Store, tmp_path: Path, execute: Execute) -> None:
    answer_count = itertools.count()
    let_go = threading.Event()

    def script(request: Request) -> Turn:
        if request.turn_number == 0:
            return call("echo", words="first", id="toolu_first")
        if next(answer_count) > 0:
            return say('<ref id="new">Alive.</ref>')
        let_go.wait(30)
        return turn(say('<ref id="old">From the grave.</ref>'), call("echo", words="too late"))

    def dump_all() -> dict[bytes, bytes]:
        return {key: execute("DUMP", key) for key in execute("KEYS", "*")}

    with running(store, script, tmp_path) as agents:
        agents.launch(tools=("read_fd",), python=(tool("echo"),))
        ended: list[Ending] = []
        old = threading.Thread(target=lambda: ended.append(agents.attempt("solo")))
        old.start()
        agents.model.wait_for(2)
        agents.lose("solo")
        assert agents.attempt("solo") == "ended"
        before = dump_all()

        let_go.set()
        old.join(30)

        assert ended == ["lost"]
        assert dump_all() == before
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
    store: Store, tmp_path: Path, redis_url: str, error: FDStoreError
) -> None:
    with running(store, [call("echo", words="a"), say("Done.")], tmp_path) as agents:
        agents.launch(python=(tool("echo"),))

        with FailingStore(redis_url, 6, error) as failing:
            assert agents.attempt("solo", failing) == "given back"
        assert (agents.record().state, agents.record().losses) == ("ready", 0)
        assert agents.woken == []  # the sweep requeues it later

        agents.run_all("solo")
        assert (agents.answer(), ran) == ("Done.", ["a"])


@store_trouble
def test_a_store_error_is_raised_to_a_caller_that_runs_the_root_itself(
    store: Store, tmp_path: Path, redis_url: str, error: FDStoreError
) -> None:
    with running(store, [call("echo", words="a"), say("Done.")], tmp_path) as agents:
        agents.launch(python=(tool("echo"),))

        with FailingStore(redis_url, 6, error) as failing, pytest.raises(type(error)):
            agents.attempt("solo", failing, wait_here=True)
        assert agents.record().state == "running"

        agents.lose("solo")
        agents.run_all("solo")
        assert (agents.answer(), ran) == ("Done.", ["a"])


# the sweep


def test_a_sweep_skips_trees_whose_processes_have_all_ended(store: Store, tmp_path: Path) -> None:
    with running(store, [], tmp_path) as agents:
        agents.launch()
        store.process("ended").end()
        store.process("open")
        over: set[str] = set()

        sweep(store, agents.woken.append, over=over)
        assert over == {"ended"}

        agents.expire("solo")
        assert sweep(store, agents.woken.append, over=over) == 1
        assert agents.woken == ["solo"]


def test_the_sweep_makes_a_lost_process_ready_and_fails_it_at_the_third_loss(
    store: Store, tmp_path: Path
) -> None:
    with running(store, [], tmp_path) as agents:
        agents.launch()
        states = []
        for _ in range(3):
            store.run(leases.claim(process_keys("fdstore", "solo"), "a"))
            agents.expire("solo")
            sweep(store, agents.woken.append)
            states.append(agents.record().state)

        assert states == ["ready", "ready", "failed"]
        assert agents.woken == ["solo", "solo"]
        assert (agents.record().reason, agents.record().losses) == ("poison", 3)


def test_max_losses_of_a_program_limits_how_often_it_is_rerun(store: Store, tmp_path: Path) -> None:
    with running(store, [], tmp_path) as agents:
        agents.launch(limits=Limits(max_losses=1))
        store.run(leases.claim(process_keys("fdstore", "solo"), "a"))
        agents.expire("solo")

        sweep(store, agents.woken.append)

        assert (agents.record().state, agents.record().reason) == ("failed", "poison")
        assert agents.woken == []


def test_a_parent_gets_the_failure_of_a_child_that_was_lost_too_often(store: Store, tmp_path: Path) -> None:
    script = {"SOLO": [call("spawn", program_name="reader", query="Read."), say("Done.")]}

    with running(store, script, tmp_path) as agents:
        agents.launch(tools=("spawn",), others=[READER], limits=Limits(max_losses=1))
        agents.attempt("solo")
        for _ in range(3):
            store.run(leases.claim(process_keys("fdstore", "solo.1"), "a"))
            agents.expire("solo.1")
            sweep(store, agents.woken.append)

        assert agents.record("solo.1").state == "failed"
        assert agents.woken[-1] == "solo"
        assert agents.attempt("solo") == "ended"
        [result] = agents.results()
        assert result.is_error
        assert 'reason="poison"' in result.content


def test_the_sweep_wakes_a_ready_process_periodically(store: Store, tmp_path: Path) -> None:
    with running(store, [], tmp_path) as agents:
        agents.launch()
        agents.expire("solo")

        sweep(store, agents.woken.append)
        sweep(store, agents.woken.append)

        assert agents.woken == ["solo"]


def test_the_sweep_ignores_processes_that_run_wait_or_have_ended(store: Store, tmp_path: Path) -> None:
    script = {
        "SOLO": [call("spawn", program_name="reader", query="Read."), say("Done.")],
        "READER": [say("Read.")],
    }

    with running(store, script, tmp_path) as agents:
        agents.launch(tools=("spawn",), others=[READER])
        agents.attempt("solo")
        store.run(leases.claim(process_keys("fdstore", "solo.1"), "a"))
        agents.woken.clear()

        assert sweep(store, agents.woken.append) == 0

        agents.lose("solo.1")
        agents.run_all("solo")
        agents.woken.clear()
        assert sweep(store, agents.woken.append) == 0
        assert agents.woken == []


def test_the_sweep_counts_no_loss_for_a_process_claimed_after_it_looked(store: Store, tmp_path: Path) -> None:
    with running(store, [], tmp_path) as agents:
        agents.launch()
        moment = store.run(redis_now())
        keys = process_keys("fdstore", "solo")
        store.run(leases.claim(keys, "a"))
        store.run(set_lease(keys, moment + 0.000001))  # expired, as after an outage of Redis

        assert store.run(leases.check_overdue(keys, moment=moment)).decision == "nothing"
        assert agents.record().losses == 0
        assert store.run(leases.check_overdue(keys)).decision == "wake"
        assert agents.record().losses == 1


def set_lease(keys: ProcessKeys, until: float) -> Operation[None]:
    yield [("HSET", keys.record, "lease_until", f"{until:.6f}")]


def test_one_worker_keeps_the_sweep_as_long_as_it_renews_it(store: Store, execute: Execute) -> None:
    assert [store.run(worker_registry.acquire_sweep("fdstore", worker, 5)) for worker in "aab"] == [
        True,
        True,
        False,
    ]
    execute("DEL", "fdstore:sweeper")
    assert store.run(worker_registry.acquire_sweep("fdstore", "b", 5))


# crashes


class Crashed(BaseException):
    """The crash of the worker process; no code under test may catch it."""


class CrashingStore(Store):
    """A store whose client crashes before its n-th request; calls of the user's functions count as requests.

    All values of n together produce every state that a crash can leave. Requests of the thread that renews
    the lease are not counted.
    """

    def __init__(self, url: str, requests: int) -> None:
        super().__init__(Runner(url), "fdstore", url)
        self.left = requests
        self._thread = threading.get_ident()

    def run(self, operation: Operation[Any]) -> Any:
        if threading.get_ident() != self._thread:
            return super().run(operation)
        return super().run(self._counted(operation))

    def _counted(self, operation: Operation[Any]) -> Operation[Any]:
        try:
            request = next(operation)
            while True:
                if self.left == 0:
                    raise Crashed
                self.left -= 1
                try:
                    reply = yield request
                except FDStoreError as error:
                    request = operation.throw(error)
                else:
                    request = operation.send(reply)
        except StopIteration as done:
            return done.value
        finally:
            operation.close()


SPAWN = call(
    "spawn",
    {
        "program_name": "reader",
        "query": "Read it.",
        "additional_preload_fds": ["fd:3#L3-5", "ref:plan"],
        "additional_preload_files": ["notes.txt"],
    },
    id="toolu_spawn",
)


def long_script(request: Request) -> Turn:
    """Answer as a deterministic script that uses every kind of tool."""
    if "READER" in request.system:
        if request.turn_number == 0:
            return call("read_fd", fd="ref:plan", id="toolu_read")
        return say("It says much. " * 20)
    match request.turn_number:
        case 0:
            return turn(call("lines", count=40, id="toolu_lines"), call("echo", words="b", id="toolu_echo"))
        case 1:
            plan = say('<ref id="plan">Read, then write.</ref><ref id="gone">x</ref>')
            return turn(plan, SPAWN, call("close_fd", fd="ref:gone", id="toolu_close"))
        case 2:
            write = call("fd_to_file", fd="ref:plan", file_path="plan.txt", id="toolu_file")
            part = call("read_fd", fd="fd:3#L7", extract_to_new_fd=True, id="toolu_part")
            return turn(write, part, call("breaks", words="no disk", id="toolu_breaks"))
    return say("All is done.")


CALL_OF = {"lines 40": "toolu_lines", "b": "toolu_echo", "no disk": "toolu_breaks"}


def launch_long_script(agents: Agents) -> None:
    (agents.folder / "notes.txt").write_text("one\ntwo\n")
    agents.launch(
        "word " * 40,
        tools=("read_fd", "fd_to_file", "close_fd", "spawn"),
        python=(tool("lines"), tool("echo"), tool("breaks")),
        file_descriptor=SMALL,
        preload=(str(agents.folder / "notes.txt"),),
        preload_root=str(agents.folder),
        others=[READER],
    )


def final_state(agents: Agents) -> dict[str, Any]:
    """Return the final state of an agent, without times and attempt counts."""
    tree = agents.store.tree("solo")
    return {
        "states": [(m.id, m.state, m.exit_code, m.reason) for m in tree.members],
        "answer": agents.answer(),
        "journals": [agents.journal(member.id) for member in tree.members],
        "held": [(d.fd, d.chars, d.source, d.producer) for d in agents.store.process("solo").list()],
        "counts": (tree.fds, tree.bytes, tree.live),
        "file": (agents.folder / "plan.txt").read_text(),
    }


def run_until_crash(agents: Agents, crashing: CrashingStore) -> bool:
    """Run the tree on a store that crashes; return whether it crashed before the tree ended."""
    try:
        while ready := [m.id for m in agents.store.tree("solo").members if m.state == "ready"]:
            agents.attempt(ready[0], crashing)
    except Crashed:
        return True
    return False


def test_an_agent_that_crashes_at_any_request_ends_with_the_same_state(
    store: Store, tmp_path: Path, execute: Execute, redis_url: str
) -> None:
    with running(store, long_script, tmp_path) as agents:
        launch_long_script(agents)
        agents.run_all("solo")
        expected = final_state(agents)
        assert expected["states"] == [("solo", "exited", 0, None), ("solo.1", "exited", 0, None)]

        for requests in itertools.count():
            execute("FLUSHALL")
            ran.clear()
            launch_long_script(agents)
            with CrashingStore(redis_url, requests) as crashing:
                crashed = run_until_crash(agents, crashing)
            finished = {result.call for result in agents.results()}
            before = len(ran)
            for member in store.tree("solo").members:
                if member.state not in ENDED:
                    agents.lose(member.id)
            agents.run_all("solo")

            assert final_state(agents) == expected, f"after a crash before request {requests}"
            assert finished.isdisjoint(CALL_OF[words] for words in ran[before:])
            if not crashed:
                break
        assert requests > 60


def test_a_passage_comes_from_the_answer_in_the_journal(
    store: Store, tmp_path: Path, execute: Execute, redis_url: str
) -> None:
    """A repeated model call returns another answer; only the journaled answer counts."""
    answer_count = itertools.count()

    def script(_: Request) -> Turn:
        return say(f'<ref id="plan">plan {next(answer_count)}</ref>')

    with running(store, script, tmp_path) as agents:
        for requests in itertools.count():
            execute("FLUSHALL")
            agents.launch(tools=("read_fd",))
            with CrashingStore(redis_url, requests) as crashing:
                crashed = run_until_crash(agents, crashing)
            if crashed and agents.record().state not in ENDED:
                agents.lose("solo")
                agents.run_all("solo")

            plan = store.process("solo").read("ref:plan").text
            assert agents.answer() == f'<ref id="plan">{plan}</ref>'
            assert [d.fd for d in store.process("solo").list()] == ["ref:plan"]
            if not crashed:
                break
