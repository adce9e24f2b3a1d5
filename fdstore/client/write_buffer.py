"""What both stream writers share: the text taken and not yet stored, and their thresholds."""

from __future__ import annotations

import threading

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
from fdstore.store.streams import PIECE_CHARS, StreamAppender
from fdstore.text.paging import encode

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


class WriteBuffer:
    """What a writer has taken and not stored, and whether it may take more. Safe to share between threads."""

    def __init__(self, appender: StreamAppender) -> None:
        self.appender = appender
        self.ended: str | None = None
        self.error: FDStoreError | None = None
        self.chars = 0
        self._bits: list[str] = []
        self._taking = threading.Lock()

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
        with self._taking:
            self._bits.append(text)
            self.chars += len(text)

    def check(self) -> None:
        """Raises if nothing more can be stored."""
        if self.error is not None:
            raise type(self.error)(*self.error.args) from self.error
        if self.ended is not None:
            raise StreamClosed(self.appender.fd, self.ended)

    def hand_over(self) -> None:
        """Gives the pen all that was taken."""
        with self._taking:
            text = "".join(self._bits)
            self._bits.clear()
            self.chars = 0
        self.appender.put(text)


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
