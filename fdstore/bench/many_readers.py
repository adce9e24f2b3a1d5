"""Eight processes that read pages concurrently, compared with the same HGETs by other clients.

The fastest client is redis-benchmark, written in C: one process with eight connections; its row is omitted
where it is not installed. The other reference is eight processes with redis-py. All share the machine with
the server, so the ratios fall with the number of its CPUs. That against C also depends on Python: without
profile-guided optimization it misses the bar by a fifth.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack

from fdstore.bench import texts
from fdstore.bench.child import line_child
from fdstore.bench.measuring import Bar, BenchRow, Rounds, at_least, row
from fdstore.bench.stage import MB, BenchStage, keys_of
from fdstore.client import Process

READERS = 8
ROUNDS = 5
PAGE = 100


def rows(stage: BenchStage) -> Iterator[BenchRow]:
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


def share_of_rate(case: str, bar: Bar, ours: list[float], theirs: list[float]) -> BenchRow:
    """Return the ratio of the rates, as the median of the rounds' ratios."""
    taken = Rounds([ours, theirs])
    mine, other = (f"{median:.0f}/s" for median in taken.medians)
    return row(case, bar, taken.value(lambda a, b: a / b), mine, other)


def pages_per_s(stage: BenchStage, proc: Process, client: str, seconds: float) -> float:
    """Return the pages per second of all readers together. They start when all are connected."""
    arguments = client, stage.url, proc.id, seconds
    with ExitStack() as stack:
        readers = [stack.enter_context(line_child("child", "read", *arguments)) for _ in range(READERS)]
        for reader in readers:
            reader.hear()
        for reader in readers:
            reader.say("go")
        return sum(float(reader.hear()) for reader in readers)


def best_per_s(stage: BenchStage, proc: Process, program: str, seconds: float) -> float:
    """Return the HGETs of one page per second by redis-benchmark."""
    socket = stage.url.removeprefix("unix://")
    count = str(int(60_000 * seconds))
    command = [program, "-s", socket, "-c", str(READERS), "-n", count, "--csv"]
    output = subprocess.run(
        [*command, "HGET", keys_of(proc, 1).pages, str(PAGE)], check=True, capture_output=True, text=True
    ).stdout
    # the last line is "HGET ...","requests per second",...; the command itself may contain commas
    return float(output.splitlines()[-1].rpartition("}")[2].split('","')[1])
