"""A worker that is known to be dead: what it held counts a loss at once, and then runs alone."""

from __future__ import annotations

from pathlib import Path

import msgspec

from fdstore.client import Store
from fdstore.store import leases, pipelines
from fdstore.store.keys import process_keys
from fdstore.testing import call, say
from fdstore_workers.losses import release_held
from fdstore_workers.supervisor import HeldProcess
from tests.on_redis.agents import Agents, running, tool

KEYS = process_keys("fdstore", "solo")


def held(claim: str, process: str = "solo") -> HeldProcess:
    return HeldProcess(1, process, claim)


def lose(store: Store, agents: Agents, claim: str) -> None:
    """A worker claims the process among others, or alone if it must, and dies."""
    taken = store.run(leases.claim(KEYS, "w", claim))
    assert isinstance(taken, leases.Claim)
    assert release_held(store, agents.woken.append, [held(claim)]) == 1


def test_what_a_dead_worker_held_is_ready_at_once_with_a_loss(store: Store, tmp_path: Path) -> None:
    with running(store, [], tmp_path) as agents:
        agents.launch()

        lose(store, agents, "claim 1")

        record = agents.record()
        assert (record.state, record.losses, record.worker, agents.woken) == ("ready", 1, None, ["solo"])


def test_what_went_on_elsewhere_is_not_touched(store: Store, tmp_path: Path) -> None:
    with running(store, [], tmp_path) as agents:
        agents.launch()
        lose(store, agents, "claim 1")
        store.run(leases.claim(KEYS, "another", "claim 2"))
        before = msgspec.to_builtins(agents.record())

        assert release_held(store, agents.woken.append, [held("claim 1"), held("never made")]) == 0

        assert msgspec.to_builtins(agents.record()) == before
        assert agents.woken == ["solo"]


def test_what_has_ended_or_is_not_there_is_not_touched(store: Store, tmp_path: Path) -> None:
    with running(store, [say("Done.")], tmp_path) as agents:
        agents.launch()
        agents.attempt("solo")

        assert release_held(store, agents.woken.append, [held("claim 1"), held("x", "no-such-tree")]) == 0

        assert agents.record().losses == 0


def test_the_third_loss_is_the_last(store: Store, tmp_path: Path) -> None:
    with running(store, [], tmp_path) as agents:
        agents.launch()

        for number in range(3):
            lose(store, agents, f"claim {number}")

        assert (agents.record().state, agents.record().reason) == ("failed", "poison")
        assert agents.woken == ["solo", "solo"]


def test_a_pipeline_of_a_dead_worker_fails(store: Store, tmp_path: Path) -> None:
    with running(store, [], tmp_path) as agents:
        made = store.run(pipelines.start(store.process("solo").handle, "{}", title="true"))
        store.run(leases.claim(process_keys("fdstore", made.process), "w", "claim 1"))

        assert release_held(store, agents.woken.append, [held("claim 1", made.process)]) == 1

        record = agents.record(made.process)
        assert (record.state, record.reason, record.losses) == ("failed", "worker_lost", 0)


def test_a_lost_process_runs_alone_until_it_is_past_that_point(store: Store, tmp_path: Path) -> None:
    script = [call("echo", words="a", id="toolu_a"), say("Done.")]
    with running(store, script, tmp_path) as agents:
        agents.launch(python=(tool("echo"),))
        lose(store, agents, "claim 1")

        assert agents.attempt("solo", company="others") == "alone"
        assert agents.record().attempt == 1
        assert agents.attempt("solo", company="none for long") == "given back"
        assert agents.attempt("solo", company="others") == "ended"

        assert (agents.answer(), agents.record().losses) == ("Done.", 1)


def test_a_process_with_two_losses_runs_alone_to_its_end(store: Store, tmp_path: Path) -> None:
    script = [call("echo", words="a", id="toolu_a"), say("Done.")]
    with running(store, script, tmp_path) as agents:
        agents.launch(python=(tool("echo"),))
        for number in range(2):
            lose(store, agents, f"claim {number}")

        assert agents.attempt("solo", company="others") == "alone"
        assert agents.attempt("solo", company="none for long") == "ended"

        assert (agents.answer(), agents.record().losses) == ("Done.", 2)
