"""Read lines of any size from a file descriptor, and write whole messages to one from several threads."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Iterator
from contextlib import suppress

READ_BYTES = 1 << 18


def read_lines(fd: int) -> Iterator[bytes]:
    """Yield each line with its line break, and at the end of the input what follows the last one. A line is
    in memory once; its size is not limited."""
    begun: list[bytes] = []
    with suppress(OSError):  # the other side has closed a terminal or a socket
        while chunk := os.read(fd, READ_BYTES):
            start = 0
            while end := chunk.find(b"\n", start) + 1:
                begun.append(chunk[start:end])
                line = b"".join(begun)
                begun.clear()
                yield line
                del line
                start = end
            if start < len(chunk):
                begun.append(chunk[start:])
    if begun:
        yield b"".join(begun)


class MessageWriter:
    """Writes messages to a file descriptor, one at a time. After the reader has gone they are dropped."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lock = threading.Lock()
        self.is_closed = self._is_released = False

    def write(self, message: bytes) -> bool:
        """Write a message, waiting for the reader as long as it takes. Return whether there is a reader."""
        with self._lock:
            left = memoryview(message)
            try:
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


def split_line(line: bytes) -> tuple[bytes, bytes]:
    r"""Return a line without its line break, and the line break.

    >>> split_line(b"one\r\n"), split_line(b"one")
    ((b'one', b'\r\n'), (b'one', b''))
    """
    text = line.rstrip(b"\r\n")
    return text, line[len(text) :]
