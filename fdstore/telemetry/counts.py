"""Counters and histograms of a worker, whose processes share them.

A worker is a supervisor and its forked processes, any of which may die at any time, and what it counted
must not go down. So all of them count in one memory that the supervisor maps before it forks. It is
divided into slots:

    slot    used | entry | entry | ...          one writer: the process that holds the lock of the slot
    entry   bytes of the key, numbers | key, padded | number | number | ...

A process takes the first slot whose lock is free, and goes on with the numbers that are there: those of
a dead process. The locks are the kernel's (`fcntl`, one byte of the file each), so a death releases
them; a fork does not inherit them. A reader adds up all slots. An entry is complete before `used`
includes it, and a number is written in one piece, so a reader needs no lock.

Off, `count` and `observe` compare one variable with None.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
import tempfile
import threading
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from fdstore.telemetry.metric_table import METRICS, Metric
from fdstore.text.layout import show_controls

SLOT_BYTES = 1 << 18
MAX_SERIES = 100
"""Combinations of labels of one metric and process; others are counted with the labels `other`."""

MAX_LABEL = 80

_HEAD = struct.Struct("=II")
Key = tuple[str, ...]
"""The name of a metric, then the values of its labels."""

_counts: Counts | None = None


def count(name: str, *labels: str, by: float = 1) -> None:
    """Add to a counter. Does nothing unless counting was turned on."""
    if _counts is not None:
        _counts.add(METRICS[name], labels, by)


def observe(name: str, value: float, *labels: str) -> None:
    """Add a value to a histogram. Does nothing unless counting was turned on."""
    if _counts is not None:
        _counts.observe(METRICS[name], labels, value)


def is_counting() -> bool:
    """Return whether counting was turned on."""
    return _counts is not None


def turn_on(processes: int = 1) -> Counts:
    """Count from now on, in this process and in up to this many at a time that it forks. A second call
    changes nothing."""
    global _counts
    if _counts is None:
        _counts = Counts(processes)
    return _counts


def turn_off() -> None:
    """Count no more."""
    global _counts
    _counts = None


class Counts:
    """The numbers of up to `processes` processes at a time. If there are more, those are not counted."""

    def __init__(self, processes: int = 1) -> None:
        self._slots = processes
        with tempfile.TemporaryFile() as file:
            file.truncate(processes * SLOT_BYTES)
            self._file = os.dup(file.fileno())
        self._memory = memoryview(mmap.mmap(self._file, processes * SLOT_BYTES))
        self._numbers: memoryview[float] = self._memory.cast("d")
        self._lock = threading.RLock()
        self._pid = 0
        self._slot: int | None = None
        self._indexes: dict[Key, int] = {}
        self._series: dict[str, int] = {}
        self._before: dict[Key, list[float]] = {}

    def add(self, metric: Metric, labels: Sequence[str], amount: float) -> None:
        """Add to a counter."""
        index = self._index_of(metric, labels)
        if index is not None:
            with self._lock:
                self._numbers[index] += amount

    def observe(self, metric: Metric, labels: Sequence[str], value: float) -> None:
        """Add a value to a histogram."""
        index = self._index_of(metric, labels)
        if index is not None:
            with self._lock:
                self._numbers[index + bisect_left(metric.buckets, value)] += 1
                self._numbers[index + metric.size - 1] += value

    def read(self) -> dict[Key, list[float]]:
        """Return the numbers of all processes, dead ones too: of a histogram those in each bucket, those
        above the last one, and the sum."""
        found: dict[Key, list[float]] = {}
        for slot in range(self._slots):
            for key, _, numbers in self._entries(slot):
                before = found.get(key)
                found[key] = (
                    numbers if before is None else [a + b for a, b in zip(before, numbers, strict=True)]
                )
        return found

    def read_own(self) -> dict[Key, list[float]]:
        """Return the numbers that this process counted itself."""
        self._begin()
        if self._slot is None:
            return {}
        return {
            key: [
                now - was
                for now, was in zip(numbers, self._before.get(key, [0.0] * len(numbers)), strict=True)
            ]
            for key, _, numbers in self._entries(self._slot)
        }

    def _begin(self) -> None:
        """Take a slot, once in each process."""
        if self._pid == os.getpid():
            return
        # no other thread: it is the first use after a fork, or the first of all
        self._lock = threading.RLock()
        with self._lock:
            self._indexes, self._series, self._before, self._slot = {}, {}, {}, None
            for slot in range(self._slots):
                try:
                    fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, slot)
                except OSError:
                    continue
                self._slot = slot
                for key, index, numbers in self._entries(slot):
                    self._indexes[key], self._before[key] = index, numbers
                    self._series[key[0]] = self._series.get(key[0], 0) + 1
                break
            self._pid = os.getpid()

    def _index_of(self, metric: Metric, labels: Sequence[str]) -> int | None:
        """Return the index of an entry in `_numbers`; None if the table is full."""
        self._begin()
        key = (metric.name, *labels)
        index = self._indexes.get(key)
        if index is not None or self._slot is None:
            return index
        with self._lock:
            key = (metric.name, *map(_label, labels))
            if key not in self._indexes and self._series.get(metric.name, 0) >= MAX_SERIES:
                key = (metric.name, *("other" for _ in labels))
            if key not in self._indexes:
                self._append(self._slot * SLOT_BYTES, key, metric.size)
            return self._indexes.get(key)

    def _append(self, start: int, key: Key, size: int) -> None:
        name = "\t".join(key).encode("utf-8")
        padded = name + b" " * (-len(name) % 8)
        used = self._used(start)
        offset = start + 8 + used + _HEAD.size + len(padded)
        end = offset + 8 * size
        if end > start + SLOT_BYTES:
            return
        self._memory[start + 8 + used : offset] = _HEAD.pack(len(padded), size) + padded
        self._numbers[start // 8] = float(end - start - 8)
        self._indexes[key] = offset // 8
        self._series[key[0]] = self._series.get(key[0], 0) + 1

    def _used(self, start: int) -> int:
        return int(self._numbers[start // 8])

    def _entries(self, slot: int) -> Iterator[tuple[Key, int, list[float]]]:
        start = slot * SLOT_BYTES
        at, end = start + 8, start + 8 + self._used(start)
        while at < end:
            length, size = _HEAD.unpack(self._memory[at : at + _HEAD.size])
            offset = at + _HEAD.size + length
            name = bytes(self._memory[at + _HEAD.size : offset]).decode("utf-8").rstrip(" ")
            numbers = list(map(float, self._numbers[offset // 8 : offset // 8 + size]))
            yield tuple(name.split("\t")), offset // 8, numbers
            at = offset + 8 * size


def _label(value: str) -> str:
    """Return a value of a label: printable, on one line, not long, not empty."""
    return show_controls(" ".join(value[:MAX_LABEL].split()), keep="") or "none"
