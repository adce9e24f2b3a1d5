"""Processes and descriptors: the cost of a child, a shared descriptor and a close, compared with a PING."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fdstore.bench import texts
from fdstore.bench.measuring import BenchRow, Lap, at_most, format_duration, lap, lap_on, row, take_turns
from fdstore.bench.stage import KB, BenchStage
from fdstore.client import Process

TABLE = 1000
"""Descriptors of the process that is forked."""


def rows(stage: BenchStage) -> Iterator[BenchRow]:
    text = texts.of_kind(texts.LOGS, 4 * KB)
    ping = lap(stage.plain.ping)
    with stage.process() as proc:
        for _ in range(TABLE):
            proc.create("a descriptor")
        rounds = take_turns([spawn_lap(proc.fork)], stage.budget_s, at_once=5)
        value = rounds.value(lambda forked: forked * 1000)
        yield row(f"fork, {TABLE} descriptors", at_most(5, "ms"), value, format_duration(rounds.medians[0]))
        yield stage.round_trips(f"fork, {TABLE} descriptors", 1, proc.fork)
    with stage.process() as proc:
        proc.create(text)
        with_one, without = spawn_lap(lambda: proc.child(share=["fd:1"])), spawn_lap(proc.child)
        rounds = take_turns([with_one, without, ping], stage.budget_s, at_once=50)
        value = rounds.value(lambda more, less, pinged: (more - less) / pinged)
        more, less, pinged = map(format_duration, rounds.medians)
        yield row("share of a descriptor, of a PING", at_most(0.5), value, f"{more} - {less}", pinged)
    with stage.process() as proc:
        yield stage.compare("close, against PING", at_most(1.5), closing(proc, text), ping)


def spawn_lap(make: Callable[[], Process]) -> Lap:
    """Time creating processes; ending them afterwards is not timed."""
    return lap(make, Process.end)


def closing(proc: Process, text: str) -> Lap:
    """Time closing descriptors without other holders; creating them before is not timed."""
    return lap_on(lambda: proc.create(text).fd, proc.close)
