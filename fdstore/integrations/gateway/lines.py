"""Read lines of any size from a file descriptor, and write whole messages to one from several threads."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Iterator
from contextlib import suppress

from fdstore.integrations.gateway.long_values import Buffer

READ_BYTES = 1 << 18


def read_lines(fd: int) -> Iterator[bytes | bytearray]:
    """Yield each line with its line break, and at the end of the input what follows the last one. A line is
    in memory once; its size is not limited."""
    begun = bytearray()
    with suppress(OSError):  # the other side has closed a terminal or a socket
        while chunk := os.read(fd, READ_BYTES):
            start = 0
            while end := chunk.find(b"\n", start) + 1:
                if begun:
                    begun += memoryview(chunk)[start:end]
                    line, begun = begun, bytearray()
                    yield line
                    del line
                else:
                    yield chunk[start:end]
                start = end
            begun += memoryview(chunk)[start:]
    if begun:
        yield begun


class MessageWriter:
    """Writes messages to a file descriptor, one at a time. After the reader has gone they are dropped."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lock = threading.Lock()
        self.is_closed = self._is_released = False

    def write(self, *message: Buffer) -> bool:
        """Write the parts of a message, waiting for the reader as long as it takes. Return whether there is a
        reader."""
        with self._lock:
            try:
                for part in message:
                    left = memoryview(part)
                    while left and not self.is_closed:
                        left = left[os.write(self._fd, left) :]
            except OSError:
                self.is_closed = True
            return not self.is_closed

    def close(self, timeout_s: float) -> None:
        """Close the file descriptor, so that the reader sees the end. A message that the reader leaves
        unread for `timeout_s` keeps it open."""
        if self._lock.acquire(timeout=timeout_s):
            if not self._is_released:
                self.is_closed = self._is_released = True
                os.close(self._fd)
            self._lock.release()

    def has_reader(self) -> bool:
        """Return whether the other side is still open."""
        poll = select.poll()
        poll.register(self._fd, 0)
        gone = select.POLLERR | select.POLLHUP | select.POLLNVAL
        return not self.is_closed and not any(events & gone for _, events in poll.poll(0))


def line_break_of(line: Buffer) -> bytes:
    r"""Return the line break at the end of a line.

    >>> line_break_of(b"one\r\n"), line_break_of(b"one")
    (b'\r\n', b'')
    """
    end = bytes(line[-2:])
    return end[len(end.rstrip(b"\r\n")) :]
