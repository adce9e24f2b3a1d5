"""Eight processes that read pages at once, against the same HGETs by others.

The fastest eight clients there are are redis-benchmark, written in C, one process with eight connections;
where it is not installed that row is missing. Eight processes with redis-py are what Python programs had
before. All share the machine with the server, so the ratios fall with the number of its processors.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator

from fdstore.bench import texts
from fdstore.bench.measuring import Bar, Rounds, Row, at_least, row
from fdstore.bench.stage import MB, Stage, keys_of
from fdstore.client import Process

READERS = 8
ROUNDS = 5
PAGE = 100


def rows(stage: Stage) -> Iterator[Row]:
    seconds = 0.5 if stage.quick else 2.0
    rounds = 3 if stage.quick else ROUNDS
    program = shutil.which("redis-benchmark")
    with stage.process() as proc:
        proc.create(texts.of_kind(texts.LOGS, 10 * MB))
        ours, redis_py, best = [], [], []
        for _ in range(rounds):
            ours.append(pages_per_s(stage, proc, "fdstore", seconds))
            redis_py.append(pages_per_s(stage, proc, "redis-py", seconds))
            if program:
                best.append(best_per_s(stage, proc, program, seconds))
    case = f"pages/s, {READERS} processes"
    if program:
        yield share_of_rate(f"{case}, against C", at_least(0.5), ours, best)
    yield share_of_rate(f"{case}, against redis-py", at_least(1.0), ours, redis_py)


def share_of_rate(case: str, bar: Bar, ours: list[float], theirs: list[float]) -> Row:
    """How many times as many pages a second, where each round is held against itself."""
    taken = Rounds([ours, theirs])
    mine, other = (f"{median:.0f}/s" for median in taken.medians)
    return row(case, bar, taken.value(lambda a, b: a / b), mine, other)


def pages_per_s(stage: Stage, proc: Process, client: str, seconds: float) -> float:
    """Pages that all readers together read in a second. They begin when all are connected."""
    asked = [sys.executable, "-m", "fdstore.bench.crowd_reader", client, stage.url, proc.id, str(seconds)]
    readers = [
        subprocess.Popen(asked, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(READERS)
    ]
    try:
        total = 0.0
        for reader in readers:
            assert reader.stdout is not None
            reader.stdout.readline()
        for reader in readers:
            assert reader.stdin is not None
            reader.stdin.write("go\n")
            reader.stdin.flush()
        for reader in readers:
            total += float(reader.communicate()[0])
        return total
    finally:
        for reader in readers:
            reader.kill()
            reader.communicate()


def best_per_s(stage: Stage, proc: Process, program: str, seconds: float) -> float:
    """HGETs of one page in a second by redis-benchmark."""
    socket = stage.url.removeprefix("unix://")
    count = str(int(60_000 * seconds))
    asked = [program, "-s", socket, "-c", str(READERS), "-n", count, "--csv"]
    told = subprocess.run(
        [*asked, "HGET", keys_of(proc, 1).pages, str(PAGE)], check=True, capture_output=True, text=True
    ).stdout
    # the last line is "HGET ...","requests per second",...; the command itself may hold commas
    return float(told.splitlines()[-1].rpartition("}")[2].split('","')[1])
