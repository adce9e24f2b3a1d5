r"""The ends of pipes that this process holds: taps it reads from, intakes it writes to. Nothing here blocks.

    stage 1 ---> tap ---> branch (a callback)
                   \----> intake ---> stage 2

A tap gives each piece to all its branches and, in a tee, to the intake of the next stage. It is not read
while that intake is full, so at most one piece per tap is held in memory. A branch that closes is
dropped; the tap is closed when nobody is left to read it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack

PIECE_BYTES = 64 * 1024
"""As much as a pipe holds by default."""

Deliver = Callable[[bytes], None]


class BranchClosed(Exception):
    """Raised by the receiver of a branch: its readers want no more."""


class End:
    """One end of a pipe; closed once, however often that is asked."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.closed = False

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            os.close(self.fd)


def pipe(owner: ExitStack) -> tuple[End, End]:
    """A pipe: where it is read, where it is written. `owner` closes what is open at its end."""
    reading, writing = map(End, os.pipe())
    owner.callback(reading.close)
    owner.callback(writing.close)
    return reading, writing


class Intake:
    """The standard input of a stage."""

    def __init__(self, end: End) -> None:
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
        """Whether there is something to write; another piece is taken only after that."""
        return bool(self._left)

    def put(self, piece: bytes) -> int:
        """Takes a piece and writes what the pipe has room for; how many bytes that was."""
        self._left = memoryview(piece)
        return self.write()

    def write(self) -> int:
        """Writes what there is room for; how many bytes that was."""
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
        """Closes it when all is written."""
        self._last = True
        if not self._left:
            self.close()

    def close(self) -> None:
        self._left = memoryview(b"")
        self._end.close()


class Tap:
    """An output of a stage. Of its bytes, `limit` at most are given on; with `drain` it is read to its
    end even if nobody wants the bytes, so that the stage that writes them is not ended for it."""

    def __init__(
        self,
        end: End,
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
        """Whether it was closed before its end, because nobody reads it any more."""

    @property
    def closed(self) -> bool:
        return self._end.closed

    @property
    def ready(self) -> bool:
        """Whether what it gives can be taken now."""
        return not self.closed and not (self._onward and self._onward.full)

    @property
    def wanted(self) -> bool:
        """Whether a branch is still open."""
        return bool(self._branches)

    def read(self) -> int:
        """Moves one piece; how many bytes it had."""
        if self.closed:
            return 0
        try:
            piece = os.read(self.fd, PIECE_BYTES)
        except BlockingIOError:
            return 0
        if not piece:
            self.close()
            return 0
        moved = len(piece)
        if self._room is not None and moved > self._room:
            piece, self.overflowed, self._drain = piece[: self._room], True, True
        if self._room is not None:
            self._room -= len(piece)
        if piece:
            self._give(piece)
        if self.overflowed:
            self._branches = []
        self.close_if_unread()
        return moved

    def _give(self, piece: bytes) -> None:
        for branch in list(self._branches):
            try:
                branch(piece)
            except BranchClosed:
                self._branches.remove(branch)
        if self._onward and not self._onward.closed:
            self._onward.put(piece)

    def close_if_unread(self) -> None:
        """Closes it if nobody reads it any more: the stage learns that when it writes again."""
        onward = self._onward is not None and not self._onward.closed
        if not self.closed and not self._branches and not onward and not self._drain:
            self.is_unread = True
            self.close()

    def close(self) -> None:
        self._end.close()
        if self._onward:
            self._onward.end()
