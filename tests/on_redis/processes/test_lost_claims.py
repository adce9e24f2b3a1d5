"""A worker known to be dead: its processes count a loss immediately and then run alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from fdstore.client import Store
from fdstore.store.keys import process_keys
from fdstore.store.processes import leases, pipelines
from fdstore.testing import call, say
from fdstore_workers.supervisor import HeldProcess
from fdstore_workers.worker import release_held
from tests.on_redis.running_agents import Agents, ran, running, tool

KEYS = process_keys("fdstore", "solo")


def held_process(claim: str, process: str = "solo") -> HeldProcess:
    return HeldProcess(1, process, claim)


def lose(store: Store, agents: Agents, claim: str) -> None:
    """Claim the process, alone if required, and report its worker as dead."""
    taken = store.run(leases.claim(KEYS, "w", claim))
    assert isinstance(taken, leases.Claim)
    assert release_held(store, agents.woken.append, [held_process(claim)]) == 1


def test_processes_of_a_dead_worker_are_ready_immediately_with_a_loss(store: Store, tmp_path: Path) -> None:
    with running(store, [], tmp_path) as agents:
        agents.launch()

        lose(store, agents, "claim 1")

        record = agents.record()
        assert (record.state, record.losses, record.worker, agents.woken) == ("ready", 1, None, ["solo"])


def test_processes_continued_by_another_worker_are_not_changed(store: Store, tmp_path: Path) -> None:
    with running(store, [], tmp_path) as agents:
        agents.launch()
        lose(store, agents, "claim 1")
        store.run(leases.claim(KEYS, "another", "claim 2"))
        before = msgspec.to_builtins(agents.record())

        held = [held_process("claim 1"), held_process("never made")]
        assert release_held(store, agents.woken.append, held) == 0

        assert msgspec.to_builtins(agents.record()) == before
        assert agents.woken == ["solo"]


def test_ended_and_missing_processes_are_not_changed(store: Store, tmp_path: Path) -> None:
    with running(store, [say("Done.")], tmp_path) as agents:
        agents.launch()
        agents.attempt("solo")

        held = [held_process("claim 1"), held_process("x", "no-such-tree")]
        assert release_held(store, agents.woken.append, held) == 0

        assert agents.record().losses == 0


def test_the_third_crash_is_the_last(store: Store, tmp_path: Path) -> None:
    with running(store, [], tmp_path) as agents:
        agents.launch()

        for number in range(3):
            lose(store, agents, f"claim {number}")

        assert (agents.record().state, agents.record().reason) == ("failed", "poison")
        assert agents.woken == ["solo", "solo"]


def test_losses_that_it_did_not_cause_do_not_count_against_a_process(store: Store, tmp_path: Path) -> None:
    with running(store, [], tmp_path) as agents:
        agents.launch()
        for number in range(5):
            store.run(leases.claim(KEYS, "w", f"claim {number}"))
            innocent = HeldProcess(1, "solo", f"claim {number}", is_to_blame=False)
            assert release_held(store, agents.woken.append, [innocent]) == 1
        assert (agents.record().state, agents.record().losses) == ("ready", 5)

        for number in range(5, 8):
            assert agents.record().state == "ready"
            lose(store, agents, f"claim {number}")

        assert (agents.record().state, agents.record().reason) == ("failed", "poison")


def test_the_supervisor_is_told_when_an_agent_runs_a_function_of_the_user(
    store: Store, tmp_path: Path
) -> None:
    events: list[str] = []

    @contextmanager
    def user_code() -> Iterator[None]:
        events.append(f"enter {ran}")
        yield
        events.append(f"leave {ran}")

    script = [call("echo", words="a", id="toolu_a"), say("Done.")]
    with running(store, script, tmp_path) as agents:
        agents.launch(python=(tool("echo"),))

        agents.attempt("solo", user_code=user_code)

    assert events == ["enter []", "leave []", "enter []", "leave ['a']"]  # the first imports it


def test_a_pipeline_of_a_dead_worker_fails(store: Store, tmp_path: Path) -> None:
    with running(store, [], tmp_path) as agents:
        made = store.run(pipelines.start(store.process("solo").handle, "{}", title="true"))
        store.run(leases.claim(process_keys("fdstore", made.process), "w", "claim 1"))

        assert release_held(store, agents.woken.append, [held_process("claim 1", made.process)]) == 1

        record = agents.record(made.process)
        assert (record.state, record.reason, record.losses) == ("failed", "worker_lost", 0)


def test_a_lost_process_runs_alone_until_it_passes_the_point_of_its_loss(
    store: Store, tmp_path: Path
) -> None:
    script = [call("echo", words="a", id="toolu_a"), say("Done.")]
    with running(store, script, tmp_path) as agents:
        agents.launch(python=(tool("echo"),))
        lose(store, agents, "claim 1")

        assert agents.attempt("solo", company="others") == "alone"
        assert agents.record().attempt == 1
        assert agents.attempt("solo", company="none for long") == "given back"
        assert agents.attempt("solo", company="others") == "ended"

        assert (agents.answer(), agents.record().losses) == ("Done.", 1)


def test_a_process_that_crashed_two_workers_runs_alone_to_its_end(store: Store, tmp_path: Path) -> None:
    script = [call("echo", words="a", id="toolu_a"), say("Done.")]
    with running(store, script, tmp_path) as agents:
        agents.launch(python=(tool("echo"),))
        for number in range(2):
            lose(store, agents, f"claim {number}")

        assert agents.attempt("solo", company="others") == "alone"
        assert agents.attempt("solo", company="none for long") == "ended"

        assert (agents.answer(), agents.record().losses) == ("Done.", 2)
