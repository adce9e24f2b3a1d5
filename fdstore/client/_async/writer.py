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
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any

from fdstore.client._async.support import Event, Lock, join, start, wait_within
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

    >>> async with await proc.open_stream(source="build") as out:
    ...     await out.write("compiling\n")
    >>> (await proc.read(out.fd)).text
    'compiling\n'
    """

    def __init__(self, run: Callable[[Operation[None]], Awaitable[None]], appender: StreamAppender) -> None:
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
        return f"<fdstore.aio.StreamWriter {self.fd}>"

    @property
    def is_over(self) -> bool:
        """Whether it takes nothing more: it was ended, or it was seen to be broken or closed by all.

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
            # the error that is on its way says more than one about telling it
            with contextlib.suppress(FDStoreError):
                await self.fail(reason_of(error))

    def __del__(self, _warn: Callable[..., Any] = warnings.warn) -> None:
        if not self._over.is_set():
            self._wake.set()
            _warn(f"the stream {self.fd} was never ended", ResourceWarning, stacklevel=2)

    async def write(self, text: str) -> None:
        r"""Add text. It is stored a little later (after 10 ms, or when 16 000 characters have come together;
        the writer waits when 800 000 have), at the latest when `flush` or `end` returns, and an error
        then shows there or in the next `write`. When Redis was out of reach, what was taken is
        sent again with the next call, and stored once: do not write it again.

        Raises `InvalidArgument` (not a str, a lone surrogate), `StreamClosed` (it was ended, it broke, or
        no process holds it any more), `Fenced`, `QuotaExceeded`; see also `Process`.

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
        r"""Store what was written so far; readers have it when this returns. Raises as `write`.

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
        """Store what was written and end the stream: readers get EOF and the exit code (and `chain`,
        the exit codes of the pipelines that made it). Once ended, do nothing. Raises as `write`, and
        `InvalidArgument`.

        >>> out = await proc.open_stream()
        >>> await out.end(exit_code=1)
        >>> (await proc.stat(out.fd)).exit_code
        1
        """
        code = check_exit_code(exit_code)
        try:
            async with self._storing:
                if self._buffer.ended is None:
                    await self._store_all()
                    await self._run(self._buffer.appender.seal(code, chain))
                    self._buffer.ended = "sealed"
        except FINAL as error:
            self._buffer.error = error
            raise
        finally:
            if self._buffer.is_over:
                await self._stop()

    async def fail(self, reason: str) -> None:
        """Break the stream off: readers get what was written, and then the reason (1-200
        characters). Once ended, do nothing. Raises `InvalidArgument`, `Fenced`, `NotFound`.

        >>> out = await proc.open_stream()
        >>> await out.fail("disk full")
        >>> (await proc.stat(out.fd)).reason
        'disk full'
        """
        check_reason(reason)
        try:
            async with self._storing:
                if self._buffer.ended is None:
                    # what cannot be stored is part of the failure
                    with contextlib.suppress(FDStoreError):
                        await self._store_all()
                    # it may be broken already, by its quota or by a reader who saw its lease run out
                    with contextlib.suppress(StreamClosed):
                        await self._run(self._buffer.appender.break_off(reason))
                    self._buffer.ended = "broken"
        finally:
            await self._stop()

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
        self._over.set()
        self._enough.set()
        self._wake.set()
        await join(self._task)

    async def _attend_once(self) -> bool:
        """Store what is there when it has waited long enough, or renew the lease. Return False when there is
        nothing more to do."""
        if self._buffer.chars:
            await wait_within(self._enough, MAX_AGE_S)
        async with self._storing:
            if self._over.is_set() or self._buffer.is_over:
                return False
            try:
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
                return True  # whoever writes or flushes next meets it too, if it has not passed by then
        return True


async def _attend(writer: weakref.ref[StreamWriter], wake: Event, every_s: float) -> None:
    # holds the writer only while it works: nobody should keep the lease of one that is forgotten
    pause_s = every_s
    while True:
        await wait_within(wake, pause_s)
        wake.clear()
        found = writer()
        if found is None or not await found._attend_once():
            return
        pause_s = min(every_s, RETRY_S) if found._failing else every_s
        del found
