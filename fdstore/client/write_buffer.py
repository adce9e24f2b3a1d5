"""The buffer of both stream writers: text, or bytes, not yet stored, and the thresholds for storing it.

The thresholds count characters; of bytes, bytes.
"""

from __future__ import annotations

import threading
from collections import deque
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
from fdstore.errors.description import describe_error
from fdstore.store.contents.staging import MAX_REASON_CHARS
from fdstore.store.streams.streams import PIECE_CHARS, StreamAppender
from fdstore.text.paging import encode

ENOUGH_CHARS = 16_000
"""Buffered text of this size is stored immediately."""

GROUP_CHARS = 4 * PIECE_CHARS
"""Maximum of buffered text; then `write` waits until it is stored. Several pieces, since each but the first
is prepared while Redis processes the previous one."""

MAX_AGE_S = 0.01
"""Maximum age of buffered text, however short."""

RENEWALS_PER_LEASE = 3

RETRY_S = 1.0
"""Pause before a writer retries to store or to renew its lease after Redis was unreachable."""

FINAL = (StreamClosed, Fenced, QuotaExceeded, NotFound)
"""Errors after which a stream accepts no more text. Any other may be transient: text that was not stored is
kept and sent again with the next try."""


class WriteBuffer:
    """The text that a writer has accepted and not stored, and whether it may accept more. Thread-safe.

    An exception at any moment, as by Ctrl-C, loses nothing and doubles nothing: the appender takes parts and
    the number of the last one in one step, so those that it has are known. A signal handler may call it, too.
    """

    def __init__(self, appender: StreamAppender) -> None:
        self.appender = appender
        self.ended: str | None = None
        self.error: FDStoreError | None = None
        self._ending: str | None = None
        self._put_chars = self._taken_chars = 0
        self._parts: deque[tuple[int, Any]] = deque()
        """Pieces, each with its number: the characters put up to its end. All are str or all bytes, see
        `StreamAppender.admit`."""
        self._lock = threading.RLock()  # for `put` and `close`, which wait for nothing while they hold it

    @property
    def chars(self) -> int:
        """The size of what is buffered; more for a while if something was interrupted."""
        return self._put_chars - self._taken_chars

    @property
    def is_over(self) -> bool:
        """Return whether the stream has ended or failed permanently."""
        return self.ended is not None or self.error is not None

    @property
    def is_full(self) -> bool:
        """Return whether the text must be stored before more is accepted."""
        return self._put_chars - self._taken_chars >= GROUP_CHARS

    @property
    def has_enough(self) -> bool:
        """Return whether the text is large enough to be stored immediately."""
        return self._put_chars - self._taken_chars >= ENOUGH_CHARS

    def put(self, text: object) -> None:
        """Append text or bytes; a stream holds one of them. Raises `InvalidArgument`, `NotText`,
        `StreamClosed`, or the final error of an earlier store."""
        if not isinstance(text, (str, bytes)):
            if not isinstance(text, (bytearray, memoryview)):
                raise InvalidArgument("text", f"a str or bytes is needed, not {quoted(text)}")
            text = bytes(text)
        if self.is_over:
            self.check()
        if isinstance(text, str) and not text.isascii():
            encode(text)
        with self._lock:
            if self._ending is not None:
                raise StreamClosed(self.appender.fd, self._ending)
            self.appender.admit(text)
            self._put_chars += len(text)
            if text:
                self._parts.append((self._put_chars, text))

    def check(self) -> None:
        """Raise if no more text can be stored."""
        if self.error is not None:
            raise type(self.error)(*self.error.args) from self.error
        if self.ended is not None:
            raise StreamClosed(self.appender.fd, self.ended)

    def close(self, state: str | None) -> None:
        """Accept no more text, since the stream is about to end in this state; None: it is not, after all."""
        with self._lock:
            self._ending = state

    def hand_over(self) -> None:
        """Pass all buffered text to the appender. Of one caller at a time, and of its signal handlers."""
        self._forget_taken()
        parts = self._parts.copy()
        if parts:
            pieces = [piece for _, piece in parts]
            self.appender.put(type(pieces[0])().join(pieces), parts[-1][0])
            self._forget_taken()

    def leave_to_parent(self) -> None:
        """Store nothing from here: this is a fork, and the parent writes the stream."""
        self._lock = threading.RLock()
        problem = f"{self.appender.fd} is written by the process that was forked; open a stream of its own"
        self.error = Fenced(self.appender.process, problem)

    def _forget_taken(self) -> None:
        taken = self.appender.taken
        while self._parts and self._parts[0][0] <= taken:
            self._parts.popleft()
        self._taken_chars = taken


def check_reason(reason: object) -> str:
    """Return `reason`. Raises `InvalidArgument` unless it is a text of 1-200 characters."""
    if not isinstance(reason, str) or not reason or len(reason) > MAX_REASON_CHARS:
        raise InvalidArgument("reason", f"a text of 1-{MAX_REASON_CHARS} characters is needed")
    encode(reason)
    return reason


def reason_of(error: BaseException) -> str:
    """Return the reason of a stream whose `with` block raised `error`."""
    return describe_error(error).encode("utf-8", "replace").decode("utf-8")[:MAX_REASON_CHARS]
