"""What goes into a pipeline: pieces of bytes, fetched ahead by a thread of their own.

The source may wait long for its next piece (an open stream, a slow Redis) while the output must be read
on; a pipeline whose one side waits for the other never ends. So the feeder fetches one piece ahead and
rings; it never touches a pipe.

A source that has nothing for now yields b"" at least every second: that is where a feeder can be stopped.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor, wait


class Bell:
    """Wakes the one who polls `fd`; may be rung from any thread, at any time, also when it is gone."""

    def __init__(self) -> None:
        self.fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._turn = threading.Lock()
        self._closed = False

    def ring(self) -> None:
        with self._turn:
            if not self._closed:
                os.eventfd_write(self.fd, 1)

    def drain(self) -> None:
        """Hears all rings so far."""
        os.eventfd_read(self.fd)

    def close(self) -> None:
        with self._turn:
            if not self._closed:
                self._closed = True
                os.close(self.fd)


class Feeder:
    """Takes `source` forward in a thread, one piece ahead, and rings for each piece and at the end."""

    def __init__(self, source: Iterator[bytes], ring: Callable[[], None]) -> None:
        self._source = source
        self._ring = ring
        self._pieces: deque[bytes] = deque()
        self._room = threading.Semaphore(1)
        self._stopped = False
        executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="feeder")
        self._fetching = executor.submit(self._fetch)
        self._fetching.add_done_callback(lambda _: ring())
        executor.shutdown(wait=False)  # takes no more work; the thread ends with the source

    def take(self) -> bytes | None:
        """The next piece, b"" when there is none yet, None after the last. Raises what the source raised."""
        ended = self._fetching.done()  # asked first: what is fetched before the end is seen after it
        if self._pieces:
            piece = self._pieces.popleft()
            self._room.release()
            if ended:
                self._ring()  # for the end, whose own ring may have been heard with that of this piece
            return piece
        if ended:
            self._fetching.result()
            return None
        return b""

    def stop(self) -> None:
        """Has the source closed when it next yields; does not wait."""
        self._stopped = True
        self._room.release()

    def join(self, timeout_s: float) -> bool:
        """Whether the source was closed within the time; one that does not yield is left behind."""
        return not wait([self._fetching], timeout_s).not_done

    def _fetch(self) -> None:
        try:
            for piece in self._source:
                if piece and not self._stopped:
                    self._room.acquire()
                    self._pieces.append(piece)
                    self._ring()
                if self._stopped:
                    return
        finally:
            if isinstance(self._source, Generator):
                self._source.close()
