"""The load of a worker, from its supervisor, which knows it, to the process that registers the worker.

The supervisor has no connection to Redis, and the processes that it forks die and are replaced. So it writes
the load to memory that they share:

    length, CRC-32 | JSON of a `WorkerLoad`

There is one writer. A reader that meets half a write sees a wrong checksum, and reads again.
"""

from __future__ import annotations

import mmap
import struct
import zlib

import msgspec

from fdstore.store.views.worker_registry import WorkerLoad, decode_load

SIZE = 1 << 14
"""More than a load takes, whose names are bounded."""

TRIES = 100

_HEAD = struct.Struct("=II")


class LoadBoard:
    """The shared memory. Make it before the first fork."""

    def __init__(self) -> None:
        self._shared = mmap.mmap(-1, SIZE)

    def write(self, load: WorkerLoad) -> None:
        """Replace the load. Only the supervisor may."""
        text = msgspec.json.encode(load)
        if _HEAD.size + len(text) <= SIZE:
            self._shared[: _HEAD.size + len(text)] = _HEAD.pack(len(text), zlib.crc32(text)) + text

    def read(self) -> WorkerLoad | None:
        """Return the load; None before the first."""
        for _ in range(TRIES):
            length, checksum = _HEAD.unpack(self._shared[: _HEAD.size])
            text = self._shared[_HEAD.size : _HEAD.size + length]
            if length and zlib.crc32(text) == checksum:
                return decode_load(text)
        return None
