"""The writer of a stream: buffers small writes and stores them in larger pieces.

Stored alone, a write of 100 bytes costs a round trip and 25 times its size in Redis's append-only file, and
even one of 64 KB costs more than in a batch. So a writer buffers (see `WriteBuffer`). A background thread or
task stores the buffer when it holds enough for a round trip or is 10 ms old; text added during a round trip
goes with the next one. `write` itself stores, and so waits, when `GROUP_CHARS` are buffered; `flush` and
`end` always do. The background task also renews the lease while there is nothing to store: if the program
dies, the lease expires, and readers find the stream broken. An end that the store did not take before the
deadline of its call is written by the background task when the store takes it.
"""

from __future__ import annotations

import contextlib
import os
import time
import warnings
import weakref
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Literal, NamedTuple

from fdstore.client._async.support import Event, Lock, is_held_here, join, start, wait_within
from fdstore.client.write_buffer import (
    FINAL,
    MAX_AGE_S,
    RENEWALS_PER_LEASE,
    RETRY_S,
    WriteBuffer,
    check_reason,
    reason_of,
)
from fdstore.errors import STORE_FAILURES, FDStoreError, StreamClosed, WrongEventLoop
from fdstore.store.streams.streams import StreamAppender, check_chain, check_exit_code
from fdstore.wire.operation import Operation

_writers: weakref.WeakSet[StreamWriter] = weakref.WeakSet()


def _leave_to_parent() -> None:
    for writer in _writers:
        writer._leave_to_parent()


os.register_at_fork(after_in_child=_leave_to_parent)


class _Ending(NamedTuple):
    """An end that was asked for: the state of the stream then, and what makes it so."""

    state: Literal["sealed", "broken"]
    operation: Callable[[], Operation[None]]


class StreamWriter:
    r"""The writer of a stream; created by `Process.open_stream`. The blocking one is thread-safe, and a
    signal handler may end it; the asyncio one belongs to the event loop it was created in. In a forked
    process every call raises `Fenced`.

    `fd` is its descriptor. As a context manager it ends the stream with exit code 0, or breaks it if
    the block raises. A stream whose writer is dropped without `end` breaks (`writer_lost`) when the lease
    expires.

    >>> async with await proc.open_stream(source="build") as out:
    ...     await out.write("compiling\n")
    >>> (await proc.read(out.fd)).text
    'compiling\n'
    """

    def __init__(self, run: Callable[[Operation[None]], Awaitable[None]], appender: StreamAppender) -> None:
        self._stopped = Event()
        self.fd = appender.fd
        self._run = run
        self._buffer = WriteBuffer(appender)
        self._renew_every_s = appender.lease_s / RENEWALS_PER_LEASE
        self._stored_at = time.monotonic()
        self._failing = self._is_forked = False
        self._ending: _Ending | None = None
        self._storing = Lock()  # held for a round trip; a signal handler may take it again
        self._wake = Event()  # text is buffered, or the writer is stopped
        self._enough = Event()  # enough text is buffered, or the writer is stopped
        self._kept: list[StreamWriter] = []  # this one, once its end is left to the background task
        every_s = self._renew_every_s
        self._task = start(
            f"stream {self.fd}", _store_periodically, weakref.ref(self), self._wake, every_s, self._kept
        )
        _writers.add(self)

    def _leave_to_parent(self) -> None:
        # other threads may have held these locks at the fork
        self._is_forked, self._storing = True, Lock()
        self._stopped, self._wake, self._enough = Event(), Event(), Event()
        self._stopped.set()
        self._buffer.leave_to_parent()

    def __repr__(self) -> str:
        return f"<fdstore.aio.StreamWriter {self.fd}>"

    @property
    def is_over(self) -> bool:
        """Return whether it accepts no more text: it was ended, or found broken or closed by every holder.

        >>> out = await proc.open_stream()
        >>> await out.end()
        >>> out.is_over
        True
        """
        return self._buffer.is_over

    async def __aenter__(self) -> StreamWriter:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            await self.end()
        else:
            # the error in flight is more useful than one from reporting it
            with contextlib.suppress(FDStoreError):
                await self.fail(reason_of(error))

    def __del__(self, _warn: Callable[..., Any] = warnings.warn) -> None:
        if not self._stopped.is_set() and self._ending is None:
            self._wake.set()
            _warn(f"the stream {self.fd} was never ended", ResourceWarning, stacklevel=2)

    async def write(self, text: str | bytes) -> None:
        r"""Append text, or bytes, to the buffer: the first piece decides which of them the stream holds. It
        is stored after 10 ms or when 16 000 characters are buffered, and at the latest when `flush` or `end`
        returns; at 800 000 characters `write` waits until it is stored. An error is raised there or by the
        next `write`. If Redis was unreachable, the buffered text is sent again with the next call, and
        stored once: do not write it again.

        Raises `InvalidArgument` (neither a str nor bytes, a lone surrogate, bytes after text), `NotText`
        (text after bytes), `StreamClosed` (it was ended, it broke, or no process holds it any more),
        `Fenced`, `QuotaExceeded`; see also `Process`.

        >>> out = await proc.open_stream()
        >>> await out.write("one\n")
        >>> await out.end()
        """
        self._buffer.put(text)
        if self._buffer.is_full:
            await self._store()
            return
        if self._buffer.has_enough and not self._enough.is_set():
            self._enough.set()
        if not self._wake.is_set():
            self._wake.set()

    async def flush(self) -> None:
        r"""Store all buffered text; readers can read it when this returns. Raises as `write` does.

        >>> out = await proc.open_stream()
        >>> await out.write("one\n")
        >>> await out.flush()
        >>> (await proc.stat(out.fd)).chars
        4
        >>> await out.end()
        """
        if self._buffer.ended is None:
            await self._store()

    async def end(self, exit_code: int = 0, *, chain: str = "") -> None:
        """Store the buffered text and end the stream: readers get EOF and the exit code (and `chain`, the
        exit codes of the pipelines that produced it). After an end it does nothing. What another thread or
        task writes meanwhile is stored too, or refused. Raises as `write` does, and `InvalidArgument`. If the
        store took no writes until the deadline of this call, that is raised, and the end is written when it
        does, unless this program ends before.

        >>> out = await proc.open_stream()
        >>> await out.end(exit_code=1)
        >>> (await proc.stat(out.fd)).exit_code
        1
        """
        code, codes = check_exit_code(exit_code), check_chain(chain)
        await self._end(_Ending("sealed", lambda: self._buffer.appender.seal(code, codes)))

    async def fail(self, reason: str) -> None:
        """Break the stream: readers get the text written so far and then the reason (1-200 characters). After
        an end it does nothing. Raises `InvalidArgument`, `Fenced`, `NotFound`; if the store takes no writes,
        as `end`.

        >>> out = await proc.open_stream()
        >>> await out.fail("disk full")
        >>> (await proc.stat(out.fd)).reason
        'disk full'
        """
        check_reason(reason)
        await self._end(_Ending("broken", lambda: self._buffer.appender.break_off(reason)))

    async def _end(self, ending: _Ending) -> None:
        if self._is_forked:
            self._buffer.check()
        before = self._ending
        try:
            async with self._storing:
                self._ending = ending
                self._buffer.close(ending.state)
                await self._store_end(ending)
        except WrongEventLoop:
            self._ending = before
            self._buffer.close(before and before.state)
            raise
        except STORE_FAILURES:
            self._failing = True
            self._kept.append(self)
            self._wake.set()
            raise
        except FDStoreError as error:  # waiting would not help, as when its record is damaged
            self._buffer.error = error
            raise
        finally:
            if self._buffer.is_over:
                await self._stop()

    async def _store_end(self, ending: _Ending) -> None:
        if self._buffer.ended is not None:
            return
        if ending.state == "sealed":
            await self._store_all()
            await self._run(ending.operation())
        else:
            try:
                await self._store_all()
            except STORE_FAILURES:
                raise  # do not wait for the store a second time
            except FDStoreError:
                pass  # text that cannot be stored is part of the failure
            # it may be broken already, by its quota or by a reader after its lease expired
            with contextlib.suppress(StreamClosed):
                await self._run(ending.operation())
        self._buffer.ended = ending.state

    async def _store(self) -> None:
        async with self._storing:
            await self._store_all()

    async def _store_all(self) -> None:
        self._buffer.check()
        self._buffer.hand_over()
        self._enough.clear()
        try:
            await self._run(self._buffer.appender.store())
        except FINAL as error:
            self._buffer.error = error
            raise
        self._stored_at = time.monotonic()

    async def _stop(self) -> None:
        self._stopped.set()
        self._enough.set()
        self._wake.set()
        if not is_held_here(self._storing):  # by what a signal handler interrupted: the task waits for it
            await join(self._task)

    async def _store_or_renew(self) -> bool:
        """Store the buffer when it is full or old enough, or an end that was not taken before, or renew the
        lease. Return False when the stream is over."""
        if self._buffer.chars and self._ending is None:
            await wait_within(self._enough, MAX_AGE_S)
        async with self._storing:
            if self._stopped.is_set() or self._buffer.is_over:
                return False
            try:
                if self._ending is not None:
                    await self._store_end(self._ending)
                    self._stopped.set()
                    return False
                if self._buffer.chars:
                    await self._store_all()
                elif time.monotonic() - self._stored_at >= self._renew_every_s / 2:
                    await self._run(self._buffer.appender.renew())
                    self._stored_at = time.monotonic()
                self._failing = False
            except FINAL as error:
                self._buffer.error = error
                return False
            except FDStoreError:
                self._failing = True
                return True  # the next write or flush raises it too, if it persists
        return True


async def _store_periodically(
    writer: weakref.ref[StreamWriter], wake: Event, every_s: float, kept: list[StreamWriter]
) -> None:
    # holds the writer only while it works: the lease of a garbage-collected writer must expire
    pause_s = every_s
    while True:
        await wait_within(wake, pause_s)
        wake.clear()
        found = writer()
        if found is None or not await found._store_or_renew():
            return
        pause_s = min(every_s, RETRY_S) if found._failing else every_s
        del found
