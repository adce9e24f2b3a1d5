"""Clients and workers whose machines' clocks are two hours off: all times are those of Redis.

A whole worker with such a clock is in `with_workers/test_shifted_clock`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fdstore.agents.loop.program_loader import Limits
from fdstore.cli import cli
from fdstore.client import Store
from fdstore.model.records import TreeLimits
from fdstore.store.clock import redis_now
from fdstore.store.trees import collect_trees
from fdstore.store.views import worker_registry
from fdstore.testing import Request, Turn, call, say
from fdstore_workers.sweeper import collect_due, sweep
from tests.on_redis.running_agents import SMALL, running
from tests.waiting import wait_until

Execute = Callable[..., Any]
Shift = Callable[[float], None]
HOURS = pytest.mark.parametrize("off_s", [-7200, 7200], ids=["two-hours-late", "two-hours-early"])


@pytest.fixture
def shift(monkeypatch: pytest.MonkeyPatch) -> Shift:
    """Return a function that shifts this machine's clock by `off_s` seconds."""
    right = time.time

    def set_clock(off_s: float) -> None:
        monkeypatch.setattr(time, "time", lambda: right() + off_s)

    return set_clock


@HOURS
def test_an_agent_gets_its_full_time_limit_whatever_the_worker_clock_shows(
    store: Store, tmp_path: Path, shift: Shift, off_s: float
) -> None:
    with running(store, [say("Done.")], tmp_path) as agents:
        agents.launch(limits=Limits(wall_seconds=600))
        shift(off_s)

        assert agents.attempt("solo") == "ended"

        assert (agents.record().state, agents.answer()) == ("exited", "Done.")


def test_an_agent_gets_no_extra_time_on_a_machine_whose_clock_is_late(
    store: Store, execute: Execute, tmp_path: Path, shift: Shift
) -> None:
    with running(store, [say("Done.")], tmp_path) as agents:
        agents.launch(limits=Limits(wall_seconds=600))
        execute("HSET", "fdstore:{solo}:solo", "started_at", time.time() - 900)
        shift(-7200)

        agents.attempt("solo")

        assert (agents.record().reason or "").startswith("wall_seconds: ")


@pytest.mark.parametrize(("first_s", "second_s"), [(7200, 0), (0, -7200), (-7200, 0), (0, 7200)])
def test_a_wait_ends_on_time_when_a_machine_with_another_clock_takes_over(
    store: Store, tmp_path: Path, shift: Shift, first_s: float, second_s: float
) -> None:
    def script(request: Request) -> Turn:
        if request.turn_number == 0:
            return call("pipe", commands=["sort"], id="toolu_a")
        if request.turn_number == 1:
            return call("wait", target="solo.1", seconds=0.3, id="toolu_b")
        return say("Done.")

    with running(store, script, tmp_path) as agents:
        agents.launch(
            tools=("read_fd", "pipe", "wait"), commands=("sort",), file_descriptor=SMALL, limits=Limits()
        )
        shift(first_s)
        assert agents.attempt("solo") == "waiting"
        shift(second_s)

        def swept() -> bool:
            sweep(store, lambda _: None)
            return agents.record().state == "ready"

        wait_until(swept)

        assert agents.attempt("solo") == "ended"
        assert 'state="ready"' in agents.results()[-1].content


@HOURS
def test_a_tree_used_by_a_machine_with_a_wrong_clock_is_kept_for_its_retention(
    store: Store, execute: Execute, shift: Shift, off_s: float
) -> None:
    shift(off_s)
    made = store.process("t", limits=TreeLimits(retention_days=1))

    def kept_s() -> float:
        return float(execute("ZSCORE", "fdstore:trees", "t")) - store.run(redis_now())

    assert kept_s() == pytest.approx(86_400, abs=60)
    execute("HSET", "fdstore:{t}", "used_at", float(execute("HGET", "fdstore:{t}", "used_at")) - 3600)
    store.process("t")
    assert kept_s() == pytest.approx(86_400, abs=60)
    assert made.id == "t"


@HOURS
def test_opening_a_recently_used_tree_writes_nothing(
    store: Store, execute: Execute, shift: Shift, off_s: float
) -> None:
    store.process("t", limits=TreeLimits(retention_days=1))
    used_at = execute("HGET", "fdstore:{t}", "used_at")
    shift(off_s)

    store.process("t")

    assert execute("HGET", "fdstore:{t}", "used_at") == used_at


def test_no_tree_is_due_too_soon_for_a_machine_whose_clock_is_early(
    store: Store, execute: Execute, shift: Shift
) -> None:
    store.process("t")
    execute("ZADD", "fdstore:trees", store.run(redis_now()) + 3600, "t")
    shift(7200)

    assert store.run(collect_trees.due_trees("fdstore")) == []
    assert "nothing to remove" in CliRunner().invoke(cli, ["--url", store.url, "gc", "--dry-run"]).output


def test_a_tree_in_use_is_checked_again_after_an_hour_of_redis_time(
    store: Store, execute: Execute, tmp_path: Path, shift: Shift
) -> None:
    with running(store, [], tmp_path) as agents:
        agents.launch()
        execute("HSET", "fdstore:{solo}", "used_at", 1)
        execute("ZADD", "fdstore:trees", 0, "solo")
        shift(7200)

        collect_due(store)

        again_s = float(execute("ZSCORE", "fdstore:trees", "solo")) - store.run(redis_now())
        assert again_s == pytest.approx(3600, abs=60)


@HOURS
def test_ps_status_and_ls_show_ages_and_workers_by_redis_time(
    store: Store, shift: Shift, off_s: float
) -> None:
    store.process("t").create("text")
    store.run(
        worker_registry.register_worker("fdstore", "here:1", 10, store.run(redis_now()), "in a sandbox")
    )
    shift(off_s)

    shown = {
        name: CliRunner().invoke(cli, ["--url", store.url, *arguments]).output
        for name, arguments in {"ps": ["ps"], "ls": ["ls", "t"], "status": ["status"]}.items()
    }

    assert " h ago" not in shown["ps"] + shown["ls"]
    assert "here:1" in shown["status"]
