"""Read lines from a file descriptor, and write whole messages to one from several threads."""

from __future__ import annotations

import logging
import os
import select
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

from fdstore.hosts.gateway.json_scan import Buffer
from fdstore.hosts.gateway.messages import MAX_MESSAGE_BYTES, TOO_LONG, TooLong, longer

log = logging.getLogger("fdstore.gateway")

READ_BYTES = 1 << 18


def read_lines(
    fd: int, answer: Callable[[bytes], object] | None = None, limit: int = MAX_MESSAGE_BYTES
) -> Iterator[bytes | bytearray]:
    """Yield each line with its line break, and at the end of the input what follows the last one. A line is
    in memory once. One of more than `limit` bytes is not kept: in the place of an answer an error is
    yielded, and a request is answered with it by `answer`, to whoever wrote it. A line break does not
    count."""
    begun: bytearray | TooLong = bytearray()
    with suppress(OSError):  # the other side has closed a terminal or a socket
        while chunk := os.read(fd, READ_BYTES):
            start = 0
            while end := chunk.find(b"\n", start) + 1:
                if begun:
                    line, begun = longer(begun, memoryview(chunk)[start:end], limit + 1), bytearray()
                    if isinstance(line, TooLong):
                        yield from _instead_of(line, answer)
                    else:
                        yield line
                    del line
                else:
                    yield chunk[start:end]
                start = end
            begun = longer(begun, memoryview(chunk)[start:], limit + 1)
    if isinstance(begun, TooLong):
        yield from _instead_of(begun, answer)
    elif begun:
        yield begun


def _instead_of(line: TooLong, answer: Callable[[bytes], object] | None) -> Iterator[bytes]:
    error = line.answer()
    if error is None:
        log.error("%s", TOO_LONG)
    elif not line.is_request:
        yield error + b"\n"
    elif answer is not None:
        answer(error + b"\n")


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
