"""Processes that read pages at once, blocking and awaiting, compared with the same HGETs by other clients.

The fastest client is redis-benchmark, written in C: one process with as many connections. Where it is not
installed, its rows are omitted. The other references are as many processes with redis-py, and with fdstore's
own requests, whose replies are parsed and not used: the floor of its reads. All share the machine with the
server, so the ratios fall with the number of its CPUs. Those against C also depend on Python: without
profile-guided optimization it misses the bar of eight processes by a fifth.

The processor time for a page is that of the readers alone; beside it stands that of redis-benchmark for an
HGET.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from typing import NamedTuple

from fdstore.bench import texts
from fdstore.bench.child import line_child
from fdstore.bench.measuring import Bar, BenchRow, Rounds, at_least, at_most, format_duration, row
from fdstore.bench.stage import MB, BenchStage, keys_of
from fdstore.client import Process

READERS = (1, 2, 4, 8)
MANY = READERS[-1]
CLIENTS = {"fdstore": "", "fdstore.aio": ", awaiting"}
"""Client -> what a row says of it."""

RATES = {"fdstore": {1: 0.3, 2: 0.25, 4: 0.25, 8: 0.5}, "fdstore.aio": {1: 0.15, 2: 0.1, 4: 0.1, 8: 0.15}}
"""Client -> number of processes -> the least share of the pages that redis-benchmark reads."""

COSTS = {"fdstore": 5, "fdstore.aio": 12}
"""Client -> the most processor time for a page, as a multiple of that of redis-benchmark."""

REFERENCES = {"redis-py": ("redis-py", 1.0), "link": ("bare requests", 0.5)}
"""Client -> its name in a row, and the least share of the pages that as many processes of it read."""

ROUNDS = 5
PAGE = 100


class ReadersPace(NamedTuple):
    """How fast readers are together, and the processor time of each for a page, in seconds."""

    per_s: float
    cpu_s: float


def rows(stage: BenchStage) -> Iterator[BenchRow]:
    seconds = 0.5 if stage.quick else 2.0
    rounds = 3 if stage.quick else ROUNDS
    program = shutil.which("redis-benchmark")
    with stage.process() as proc:
        proc.create(texts.of_kind(texts.LOGS, 10 * MB))
        for readers in READERS if program else (MANY,):
            clients = [*CLIENTS, *REFERENCES] if readers == MANY else [*CLIENTS]
            paces: dict[str, list[ReadersPace]] = {client: [] for client in clients}
            best: list[ReadersPace] = []
            for _ in range(rounds):
                for client in clients:
                    paces[client].append(pace(stage, proc, client, readers, seconds))
                if program:
                    best.append(best_pace(stage, proc, program, readers, seconds))
            processes = f"{readers} process{'es' if readers > 1 else ''}"
            for client, what in CLIENTS.items() if program else ():
                case = f"{processes}{what}, against C"
                bar = at_least(RATES[client][readers])
                yield share_of_rate(f"pages/s, {case}", bar, paces[client], best)
                yield share_of_cpu(f"processor/page, {case}", at_most(COSTS[client]), paces[client], best)
            for client, (name, share) in REFERENCES.items() if readers == MANY else ():
                case = f"pages/s, {processes}, against {name}"
                yield share_of_rate(case, at_least(share), paces["fdstore"], paces[client])
            if readers == MANY and program:
                floor = f"pages/s, {processes} with bare requests, against C"
                yield share_of_rate(floor, at_least(RATES["fdstore"][readers]), paces["link"], best)


def share_of_rate(case: str, bar: Bar, ours: list[ReadersPace], theirs: list[ReadersPace]) -> BenchRow:
    """Return the ratio of the rates, as the median of the rounds' ratios."""
    taken = Rounds([[pace.per_s for pace in ours], [pace.per_s for pace in theirs]])
    mine, other = (f"{median:.0f}/s" for median in taken.medians)
    return row(case, bar, taken.value(lambda a, b: a / b), mine, other)


def share_of_cpu(case: str, bar: Bar, ours: list[ReadersPace], theirs: list[ReadersPace]) -> BenchRow:
    """Return the ratio of the processor times, as the median of the rounds' ratios."""
    taken = Rounds([[pace.cpu_s for pace in ours], [pace.cpu_s for pace in theirs]])
    mine, other = map(format_duration, taken.medians)
    return row(case, bar, taken.value(lambda a, b: a / b), mine, other)


def pace(stage: BenchStage, proc: Process, client: str, count: int, seconds: float) -> ReadersPace:
    """Return the pace of so many readers together. They start when all are connected."""
    arguments = client, stage.url, proc.id, seconds
    with ExitStack() as stack:
        readers = [stack.enter_context(line_child("child", "read", *arguments)) for _ in range(count)]
        for reader in readers:
            reader.hear()
        for reader in readers:
            reader.say("go")
        told = [[float(word) for word in reader.hear().split()] for reader in readers]
    return ReadersPace(sum(rate for rate, _ in told), statistics.mean(cpu_s for _, cpu_s in told))


def best_pace(stage: BenchStage, proc: Process, program: str, count: int, seconds: float) -> ReadersPace:
    """Return the pace of redis-benchmark at the HGET of one page."""
    socket = stage.url.removeprefix("unix://")
    requests = int((30_000 if count == 1 else 60_000) * seconds)
    command = [program, "-s", socket, "-c", str(count), "-n", str(requests), "--csv"]
    before = os.times()
    output = subprocess.run(
        [*command, "HGET", keys_of(proc, 1).pages, str(PAGE)], check=True, capture_output=True, text=True
    ).stdout
    after = os.times()
    cpu_s = after.children_user - before.children_user + after.children_system - before.children_system
    # the last line is "HGET ...","requests per second",...; the command itself may contain commas
    return ReadersPace(float(output.splitlines()[-1].rpartition("}")[2].split('","')[1]), cpu_s / requests)
