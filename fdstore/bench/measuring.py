"""Taking turns, medians and bars: how a ratio is measured so that it can be believed.

What is compared takes turns in short laps, in changing order, so that whatever else the machine does
meets all of it. The ratio is the median of those of the rounds; the spread is where the middle half of
them lies. A wide spread says that the machine was busy, and that the ratio says little.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Literal

from fdstore.records import Record

Lap = Callable[[int], float]
"""Does its work so many times, and says how many seconds of that count."""

Unit = Literal["x", "%", "B", "MB", "MB/s", "ms", "trips"]

LAP_S = 0.004
"""About how long one lap takes, where one piece of work is shorter."""

MIN_ROUNDS = 7
MAX_ROUNDS = 400


class Bar(Record, frozen=True, kw_only=True):
    """What a measured value must not pass."""

    limit: float
    unit: Unit
    at_least: bool = False

    def holds(self, value: float) -> bool:
        return value >= self.limit if self.at_least else value <= self.limit


def at_most(limit: float, unit: Unit = "x") -> Bar:
    return Bar(limit=limit, unit=unit)


def at_least(limit: float, unit: Unit = "x") -> Bar:
    return Bar(limit=limit, unit=unit, at_least=True)


class Row(Record, frozen=True, kw_only=True):
    """One measurement: `value` against its bar, between `low` and `high` in the middle half of the
    rounds. `ours` and `theirs` are what it was made of, for people."""

    case: str
    value: float
    low: float
    high: float
    bar: Bar
    ok: bool
    ours: str = ""
    theirs: str = ""


class Rounds:
    """The times of things that took turns: `seconds[i][k]` for one piece of work of the i-th thing in
    round k."""

    def __init__(self, seconds: list[list[float]]) -> None:
        self.seconds = seconds
        self.medians = [statistics.median(times) for times in seconds]

    def of(self, *which: int) -> Rounds:
        """Those of these things alone."""
        return Rounds([self.seconds[i] for i in which])

    def value(self, of: Callable[..., float]) -> tuple[float, float, float]:
        """What `of` gives for the times of one round: its median and its quartiles."""
        low, middle, high = statistics.quantiles(
            [of(*times) for times in zip(*self.seconds, strict=True)], n=4
        )
        return middle, low, high


def lap(work: Callable[[], object]) -> Lap:
    """A lap of work that needs nothing before and leaves nothing behind."""

    def run(times: int) -> float:
        start = time.perf_counter()
        for _ in range(times):
            work()
        return time.perf_counter() - start

    return run


def take_turns(laps: Sequence[Lap], budget_s: float, *, at_once: int | None = None) -> Rounds:
    """Runs the laps in turn for about `budget_s`, of at most `at_once` pieces of work each."""
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
) -> Row:
    """A measurement, judged. A single value has no spread."""
    middle, low, high = value if isinstance(value, tuple) else (value, value, value)
    return Row(
        case=case, value=middle, low=low, high=high, bar=bar, ok=bar.holds(middle), ours=ours, theirs=theirs
    )


def slower(case: str, bar: Bar, rounds: Rounds) -> Row:
    """How many times as long the first thing takes as the second."""
    ours, theirs = rounds.medians
    return row(case, bar, rounds.value(lambda a, b: a / b), duration(ours), duration(theirs))


def share_of_speed(case: str, bar: Bar, rounds: Rounds, size_bytes: int) -> Row:
    """The MB/s of the first thing in percent of those of the second."""
    ours, theirs = (f"{size_bytes / median / 1e6:.0f} MB/s" for median in rounds.medians)
    return row(case, bar, rounds.value(lambda a, b: 100 * b / a), ours, theirs)


def duration(seconds: float) -> str:
    """A time, readable.

    >>> duration(0.0000612), duration(0.0123), duration(2.5)
    ('61.2 us', '12.3 ms', '2.50 s')
    """
    if seconds < 0.001:
        return f"{seconds * 1e6:.1f} us"
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"
