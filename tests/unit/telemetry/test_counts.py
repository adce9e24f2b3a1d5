"""The counts of a worker's processes, in memory that they share."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from typing import Annotated

import msgspec
import pytest

from fdstore.telemetry import counts
from fdstore.telemetry.counts import MAX_SERIES, Counts, count, observe
from fdstore.telemetry.metric_table import CALL_BUCKETS_S, COUNTED, Metric
from fdstore.telemetry.prometheus import render
from fdstore_workers.status_server import GAUGES

TURNS = "fdstore_model_turns_total"
LOSSES = "fdstore_process_losses_total"
TIMES = "fdstore_tool_duration_seconds"


@pytest.fixture
def shared() -> Iterator[Counts]:
    counts.turn_off()
    yield counts.turn_on(3)
    counts.turn_off()


def in_killed_child(body: Callable[[], None]) -> None:
    """Run `body` in a forked process that ends as a crash would end it."""
    pid = os.fork()
    if pid == 0:
        body()
        os.kill(os.getpid(), signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL


def test_nothing_is_counted_unless_it_was_turned_on() -> None:
    counts.turn_off()

    count(LOSSES)
    observe(TIMES, 1.0, "read_fd")

    assert not counts.is_counting()


@pytest.mark.thorough("new interpreters")
def test_the_counts_of_killed_processes_stay_and_the_next_one_goes_on_with_them(shared: Counts) -> None:
    for _ in range(20):  # more than there are slots
        in_killed_child(lambda: count(TURNS, "big", by=2))
    count(TURNS, "big")

    assert shared.read() == {(TURNS, "big"): [41.0]}
    assert shared.read_own() == {(TURNS, "big"): [1.0]}


def test_more_processes_than_slots_count_nothing_and_break_nothing() -> None:
    counts.turn_off()
    shared = counts.turn_on(1)
    count(LOSSES)

    in_killed_child(lambda: count(LOSSES))

    assert shared.read() == {(LOSSES,): [1.0]}
    counts.turn_off()


def test_a_histogram_has_its_buckets_and_its_sum(shared: Counts) -> None:
    for seconds in (0.001, 0.005, 0.02, 1000.0):
        observe(TIMES, seconds, "read_fd")

    [numbers] = shared.read().values()
    assert numbers[:4] == [2.0, 0.0, 1.0, 0.0]
    assert numbers[len(CALL_BUCKETS_S)] == 1.0
    assert numbers[-1] == pytest.approx(1000.026)
    page, _ = render(shared.read(), [])
    assert 'fdstore_tool_duration_seconds_bucket{le="0.025",tool="read_fd"} 3.0' in page.decode()
    assert 'fdstore_tool_duration_seconds_count{tool="read_fd"} 4.0' in page.decode()


def test_labels_without_bound_are_counted_together_and_show_no_control_characters(shared: Counts) -> None:
    count(TURNS, 'a\x1b"\t\n')
    for number in range(10 * MAX_SERIES):
        count(TURNS, f"model {number}")

    found = shared.read()
    assert len(found) == MAX_SERIES + 1
    assert found[TURNS, "other"] == [9 * MAX_SERIES + 1]
    assert found[TURNS, 'a\\u{1b}"'] == [1.0]


class Oven(msgspec.Struct):
    """A state with gauges."""

    model: Annotated[str, Metric("oven_info", "1, with the model.", ("model",))]
    baker: str
    heat: Annotated[float | None, Metric("oven_celsius", "How hot it is.")] = None
    on: Annotated[bool, Metric("oven_on", "1 if it is on.")] = True


def test_the_gauges_of_a_state_are_served_with_its_values_and_absent_if_they_are_none() -> None:
    page, _ = render({}, [Oven("big", "Ada"), None])
    hot, _ = render({}, [Oven("big", "Ada", 230)])

    def gauges(shown: bytes) -> list[str]:
        return [line for line in shown.decode().splitlines() if "oven" in line]

    assert gauges(page) == [
        "# HELP oven_info 1, with the model.",
        "# TYPE oven_info gauge",
        'oven_info{model="big"} 1.0',
        "# HELP oven_on 1 if it is on.",
        "# TYPE oven_on gauge",
        "oven_on 1.0",
    ]
    assert "oven_celsius 230.0" in gauges(hot)


def test_every_metric_follows_the_conventions_of_prometheus() -> None:
    metrics = (*COUNTED, *GAUGES)
    for metric in metrics:
        assert metric.name.startswith("fdstore_")
        assert metric.help.endswith(".")
        assert metric.name.endswith("_total") == (metric.kind == "counter")
        assert metric.kind != "histogram" or (metric.name.endswith("_seconds") and not metric.otel)
    assert {metric.kind for metric in COUNTED} == {"counter", "histogram"}
    assert {gauge.kind for gauge in GAUGES} == {"gauge"}
    assert len({metric.name for metric in metrics}) == len(metrics)
