"""The parts of measurements that run in processes of their own, and their talk by lines.

python -m fdstore.bench.child read CLIENT URL PROCESS SECONDS
python -m fdstore.bench.child follow URL PROCESS
python -m fdstore.bench.child ingest URL PROCESS SIZE_BYTES
"""

from __future__ import annotations

import asyncio
import hashlib
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import redis

import fdstore.aio
from fdstore.bench import texts
from fdstore.bench.stage import MB, keys_of
from fdstore.client import connect
from fdstore.wire.operation import NumberedFields

PAGES = range(1, 201)
"""The pages that a reader reads in turn."""


def output_of(module: str, *arguments: object) -> str:
    """Run a module of this package to its end, and return what it printed."""
    return subprocess.run(_command(module, arguments), check=True, stdout=subprocess.PIPE, text=True).stdout


class LineChild:
    """A running module that reads and prints lines."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._input, self._output = process.stdin, process.stdout

    def say(self, line: str) -> None:
        """Send a line."""
        self._input.write(f"{line}\n")
        self._input.flush()

    def hear(self) -> str:
        """Return its next line."""
        return self._output.readline().strip()


@contextmanager
def line_child(module: str, *arguments: object) -> Iterator[LineChild]:
    """Run a module of this package for the block."""
    pipe = subprocess.PIPE
    with subprocess.Popen(_command(module, arguments), stdin=pipe, stdout=pipe, text=True) as process:
        try:
            yield LineChild(process)
        finally:
            process.kill()


def _command(module: str, arguments: tuple[object, ...]) -> list[str]:
    return [sys.executable, "-m", f"fdstore.bench.{module}", *map(str, arguments)]


# --- the processes


class _Pace:
    """The pace of a reader, from now on."""

    def __init__(self, seconds: str) -> None:
        self._start, self._cpu_start = time.perf_counter(), time.process_time()
        self._until = self._start + float(seconds)
        self._count = 0

    def goes_on(self, read: int) -> bool:
        """Count these pages. Return whether there is time for more."""
        self._count += read
        return time.perf_counter() < self._until

    def tell(self) -> None:
        """Print the pages per second, and the seconds of processor time for a page."""
        rate = self._count / (time.perf_counter() - self._start)
        print(rate, (time.process_time() - self._cpu_start) / self._count)


def _wait_for_start(seconds: str) -> _Pace:
    print("ready", flush=True)
    sys.stdin.readline()
    return _Pace(seconds)


def read_pages(client: str, url: str, process: str, seconds: str) -> None:
    """Read pages for some seconds, after a line on stdin, with `fdstore`, `fdstore.aio`, `redis-py`, or
    `link`: the requests of `fdstore`, whose replies are not used. Print the number of pages per second, and
    the seconds of processor time for a page."""
    if client == "fdstore.aio":
        asyncio.run(_await_pages(url, process, seconds))
        return
    with connect(url) as store, redis.Redis.from_url(url) as plain:
        proc = store.process(process)
        keys, link = keys_of(proc, 1), store._runner._make_link()
        fields = NumberedFields(keys.pages, ("HGET", keys.record, "created_at"))

        def exchange(number: int) -> None:
            link.send(fields.request(number), 2)
            link.receive([], 2)

        ways: dict[str, Callable[[int], object]] = {
            "fdstore": lambda number: proc.read("fd:1", start=number),
            "link": exchange,
            "redis-py": lambda number: plain.hget(keys.pages, str(number)),
        }
        read = ways[client]

        def read_all() -> int:
            for number in PAGES:
                read(number)
            return len(PAGES)

        read_all()
        pace = _wait_for_start(seconds)
        while pace.goes_on(read_all()):
            pass
        pace.tell()
        link.close()


async def _await_pages(url: str, process: str, seconds: str) -> None:
    async with await fdstore.aio.connect(url) as store:
        proc = await store.process(process)

        async def read_all() -> int:
            for number in PAGES:
                await proc.read("fd:1", start=number)
            return len(PAGES)

        await read_all()
        pace = _wait_for_start(seconds)
        while pace.goes_on(await read_all()):
            pass
        pace.tell()


def follow_streams(url: str, process: str) -> None:
    """Follow the streams named on stdin to their ends, one after the other. Print a line when the existing
    text was received, and at the end the digest of all text.

    In a process, because in practice readers are, and because two threads of one interpreter would compete
    for its lock.
    """
    with connect(url) as store:
        proc = store.process(process)
        for line in sys.stdin:
            following = proc.follow(line.strip())
            pieces = [next(following)]
            print("follows", flush=True)
            pieces += following
            print(digest(pieces), flush=True)


def digest(pieces: list[str]) -> str:
    """Return the SHA-256 of the joined text."""
    return hashlib.sha256("".join(pieces).encode()).hexdigest()


def ingest_file(url: str, process: str, size_bytes: str) -> None:
    """Ingest a file and print by how many bytes the peak memory grew: a peak never falls again."""
    with connect(url) as store:
        proc = store.process(process)
        file = texts.log_file(int(size_bytes))
        proc.ingest(texts.log_file(MB))
        before = peak_bytes()
        proc.ingest(file)
        print(peak_bytes() - before)


def peak_bytes() -> int:
    """Return the peak resident memory of this process, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():
        # on Linux ru_maxrss starts with the peak of the parent
        [line] = [line for line in status.read_text().splitlines() if line.startswith("VmHWM:")]
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


PROCESSES: dict[str, Callable[..., None]] = {
    "read": read_pages,
    "follow": follow_streams,
    "ingest": ingest_file,
}

if __name__ == "__main__":
    PROCESSES[sys.argv[1]](*sys.argv[2:])
