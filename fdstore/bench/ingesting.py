"""Ingest a file and print by how many bytes the peak memory grew.

    python -m fdstore.bench.ingesting URL PROCESS SIZE_BYTES

A separate process, because a peak never falls again.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path

from fdstore.bench import texts
from fdstore.bench.stage import MB
from fdstore.client import connect


def peak_bytes() -> int:
    """Return the peak resident memory of this process, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():
        # on Linux ru_maxrss starts with the peak of the parent
        [line] = [line for line in status.read_text().splitlines() if line.startswith("VmHWM:")]
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main(url: str, process: str, size_bytes: int) -> None:
    with connect(url) as store:
        proc = store.process(process)
        file = texts.log_file(size_bytes)
        proc.ingest(texts.log_file(MB))
        before = peak_bytes()
        proc.ingest(file)
        print(peak_bytes() - before)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
