"""The writing end of a stream, for people: text goes in by bits, and is stored in pieces.

Stored alone, a bit of 100 bytes costs a round trip and 25 times its size in Redis's log, and even one of
64 KB costs more than in company. So a writer collects. Its thread stores what is there when
that is worth a round trip or 10 ms old; what comes meanwhile, while a piece is on its way, goes together
with the next. `write` itself stores, and so waits, when `GROUP_CHARS` have come together, and `flush` and
`end` do. The thread also keeps the lease while there is nothing to store: if the program dies, nobody
keeps it, and readers learn that the stream broke off.

`fdstore.aio_writer` is the same, awaited; both share `Outbox`, which holds what they have in common.
"""

from __future__ import annotations

import contextlib
import threading
import time
import warnings
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any

from fdstore.errors import (
    FDStoreError,
    Fenced,
    InvalidArgument,
    NotFound,
    QuotaExceeded,
    StreamClosed,
    quoted,
)
from fdstore.store.staging import MAX_REASON_CHARS
from fdstore.store.streams import PIECE_CHARS, Pen, check_exit_code
from fdstore.text.paging import encode
from fdstore.wire.operation import Operation

ENOUGH_CHARS = 16_000
"""How much text is worth a round trip of its own, which then begins at once."""

GROUP_CHARS = 4 * PIECE_CHARS
"""How much text a writer takes and does not store before whoever writes must wait. Several pieces, since
each but the first is made ready while Redis has the one before."""

MAX_AGE_S = 0.01
"""How old text gets before it is stored, however little it is."""

RENEWALS_PER_LEASE = 3

RETRY_S = 1.0
"""How soon a writer tries again to store or to renew its lease when Redis was out of reach."""

FINAL = (StreamClosed, Fenced, QuotaExceeded, NotFound)
"""Errors after which a stream takes nothing more. Any other one may pass: what was not stored is kept
and sent again with the next try."""


class Outbox:
    """What a writer has taken and not stored, and whether it may take more. No I/O, no clock."""

    def __init__(self, pen: Pen) -> None:
        self.pen = pen
        self.ended: str | None = None
        self.error: FDStoreError | None = None
        self.chars = 0
        self._bits: list[str] = []

    @property
    def is_over(self) -> bool:
        """Whether nothing more can come of it."""
        return self.ended is not None or self.error is not None

    @property
    def is_full(self) -> bool:
        """Whether it has to be stored before more is taken."""
        return self.chars >= GROUP_CHARS

    @property
    def has_enough(self) -> bool:
        """Whether it need not wait for more before it is stored."""
        return self.chars >= ENOUGH_CHARS

    def put(self, text: object) -> None:
        """Takes text. Raises `InvalidArgument`, `StreamClosed`, and what storing raised for good."""
        if not isinstance(text, str):
            raise InvalidArgument("text", f"a str is needed, not {quoted(text)}")
        self.check()
        if not text.isascii():
            encode(text)
        self._bits.append(text)
        self.chars += len(text)

    def check(self) -> None:
        """Raises if nothing more can be stored."""
        if self.error is not None:
            raise type(self.error)(*self.error.args) from self.error
        if self.ended is not None:
            raise StreamClosed(self.pen.fd, self.ended)

    def hand_over(self) -> None:
        """Gives the pen all that was taken."""
        self.pen.put("".join(self._bits))
        self._bits.clear()
        self.chars = 0


def check_reason(reason: object) -> str:
    """Why a stream is said to break off. Raises `InvalidArgument`."""
    if not isinstance(reason, str) or not reason or len(reason) > MAX_REASON_CHARS:
        raise InvalidArgument("reason", f"a text of 1-{MAX_REASON_CHARS} characters is needed")
    encode(reason)
    return reason


def reason_of(error: BaseException) -> str:
    """Why a stream breaks off whose `with` block an error left."""
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return said.encode("utf-8", "replace").decode("utf-8")[:MAX_REASON_CHARS]


class StreamWriter:
    r"""Writes a stream; made by `Process.open_stream`. Safe to share between threads.

    `fd` is its descriptor. As a context manager it ends the stream with exit code 0, or breaks it off
    when an exception leaves the block. One that is dropped without an end leaves a stream that breaks
    (`writer_lost`) when its lease runs out.

    >>> with proc.open_stream(source="build") as out:
    ...     out.write("compiling\n")
    >>> proc.read(out.fd).text
    'compiling\n'
    """

    def __init__(self, run: Callable[[Operation[None]], None], pen: Pen) -> None:
        self._over = threading.Event()
        self.fd = pen.fd
        self._run = run
        self._outbox = Outbox(pen)
        self._renew_every_s = pen.lease_s / RENEWALS_PER_LEASE
        self._stored_at = time.monotonic()
        self._failing = False
        self._taking = threading.Lock()  # held for moments
        self._storing = threading.Lock()  # held for a round trip; taken first
        self._wake = threading.Event()  # there is text, or it is over
        self._enough = threading.Event()  # there is enough of it, or it is over
        thread = threading.Thread(
            target=_attend,
            args=(weakref.ref(self), self._wake, self._renew_every_s),
            name=f"stream {self.fd}",
            daemon=True,
        )
        self._thread = thread
        thread.start()

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
        return self._outbox.is_over

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
        with self._taking:
            self._outbox.put(text)
            has_enough, is_full = self._outbox.has_enough, self._outbox.is_full
        if is_full:
            self._store()
            return
        if has_enough and not self._enough.is_set():
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
        if self._outbox.ended is None:
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
                if self._outbox.ended is None:
                    self._store_all()
                    self._run(self._outbox.pen.seal(code, chain))
                    self._outbox.ended = "sealed"
        except FINAL as error:
            self._outbox.error = error
            raise
        finally:
            if self._outbox.is_over:
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
                if self._outbox.ended is None:
                    # what cannot be stored is part of the failure
                    with contextlib.suppress(FDStoreError):
                        self._store_all()
                    # it may be broken already, by its quota or by a reader who saw its lease run out
                    with contextlib.suppress(StreamClosed):
                        self._run(self._outbox.pen.break_off(reason))
                    self._outbox.ended = "broken"
        finally:
            self._stop()

    def _store(self) -> None:
        with self._storing:
            self._store_all()

    def _store_all(self) -> None:
        with self._taking:
            self._outbox.check()
            self._outbox.hand_over()
            self._enough.clear()
        try:
            self._run(self._outbox.pen.store())
        except FINAL as error:
            self._outbox.error = error
            raise
        self._stored_at = time.monotonic()

    def _stop(self) -> None:
        self._over.set()
        self._enough.set()
        self._wake.set()
        self._thread.join()

    def _attend_once(self) -> bool:
        """Stores what is there when it has waited long enough, or shows that the writer lives.
        Whether to go on."""
        if self._outbox.chars:
            self._enough.wait(MAX_AGE_S)
        with self._storing:
            if self._over.is_set() or self._outbox.is_over:
                return False
            try:
                if self._outbox.chars:
                    self._store_all()
                elif time.monotonic() - self._stored_at >= self._renew_every_s / 2:
                    self._run(self._outbox.pen.renew())
                    self._stored_at = time.monotonic()
                self._failing = False
            except FINAL as error:
                self._outbox.error = error
                return False
            except FDStoreError:
                self._failing = True
                return True  # whoever writes or flushes next meets it too, if it has not passed by then
        return True


def _attend(writer: weakref.ref[StreamWriter], wake: threading.Event, every_s: float) -> None:
    # holds the writer only while it works: nobody should keep the lease of one that is forgotten
    pause_s = every_s
    while True:
        wake.wait(pause_s)
        wake.clear()
        found = writer()
        if found is None or not found._attend_once():
            return
        pause_s = min(every_s, RETRY_S) if found._failing else every_s
        del found
