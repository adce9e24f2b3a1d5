"""The processes of a worker: its supervisor, the process that works, and its interpreters."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

EVERY_S = 0.02


def children(pid: int) -> list[int]:
    """Return the child processes of a process, the oldest first."""
    found: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            found += map(int, path.read_text().split())
    return sorted(found)


def process_tree(pid: int) -> list[int]:
    """Return a process and its descendants."""
    return [pid, *(each for child in children(pid) for each in process_tree(child))]


def processor_s(pid: int) -> float:
    """Return the CPU time of a process and its descendants so far, also of those that have ended and that
    their parent has waited for, in seconds."""
    total = 0
    for each in process_tree(pid):
        with suppress(OSError):
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
            total += sum(map(int, fields[11:15]))
    return total / os.sysconf("SC_CLK_TCK")


def memory_bytes(pid: int) -> int:
    """Return the memory of a process and its descendants; what they share is counted once."""
    total = 0
    for each in process_tree(pid):
        with suppress(OSError):
            lines = Path(f"/proc/{each}/smaps_rollup").read_text().splitlines()
            total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total * 1024


class Peak:
    """The most memory that was seen."""

    def __init__(self) -> None:
        self.bytes = 0


@contextmanager
def peak_memory(pid: int) -> Iterator[Peak]:
    """Look at the memory of a process and its descendants every `EVERY_S` during the block."""
    peak, is_over = Peak(), threading.Event()

    def look() -> None:
        while not is_over.wait(EVERY_S):
            peak.bytes = max(peak.bytes, memory_bytes(pid))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        is_over.set()
        thread.join()
