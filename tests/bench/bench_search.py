"""The cost of a search of 100 MB: its time as a multiple of reading all pages, and its memory.

    python tests/bench/bench_search.py [MEGABYTES]

A private server, one content of log lines. Reads and searches take turns, so that whatever else the
machine does meets both; the median of five rounds is shown. Memory is how far the peak of this process
rose above what it was before the first search (reading all, which needs the most, comes last).
"""

from __future__ import annotations

import io
import random
import resource
import statistics
import sys
import time
from collections.abc import Callable

from fdstore.client import Process, connect
from fdstore.local.redis_server import PrivateServer
from fdstore.store.contents.contents import part_of
from fdstore.store.contents.locating import fetch_part
from fdstore.wire.operation import Operation

ROUNDS = 5
LIMIT_RATIO = 2.5
LIMIT_GROWTH_MB = 32
DEFAULT_MB = 100

SEARCHES: dict[str, dict[str, object]] = {
    "rare literal": {"pattern": "number 77777 "},
    "absent literal": {"pattern": "no such words"},
    "literal in 2 % of lines": {"pattern": "ERROR"},
    "literal in all lines": {"pattern": "worker"},
    "simple pattern, 2 %": {"pattern": r"ERROR worker (\d+)"},
    "simple pattern, 10 %": {"pattern": r"WARN|ERROR worker"},
    "simple pattern, all lines": {"pattern": r"worker \d+"},
    "anchored, absent": {"pattern": r"^\d+$"},
    "ignoring case, 2 %": {"pattern": "error", "ignore_case": True},
    "with context": {"pattern": "ERROR", "context": 5, "max_matches": 1000},
}


def log_lines(megabytes: int) -> bytes:
    chance = random.Random(7)
    lines, size = [], 0
    while size < megabytes * 1_000_000:
        level = chance.choices(["INFO", "DEBUG", "WARN", "ERROR"], [70, 20, 8, 2])[0]
        number = chance.randrange(10**6)
        lines.append(
            f"2031-05-01T12:{number % 60:02d}:07 {level} worker {number % 1000} took number {number} away\n"
        )
        size += len(lines[-1])
    return "".join(lines).encode()


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def in_a_child(megabytes: int, url: str) -> None:
    """Fills the store from another process, so that this one's peak says nothing of it."""
    import subprocess

    filling = [sys.executable, __file__, "--fill", str(megabytes), url]
    subprocess.run(filling, check=True)


def fill(megabytes: int, url: str) -> None:
    with connect(url) as store:
        store.process("bench").ingest(io.BytesIO(log_lines(megabytes)), "bench")


def walk(proc: Process) -> Operation[None]:
    """All pages, as a search fetches them, and nothing done with them."""

    def drop(_: list[bytes]) -> Operation[None]:
        return
        yield  # a generator that needs nothing

    view, span = yield from part_of(proc.handle, "fd:1", None)
    yield from fetch_part(view, span, drop)


def measure(proc: Process) -> bool:
    searches = {name: (lambda asked=asked: proc.search("fd:1", **asked)) for name, asked in SEARCHES.items()}
    proc.read("fd:1")
    before = peak_mb()
    for search in searches.values():
        search()
    growth = peak_mb() - before

    reads: list[float] = []
    walks: list[float] = []
    times: dict[str, list[float]] = {name: [] for name in searches}
    for _ in range(ROUNDS):
        reads.append(seconds(lambda: proc.read("fd:1", read_all=True)))
        walks.append(seconds(lambda: proc.store.run(walk(proc))))
        for name, search in searches.items():
            times[name].append(seconds(search))
    read, walked = statistics.median(reads), statistics.median(walks)
    print(f"{'read_all: one text':28} {read * 1000:6.0f} ms")
    print(f"{'pages fetched and dropped':28} {walked * 1000:6.0f} ms")
    worst = 0.0
    for name, taken in times.items():
        median = statistics.median(taken)
        worst = max(worst, median / read)
        ratios = f"{median / read:4.2f} times read_all, {median / walked:4.2f} times fetching"
        print(f"{name:28} {median * 1000:6.0f} ms   {ratios}")
    print(f"memory growth in searches    {growth:6.1f} MB")
    return worst <= LIMIT_RATIO and growth < LIMIT_GROWTH_MB


def main() -> None:
    if sys.argv[1:2] == ["--fill"]:
        fill(int(sys.argv[2]), sys.argv[3])
        return
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_MB
    with PrivateServer() as server:
        server.start()
        in_a_child(megabytes, server.url)
        with connect(server.url) as store:
            within = measure(store.process("bench"))
    sys.exit(0 if within else 1)


if __name__ == "__main__":
    main()
