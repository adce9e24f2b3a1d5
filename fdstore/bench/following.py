"""Follow streams to their ends, one after the other.

    python -m fdstore.bench.following URL PROCESS

Reads descriptors from stdin, one per line. Prints a line when it has received the existing text, and at the
end of the stream the digest of all text. A separate process, because in practice readers are, and because two
threads of one interpreter would compete for its lock.
"""

from __future__ import annotations

import hashlib
import sys

from fdstore.client import connect


def digest(pieces: list[str]) -> str:
    """Return the SHA-256 of the joined text."""
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
