"""Measure reliable ratios: alternating laps, medians and bars.

The compared things run in short alternating laps, in changing order, so that other load on the machine
affects all of them. The result is the median of the rounds' ratios; the spread is their interquartile range.
A wide spread means that the machine was busy and the ratio is unreliable.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

from fdstore.errors import TimedOut
from fdstore.model.records import Record

T = TypeVar("T")

Lap = Callable[[int], float]
"""Do the work so many times, and return the seconds that count."""

Unit = Literal["x", "%", "B", "KB", "MB", "MB/s", "ms", "s", "trips", "count"]

LAP_S = 0.004
"""Target duration of a lap, if one repetition is shorter."""

LOOK_EVERY_S = 0.02

MIN_ROUNDS = 7
MAX_ROUNDS = 400


class Bar(Record, frozen=True, kw_only=True):
    """Limit for a measured value."""

    limit: float
    unit: Unit
    at_least: bool = False

    def holds(self, value: float) -> bool:
        return value >= self.limit if self.at_least else value <= self.limit


def at_most(limit: float, unit: Unit = "x") -> Bar:
    return Bar(limit=limit, unit=unit)


def at_least(limit: float, unit: Unit = "x") -> Bar:
    return Bar(limit=limit, unit=unit, at_least=True)


class BenchRow(Record, frozen=True, kw_only=True):
    """One measurement: the median `value` with its quartiles `low` and `high`, and its bar. `ours` and
    `theirs` are the compared values, as text."""

    case: str
    value: float
    low: float
    high: float
    bar: Bar
    ok: bool
    ours: str = ""
    theirs: str = ""


class Rounds:
    """Times of alternating laps: `seconds[i][k]` for one repetition of the i-th thing in round k."""

    def __init__(self, seconds: list[list[float]]) -> None:
        self.seconds = seconds
        self.medians = [statistics.median(times) for times in seconds]

    def of(self, *which: int) -> Rounds:
        """Return the rounds of these things only."""
        return Rounds([self.seconds[i] for i in which])

    def value(self, of: Callable[..., float]) -> tuple[float, float, float]:
        """Apply `of` to the times of each round. Return the median and the quartiles."""
        low, middle, high = statistics.quantiles(
            [of(*times) for times in zip(*self.seconds, strict=True)], n=4
        )
        return middle, low, high


def lap(work: Callable[[], T], undo: Callable[[T], object] | None = None) -> Lap:
    """Return a lap of this work. Afterwards `undo` gets what it returned, which is not timed."""

    def run(times: int) -> float:
        start = time.perf_counter()
        if undo is None:
            for _ in range(times):
                work()
            return time.perf_counter() - start
        made = [work() for _ in range(times)]
        passed = time.perf_counter() - start
        for each in made:
            undo(each)
        return passed

    return run


def lap_on(make: Callable[[], T], work: Callable[[T], object]) -> Lap:
    """Return a lap of work on what `make` makes before, which is not timed."""

    def run(times: int) -> float:
        made = [make() for _ in range(times)]
        start = time.perf_counter()
        for each in made:
            work(each)
        return time.perf_counter() - start

    return run


def self_timed(once: Callable[[], float]) -> Lap:
    """Return a lap of work that returns the seconds that count."""
    return lambda times: sum(once() for _ in range(times))


def wait_until(is_so: Callable[[], bool], what: str, patience_s: float) -> None:
    """Wait until `is_so()`. Raises `TimedOut` after `patience_s`."""
    until = time.monotonic() + patience_s
    while not is_so():
        if time.monotonic() > until:
            raise TimedOut(what, patience_s)
        time.sleep(LOOK_EVERY_S)


def take_turns(laps: Sequence[Lap], budget_s: float, *, at_once: int | None = None) -> Rounds:
    """Run the laps alternately for about `budget_s`, each of at most `at_once` repetitions."""
    warm = max(run(1) for run in laps)
    each = max(1, min(at_once or 10_000, int(LAP_S / max(warm, 1e-6))))
    seconds: list[list[float]] = [[] for _ in laps]
    order = list(range(len(laps)))
    until = time.monotonic() + budget_s
    for done in range(MAX_ROUNDS):
        if done >= MIN_ROUNDS and time.monotonic() > until:
            break
        for i in order:
            seconds[i].append(laps[i](each) / each)
        order.reverse()
    return Rounds(seconds)


def row(
    case: str,
    bar: Bar,
    value: float | tuple[float, float, float],
    ours: str = "",
    theirs: str = "",
) -> BenchRow:
    """Return a row, with its value compared to the bar. A single value has no spread."""
    middle, low, high = value if isinstance(value, tuple) else (value, value, value)
    return BenchRow(
        case=case, value=middle, low=low, high=high, bar=bar, ok=bar.holds(middle), ours=ours, theirs=theirs
    )


def slower(case: str, bar: Bar, rounds: Rounds) -> BenchRow:
    """Return the time of the first thing divided by that of the second."""
    ours, theirs = rounds.medians
    return row(case, bar, rounds.value(lambda a, b: a / b), format_duration(ours), format_duration(theirs))


def format_duration(seconds: float) -> str:
    """Format a time for people.

    >>> format_duration(0.0000612), format_duration(0.0123), format_duration(2.5)
    ('61.2 us', '12.3 ms', '2.50 s')
    """
    if seconds < 0.001:
        return f"{seconds * 1e6:.1f} us"
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"
