r"""The worker's ends of a pipeline's pipes: taps to read from, intakes to write to. Nothing here blocks.

    stage 1 ---> tap ---> branch (a callback)
                   \----> intake ---> stage 2

A tap passes each chunk to all its branches and, in a tee, to the intake of the next stage. It is not read
while that intake is full, so it buffers at most one chunk. A closed branch is dropped; a tap without readers
is closed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack

CHUNK_BYTES = 64 * 1024
"""The default capacity of a pipe."""

Deliver = Callable[[bytes], None]


class BranchClosed(Exception):
    """Raised by the receiver of a branch that accepts no more data."""


class PipeEnd:
    """One end of a pipe. `close` is idempotent."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.closed = False

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            os.close(self.fd)


def pipe(owner: ExitStack) -> tuple[PipeEnd, PipeEnd]:
    """Return the read end and the write end of a new pipe, which `owner` closes if they are still open."""
    reading, writing = map(PipeEnd, os.pipe())
    owner.callback(reading.close)
    owner.callback(writing.close)
    return reading, writing


class Intake:
    """The write end of the standard input of a stage, with a buffer of one chunk."""

    def __init__(self, end: PipeEnd) -> None:
        os.set_blocking(end.fd, False)
        self._end = end
        self.fd = end.fd
        self._left = memoryview(b"")
        self._last = False

    @property
    def closed(self) -> bool:
        return self._end.closed

    @property
    def full(self) -> bool:
        """Return whether the buffer holds data. `put` needs an empty buffer."""
        return bool(self._left)

    def put(self, chunk: bytes) -> int:
        """Buffer a chunk, write as much of it as the pipe accepts, and return the number of bytes written."""
        self._left = memoryview(chunk)
        return self.write()

    def write(self) -> int:
        """Write as much of the buffer as the pipe accepts and return the number of bytes written."""
        if self.closed:
            return 0
        written = 0
        try:
            written = os.write(self.fd, self._left)
        except BlockingIOError:
            pass
        except BrokenPipeError:
            self.close()
        self._left = self._left[written:]
        if self._last and not self._left:
            self.close()
        return written

    def end(self) -> None:
        """Close the pipe once the buffer is written."""
        self._last = True
        if not self._left:
            self.close()

    def close(self) -> None:
        self._left = memoryview(b"")
        self._end.close()


class Tap:
    """The read end of an output of a stage.

    It passes on at most `limit` bytes. With `drain` it is read to its end even without readers, so that
    SIGPIPE does not end the stage.
    """

    def __init__(
        self,
        end: PipeEnd,
        branches: list[Deliver],
        *,
        onward: Intake | None = None,
        limit: int | None = None,
        drain: bool = False,
    ) -> None:
        os.set_blocking(end.fd, False)
        self._end = end
        self.fd = end.fd
        self._branches = branches
        self._onward = onward
        self._room = limit
        self._drain = drain
        self.overflowed = False
        self.is_unread = False
        """True if it was closed before its end because it had no readers."""

    @property
    def closed(self) -> bool:
        return self._end.closed

    @property
    def ready(self) -> bool:
        """Return whether it is open and its next chunk can be passed on."""
        return not self.closed and not (self._onward and self._onward.full)

    @property
    def has_branches(self) -> bool:
        """Return whether a branch is still open."""
        return bool(self._branches)

    def read(self) -> int:
        """Pass on one chunk and return its size in bytes."""
        if self.closed:
            return 0
        try:
            chunk = os.read(self.fd, CHUNK_BYTES)
        except BlockingIOError:
            return 0
        if not chunk:
            self.close()
            return 0
        moved = len(chunk)
        if self._room is not None and moved > self._room:
            chunk, self.overflowed, self._drain = chunk[: self._room], True, True
        if self._room is not None:
            self._room -= len(chunk)
        if chunk:
            self._pass_on(chunk)
        if self.overflowed:
            self._branches = []
        self.close_if_unread()
        return moved

    def _pass_on(self, chunk: bytes) -> None:
        for branch in list(self._branches):
            try:
                branch(chunk)
            except BranchClosed:
                self._branches.remove(branch)
        if self._onward and not self._onward.closed:
            self._onward.put(chunk)

    def close_if_unread(self) -> None:
        """Close the pipe if it has no readers; the stage gets SIGPIPE on its next write."""
        onward = self._onward is not None and not self._onward.closed
        if not self.closed and not self._branches and not onward and not self._drain:
            self.is_unread = True
            self.close()

    def close(self) -> None:
        self._end.close()
        if self._onward:
            self._onward.end()
