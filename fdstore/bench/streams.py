"""Streams: appends with a follower, many small writes, and the latency of a line.

Appends are compared with redis-py's APPEND of the same bytes to one string, the minimum for storing them: no
pages, no index, no reader. The follower is a separate process, and its text is compared with what was
written. Small writes are measured against fixed bars: a speed, and the bytes of append-only file per byte of
text. All is measured with the append-only file on.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from queue import SimpleQueue

from fdstore.bench import texts
from fdstore.bench.child import LineChild, digest, line_child
from fdstore.bench.measuring import BenchRow, Lap, Rounds, at_least, at_most, lap, row, self_timed, take_turns
from fdstore.bench.stage import MB, BenchStage, keys_of
from fdstore.client import Process, StreamWriter
from fdstore.text.paging import DEFAULT_PAGE_SIZE

BLOCK_BYTES = 65_536
BLOCKS = 100
"""Blocks appended in a lap."""

SMALL_BYTES = 100
SMALL_TOTAL = 2 * MB
SMALL_REFERENCE = 1000
"""Small texts that the reference appends in a lap, each in a round trip."""

BEGIN = "begin\n"
PATIENCE_S = 30.0

OPTIONS: dict[str, str | int] = {
    "appendonly": "yes",
    "appendfsync": "everysec",
    "auto-aof-rewrite-percentage": 0,
}
"""Server options. A rewrite of the append-only file would hide its growth."""


def rows(stage: BenchStage) -> Iterator[BenchRow]:
    yield followed(stage)
    yield from small_writes(stage)
    yield latency(stage)


def followed(stage: BenchStage) -> BenchRow:
    """Measure appends of 64 KB with a live follower."""
    text = texts.of_kind(texts.LOGS, BLOCK_BYTES)
    with stage.process() as proc, follower(stage, proc) as reader:
        laps = appending(stage, proc, reader, text), appending_bare(stage, text, BLOCKS)
        case = "append, 64 KB, with a live tail"
        return stage.compare_speed(case, at_least(35, "%"), *laps, BLOCKS * len(text))


def appending(stage: BenchStage, proc: Process, reader: FollowerProcess, text: str) -> Lap:
    """Time writing the text `BLOCKS` times to a followed stream until all is stored."""
    whole = digest([BEGIN, text * BLOCKS])

    def append() -> float:
        with proc.open_stream() as out:
            out.write(BEGIN)
            out.flush()
            reader.begin(out.fd)
            start = time.perf_counter()
            for _ in range(BLOCKS):
                out.write(text)
            out.flush()
            passed = time.perf_counter() - start
        if reader.got() != whole:
            raise RuntimeError("the follower did not get what was written")
        proc.close(out.fd)
        stage.settle()
        return passed

    return self_timed(append)


def appending_bare(stage: BenchStage, text: str, count: int) -> Lap:
    """Time appending the text to a string with redis-py."""

    def append() -> float:
        passed = lap(lambda: stage.plain.append("appended", text))(count)
        stage.plain.unlink("appended")
        stage.settle()
        return passed

    return self_timed(append)


class FollowerProcess:
    """A process that follows one stream after the other; see `fdstore.bench.child`."""

    def __init__(self, child: LineChild) -> None:
        self._child = child

    def begin(self, fd: str) -> None:
        """Follow the stream, and return when the follower has received its existing text."""
        self._child.say(fd)
        self._child.hear()

    def got(self) -> str:
        """Return the digest of all received text, once the stream has ended."""
        return self._child.hear()


@contextmanager
def follower(stage: BenchStage, proc: Process) -> Iterator[FollowerProcess]:
    with line_child("child", "follow", stage.url, proc.id) as child:
        yield FollowerProcess(child)


def small_writes(stage: BenchStage) -> Iterator[BenchRow]:
    """Measure writes of 100 bytes: bytes per second, and bytes of the append-only file per byte."""
    text = "x" * (SMALL_BYTES - 1) + "\n"
    log_ratios: list[float] = []
    with stage.process() as proc:

        def write() -> float:
            before = log_bytes(stage)
            start = time.perf_counter()
            with proc.open_stream() as out:
                for _ in range(SMALL_TOTAL // SMALL_BYTES):
                    out.write(text)
            passed = time.perf_counter() - start
            log_ratios.append((log_bytes(stage) - before) / SMALL_TOTAL)
            proc.close(out.fd)
            stage.settle()
            return passed

        laps = [self_timed(write), appending_bare(stage, text, SMALL_REFERENCE)]
        rounds = take_turns(laps, stage.budget_s, at_once=1)
    speed = rounds.value(lambda ours, _: SMALL_TOTAL / ours / MB)
    theirs = SMALL_REFERENCE * SMALL_BYTES / rounds.medians[1] / MB
    yield row("write, 100 bytes", at_least(20, "MB/s"), speed, f"{speed[0]:.0f} MB/s", f"{theirs:.1f} MB/s")
    yield row("write, 100 bytes: log, over the text", at_most(2.5), Rounds([log_ratios]).value(float))


def log_bytes(stage: BenchStage) -> int:
    """Return the length of the append-only file. Redis writes it before it answers the next request."""
    stage.plain.ping()
    return int(stage.plain.info("persistence")["aof_current_size"])


def latency(stage: BenchStage) -> BenchRow:
    """Measure the time from the call that appends a line until a waiting reader has it."""
    arrivals: SimpleQueue[float] = SimpleQueue()
    with stage.process() as proc:
        page = lap(partial(stage.plain.hget, keys_of(proc, 1).pages, "1"))
        proc.create(texts.of_kind(texts.LOGS, DEFAULT_PAGE_SIZE))
        with proc.open_stream() as out:
            reader = threading.Thread(target=note_arrivals, args=(proc, out.fd, arrivals))
            reader.start()
            case = "append to a waiting reader's hands, against HGET"
            measured = stage.compare(case, at_most(10), sending(stage, out, arrivals), page)
        reader.join()
    return measured


def note_arrivals(proc: Process, fd: str, arrivals: SimpleQueue[float]) -> None:
    """Follow a stream, and record the time at which each piece arrives."""
    for _ in proc.follow(fd):
        arrivals.put(time.perf_counter())


def sending(stage: BenchStage, out: StreamWriter, arrivals: SimpleQueue[float]) -> Lap:
    """Time appending a line until it has arrived."""

    def send() -> float:
        while not stage.plain.info("clients")["blocked_clients"]:
            pass  # until the reader blocks
        start = time.perf_counter()
        out.write("a line\n")
        out.flush()
        return arrivals.get(timeout=PATIENCE_S) - start

    return self_timed(send)
