# Generated from fdstore/client/_async/writer.py by `make generate`: change that one.
"""The writing end of a stream: text is added in small parts and stored in larger pieces.

Stored alone, a part of 100 bytes costs a round trip and 25 times its size in Redis's log, and even one of
64 KB costs more than in company. So a writer buffers (see `WriteBuffer`). In the background, on a thread or
awaiting in a task, it stores the buffer when that holds enough for a round trip or is 10 ms old; text that is
added during a round trip goes with the next one. `write` itself stores, and so waits, when `GROUP_CHARS` have
been added; `flush` and `end` always do. The background task also renews the lease while there is nothing to
store: if the program dies, the lease expires, and readers learn that the stream broke off.
"""

from __future__ import annotations

import contextlib
import time
import warnings
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any

from fdstore.client._sync.support import Event, Lock, join, start, wait_within
from fdstore.client.write_buffer import (
    FINAL,
    MAX_AGE_S,
    RENEWALS_PER_LEASE,
    RETRY_S,
    WriteBuffer,
    check_reason,
    reason_of,
)
from fdstore.errors import FDStoreError, StreamClosed
from fdstore.store.streams import StreamAppender, check_exit_code
from fdstore.wire.operation import Operation


class StreamWriter:
    r"""Writes a stream; made by `Process.open_stream`. Blocking, it is safe to share between threads;
    awaiting, it belongs to the event loop it was made in.

    `fd` is its descriptor. As an async context manager it ends the stream with exit code 0, or breaks it off
    when an exception leaves the block. One that is dropped without an end leaves a stream that breaks
    (`writer_lost`) when its lease runs out.

    >>> with proc.open_stream(source="build") as out:
    ...     out.write("compiling\n")
    >>> proc.read(out.fd).text
    'compiling\n'
    """

    def __init__(self, run: Callable[[Operation[None]], None], appender: StreamAppender) -> None:
        self._over = Event()
        self.fd = appender.fd
        self._run = run
        self._buffer = WriteBuffer(appender)
        self._renew_every_s = appender.lease_s / RENEWALS_PER_LEASE
        self._stored_at = time.monotonic()
        self._failing = False
        self._storing = Lock()  # held for a round trip
        self._wake = Event()  # there is text, or it is over
        self._enough = Event()  # there is enough of it, or it is over
        self._task = start(f"stream {self.fd}", _attend, weakref.ref(self), self._wake, self._renew_every_s)

    def __repr__(self) -> str:
        return f"<fdstore.StreamWriter {self.fd}>"

    @property
    def is_over(self) -> bool:
        """Whether it takes nothing more: it was ended, or it was seen to be broken or closed by all.

        >>> out = proc.open_stream()
        >>> out.end()
        >>> out.is_over
        True
        """
        return self._buffer.is_over

    def __enter__(self) -> StreamWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.end()
        else:
            # the error that is on its way says more than one about telling it
            with contextlib.suppress(FDStoreError):
                self.fail(reason_of(error))

    def __del__(self, _warn: Callable[..., Any] = warnings.warn) -> None:
        if not self._over.is_set():
            self._wake.set()
            _warn(f"the stream {self.fd} was never ended", ResourceWarning, stacklevel=2)

    def write(self, text: str) -> None:
        r"""Add text. It is stored a little later (after 10 ms, or when 16 000 characters have come together;
        the writer waits when 800 000 have), at the latest when `flush` or `end` returns, and an error
        then shows there or in the next `write`. When Redis was out of reach, what was taken is
        sent again with the next call, and stored once: do not write it again.

        Raises `InvalidArgument` (not a str, a lone surrogate), `StreamClosed` (it was ended, it broke, or
        no process holds it any more), `Fenced`, `QuotaExceeded`; see also `Process`.

        >>> out = proc.open_stream()
        >>> out.write("one\n")
        >>> out.end()
        """
        self._buffer.put(text)
        if self._buffer.is_full:
            self._store()
            return
        if self._buffer.has_enough and not self._enough.is_set():
            self._enough.set()
        if not self._wake.is_set():
            self._wake.set()

    def flush(self) -> None:
        r"""Store what was written so far; readers have it when this returns. Raises as `write`.

        >>> out = proc.open_stream()
        >>> out.write("one\n")
        >>> out.flush()
        >>> proc.stat(out.fd).chars
        4
        >>> out.end()
        """
        if self._buffer.ended is None:
            self._store()

    def end(self, exit_code: int = 0, *, chain: str = "") -> None:
        """Store what was written and end the stream: readers get EOF and the exit code (and `chain`,
        the exit codes of the pipelines that made it). Once ended, do nothing. Raises as `write`, and
        `InvalidArgument`.

        >>> out = proc.open_stream()
        >>> out.end(exit_code=1)
        >>> proc.stat(out.fd).exit_code
        1
        """
        code = check_exit_code(exit_code)
        try:
            with self._storing:
                if self._buffer.ended is None:
                    self._store_all()
                    self._run(self._buffer.appender.seal(code, chain))
                    self._buffer.ended = "sealed"
        except FINAL as error:
            self._buffer.error = error
            raise
        finally:
            if self._buffer.is_over:
                self._stop()

    def fail(self, reason: str) -> None:
        """Break the stream off: readers get what was written, and then the reason (1-200
        characters). Once ended, do nothing. Raises `InvalidArgument`, `Fenced`, `NotFound`.

        >>> out = proc.open_stream()
        >>> out.fail("disk full")
        >>> proc.stat(out.fd).reason
        'disk full'
        """
        check_reason(reason)
        try:
            with self._storing:
                if self._buffer.ended is None:
                    # what cannot be stored is part of the failure
                    with contextlib.suppress(FDStoreError):
                        self._store_all()
                    # it may be broken already, by its quota or by a reader who saw its lease run out
                    with contextlib.suppress(StreamClosed):
                        self._run(self._buffer.appender.break_off(reason))
                    self._buffer.ended = "broken"
        finally:
            self._stop()

    def _store(self) -> None:
        with self._storing:
            self._store_all()

    def _store_all(self) -> None:
        self._buffer.check()
        self._buffer.hand_over()
        self._enough.clear()
        try:
            self._run(self._buffer.appender.store())
        except FINAL as error:
            self._buffer.error = error
            raise
        self._stored_at = time.monotonic()

    def _stop(self) -> None:
        self._over.set()
        self._enough.set()
        self._wake.set()
        join(self._task)

    def _attend_once(self) -> bool:
        """Store what is there when it has waited long enough, or renew the lease. Return False when there is
        nothing more to do."""
        if self._buffer.chars:
            wait_within(self._enough, MAX_AGE_S)
        with self._storing:
            if self._over.is_set() or self._buffer.is_over:
                return False
            try:
                if self._buffer.chars:
                    self._store_all()
                elif time.monotonic() - self._stored_at >= self._renew_every_s / 2:
                    self._run(self._buffer.appender.renew())
                    self._stored_at = time.monotonic()
                self._failing = False
            except FINAL as error:
                self._buffer.error = error
                return False
            except FDStoreError:
                self._failing = True
                return True  # whoever writes or flushes next meets it too, if it has not passed by then
        return True


def _attend(writer: weakref.ref[StreamWriter], wake: Event, every_s: float) -> None:
    # holds the writer only while it works: nobody should keep the lease of one that is forgotten
    pause_s = every_s
    while True:
        wait_within(wake, pause_s)
        wake.clear()
        found = writer()
        if found is None or not found._attend_once():
            return
        pause_s = min(every_s, RETRY_S) if found._failing else every_s
        del found
