"""Starting: what `import fdstore` and the shortest command take beyond Python itself."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import partial

from fdstore.bench.measuring import Row, at_most, duration, lap, row, take_turns
from fdstore.bench.stage import Stage


def rows(stage: Stage) -> Iterator[Row]:
    python = [sys.executable, "-c", "pass"]
    for case, asked, bar in (
        ("import fdstore, over python", [sys.executable, "-c", "import fdstore"], 60),
        ("fdstore --help, over python", [sys.executable, "-m", "fdstore", "--help"], 120),
    ):
        rounds = take_turns([lap(partial(ran, asked)), lap(partial(ran, python))], stage.budget_s)
        value = rounds.value(lambda ours, bare: (ours - bare) * 1000)
        yield row(case, at_most(bar, "ms"), value, *map(duration, rounds.medians))


def ran(asked: list[str]) -> None:
    subprocess.run(asked, check=True, stdout=subprocess.DEVNULL)
