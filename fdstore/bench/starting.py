"""Startup: the time of `import fdstore` and of the shortest command, minus that of Python itself."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import partial

from fdstore.bench.measuring import BenchRow, at_most, format_duration, lap, row, take_turns
from fdstore.bench.stage import BenchStage


def rows(stage: BenchStage) -> Iterator[BenchRow]:
    python = [sys.executable, "-c", "pass"]
    for case, command, bar in (
        ("import fdstore, over python", [sys.executable, "-c", "import fdstore"], 60),
        ("fdstore --help, over python", [sys.executable, "-m", "fdstore", "--help"], 120),
    ):
        rounds = take_turns([lap(partial(run, command)), lap(partial(run, python))], stage.budget_s)
        value = rounds.value(lambda ours, bare: (ours - bare) * 1000)
        yield row(case, at_most(bar, "ms"), value, *map(format_duration, rounds.medians))


def run(command: list[str]) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
