"""Read pages for some seconds, after a line on stdin, and print the number of pages per second.

python -m fdstore.bench.crowd_reader fdstore|redis-py URL PROCESS SECONDS
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from fdstore.bench.stage import keys_of
from fdstore.client import connect

PAGES = range(1, 201)


def main(client: str, url: str, process: str, seconds: float) -> None:
    with connect(url) as store:
        proc = store.process(process)
        read_all: Callable[[], None]
        if client == "fdstore":

            def read_all() -> None:
                for number in PAGES:
                    proc.read("fd:1", start=number)
        else:
            import redis

            plain, key = redis.Redis.from_url(url), keys_of(proc, 1).pages

            def read_all() -> None:
                for number in PAGES:
                    plain.hget(key, str(number))

        read_all()
        print("ready", flush=True)
        sys.stdin.readline()
        print(per_second(read_all, seconds))


def per_second(read_all: Callable[[], None], seconds: float) -> float:
    """Return the number of pages read per second."""
    count = 0
    start = time.perf_counter()
    while (passed := time.perf_counter() - start) < seconds:
        read_all()
        count += len(PAGES)
    return count / passed


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]))
