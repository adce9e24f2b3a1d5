"""A process that follows streams to their ends, one after the other.

    python -m fdstore.bench.following URL PROCESS

It reads the descriptors from its input, a line each. It prints a line when it has the text that is there,
and at the end of the stream the digest of all it got. A process of its own, because readers of a stream
are elsewhere, and because two threads of one Python would wait for each other.
"""

from __future__ import annotations

import hashlib
import sys

from fdstore.client import connect


def digest(pieces: list[str]) -> str:
    """What tells a text from any other, however it was cut."""
    return hashlib.sha256("".join(pieces).encode()).hexdigest()


def main(url: str, process: str) -> None:
    with connect(url) as store:
        proc = store.process(process)
        for line in sys.stdin:
            following = proc.follow(line.strip())
            pieces = [next(following)]
            print("follows", flush=True)
            pieces += following
            print(digest(pieces), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
