"""The round trips that clients wait for, their connections and forgotten scripts included."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from fdstore.bench.agent_trips import TURN
from fdstore.bench.counting import CONNECT, CountingRunner, counting_store
from fdstore.bench.trips import measure
from fdstore.client import Process, Store
from fdstore.local.redis_server import PrivateServer
from fdstore.store.doctor import check
from fdstore.testing import call, turn
from tests.on_redis.running_agents import running, tool

TABLE = re.compile(r"^\| ([^|]+) \| (\d+) \| (\d+) \|$", re.MULTILINE)
Counted: TypeAlias = tuple[Process, CountingRunner]
STEPS = (TURN, "from the claim", "the last answer")
"""The waits of a model, or of its caller, beside the model itself."""
SPEED = Path(__file__).parents[3] / "docs" / "explanation" / "speed.md"


def test_the_documented_round_trips_are_those_that_are_counted() -> None:
    documented = {
        case: (int(first), int(again)) for case, first, again in TABLE.findall(SPEED.read_text("utf-8"))
    }

    with PrivateServer({"appendonly": "yes"}) as server:
        found = {each.case: (each.first, each.again) for each in measure(server.url)}

    assert list(documented) == list(found)
    counted = {case: (len(first), len(again)) for case, (first, again) in found.items()}
    wrong = {case: found[case] for case in found if counted[case] != documented[case]}
    assert wrong == {}
    turns = [again for case, (_, again) in counted.items() if case.startswith(STEPS)]
    assert max(turns) <= 4


@pytest.fixture(autouse=True)
def forget_warnings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "_warned", set())


def test_connecting_is_two_round_trips_with_a_log_or_without_the_right_to_ask_about_it() -> None:
    for options in (
        {"appendonly": "yes"},
        {"appendonly": "yes", "rename-command": "CONFIG HIDDEN"},
    ):
        with PrivateServer(options) as server:
            store, runner = counting_store(server.url)
            store.close()

        assert runner.taken() == [CONNECT, "INFO INFO INFO CONFIG CONFIG"]


@pytest.fixture
def counted(redis_url: str, execute: Any) -> Iterator[Counted]:
    """A process whose round trips are counted, on a server that knows no script."""
    execute("SCRIPT", "FLUSH")
    store, runner = counting_store(redis_url)
    with store:
        process = store.process("triage")
        runner.taken()
        yield process, runner


def test_after_a_start_of_the_server_no_script_costs_a_second_round_trip(
    counted: Counted,
) -> None:
    proc, runner = counted
    proc.close(proc.create("text").fd)

    assert [trip.split()[-1] for trip in runner.taken()] == ["commit", "close"]


def test_a_server_that_forgets_its_scripts_costs_one_round_trip_more_in_all(
    counted: Counted, execute: Any
) -> None:
    proc, runner = counted
    proc.stat(proc.create("text").fd)
    execute("SCRIPT", "FLUSH")
    runner.taken()

    for _ in range(2):
        fd = proc.create("text").fd
        proc.stat(fd)
        proc.close(fd)

    assert runner.taken() == ["commit", *["commit", "resolve", "close"] * 2]


def test_the_end_of_a_wait_is_stored_before_the_next_call_of_its_turn_runs(
    store: Store, tmp_path: Path
) -> None:
    both = turn(call("wait", target="solo.1", seconds=60), call("echo", words="a"))
    with running(store, [both], tmp_path) as agents:
        agents.launch(tools=("wait",), python=(tool("echo"),)).child()
        counted, runner = counting_store(store.url)
        with counted:
            assert agents.attempt("solo", counted) == "waiting"

    trips = runner.taken()
    assert "put_once" in trips[: trips.index("put_once journal")]
