"""A process that ingests a file and prints by how many bytes its peak memory grew meanwhile.

    python -m fdstore.bench.ingesting URL PROCESS SIZE_BYTES

A process of its own, because a peak never comes down again, and others have theirs.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path

from fdstore.bench import texts
from fdstore.bench.stage import MB
from fdstore.client import connect


def peak_bytes() -> int:
    """The most memory that this process had so far."""
    status = Path("/proc/self/status")
    if status.exists():
        # ru_maxrss of Linux begins with the peak of the parent
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
