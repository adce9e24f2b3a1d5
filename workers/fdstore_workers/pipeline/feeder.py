"""The input of a pipeline: a thread that prefetches chunks of bytes.

The source may block for long (an open stream, a slow Redis), and the pipeline must drain its outputs
meanwhile, or both sides deadlock. So the feeder thread fetches one chunk ahead and rings a bell; it never
touches a pipe.

A source without data must yield b"" at least every second: a feeder can only be stopped there.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor, wait


class Bell:
    """An eventfd that wakes the thread polling `fd`. Any thread may ring it, even after `close`."""

    def __init__(self) -> None:
        self.fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._lock = threading.Lock()
        self._closed = False

    def ring(self) -> None:
        with self._lock:
            if not self._closed:
                os.eventfd_write(self.fd, 1)

    def drain(self) -> None:
        """Reset the eventfd."""
        os.eventfd_read(self.fd)

    def close(self) -> None:
        with self._lock:
            if not self._closed:
                self._closed = True
                os.close(self.fd)


class Feeder:
    """Iterate over `source` in a thread, one chunk ahead; call `ring` for each chunk and at the end."""

    def __init__(self, source: Iterator[bytes], ring: Callable[[], None]) -> None:
        self._source = source
        self._ring = ring
        self._chunks: deque[bytes] = deque()
        self._room = threading.Semaphore(1)
        self._stopped = False
        executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="feeder")
        self._fetching = executor.submit(self._fetch)
        self._fetching.add_done_callback(lambda _: ring())
        executor.shutdown(wait=False)  # the thread ends when the source is exhausted

    def take(self) -> bytes | None:
        """Return the next chunk, b"" if none is ready, None after the last. Raises the source's exception."""
        ended = self._fetching.done()  # check first: the thread may append a chunk and end after the check
        if self._chunks:
            chunk = self._chunks.popleft()
            self._room.release()
            if ended:
                self._ring()  # for the end: one drain may have reset its ring together with this chunk's
            return chunk
        if ended:
            self._fetching.result()
            return None
        return b""

    def stop(self) -> None:
        """Close the source when it next yields, without waiting for that."""
        self._stopped = True
        self._room.release()

    def join(self, timeout_s: float) -> bool:
        """Wait until the source is closed. False on a time-out: a source that does not yield is abandoned."""
        return not wait([self._fetching], timeout_s).not_done

    def _fetch(self) -> None:
        try:
            for chunk in self._source:
                if chunk and not self._stopped:
                    self._room.acquire()
                    self._chunks.append(chunk)
                    self._ring()
                if self._stopped:
                    return
        finally:
            if isinstance(self._source, Generator):
                self._source.close()
