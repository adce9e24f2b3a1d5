"""Errors about contents and descriptors: out of range, too large, no text, closed, broken, taken."""

from __future__ import annotations

from fdstore.errors.base import FDStoreError, InvalidArgument


class PageOutOfRange(FDStoreError):
    """The page number is past the last page of the content."""

    type = "invalid_page"

    def __init__(self, fd: str, number: int, pages: int) -> None:
        super().__init__(fd, number, pages)
        self.fd, self.number, self.pages = fd, number, pages

    def __str__(self) -> str:
        valid = f"pages 1-{self.pages}" if self.pages > 1 else "only page 1"
        return f"{self.fd} has {valid}; there is no page {self.number}"


class PositionOutOfRange(FDStoreError):
    """The start line or character is past the end of the content."""

    type = "invalid_range"

    def __init__(self, fd: str, unit: str, start: int, total: int) -> None:
        super().__init__(fd, unit, start, total)
        self.fd, self.unit, self.start, self.total = fd, unit, start, total

    def __str__(self) -> str:
        valid = f"{self.unit}s 1-{self.total}" if self.total else f"no {self.unit}s: it is empty"
        return f"{self.fd} has {valid}; there is no {self.unit} {self.start}"


class NotEncoded(InvalidArgument):
    """Bytes are invalid in the given encoding. `position` is 1-based."""

    def __init__(self, encoding: str, position: int, reason: str) -> None:
        FDStoreError.__init__(self, encoding, position, reason)
        self.encoding, self.position, self.reason = encoding, position, reason
        self.argument, self.problem = "text", f"byte {position} is not {encoding.upper()} ({reason})"

    def __str__(self) -> str:
        return f'text: {self.problem}; errors="backslashreplace" keeps such bytes as \\xNN'


class TooLarge(FDStoreError):
    """The result would exceed the limit, of characters or of another `unit`; nothing was returned."""

    type = "too_large"

    def __init__(self, what: str, size: int, limit: int, advice: str = "", unit: str = "characters") -> None:
        super().__init__(what, size, limit, advice, unit)
        self.what, self.size, self.limit, self.advice, self.unit = what, size, limit, advice, unit

    def __str__(self) -> str:
        advice = f"; {self.advice}" if self.advice else ""
        return f"{self.what} has {self.size} {self.unit}, more than the limit of {self.limit}{advice}"


class NotText(FDStoreError):
    """The content is bytes, and was to be read as text, or is a picture that cannot be shown (`problem`).
    `advice`: what can be done with it."""

    type = "not_text"

    def __init__(
        self,
        fd: str,
        media_type: str,
        size_bytes: int,
        problem: str = "",
        advice: str = "write it to a file, pass it to a command, or read its bytes",
    ) -> None:
        super().__init__(fd, media_type, size_bytes, problem, advice)
        self.fd, self.media_type, self.size_bytes = fd, media_type, size_bytes
        self.problem, self.advice = problem, advice

    def __str__(self) -> str:
        said = f"{self.fd} is {self.media_type} ({self.size_bytes} bytes), not text"
        if self.problem:
            said += f", and cannot be shown: {self.problem}"
        return f"{said}; {self.advice}" if self.advice else said


class StreamClosed(FDStoreError):
    """A write to a content that is sealed, broken or no longer held."""

    type = "stream_closed"

    def __init__(self, fd: str, state: str) -> None:
        super().__init__(fd, state)
        self.fd, self.state = fd, state

    def __str__(self) -> str:
        return f"{self.fd} is {self.state} and takes no more text; make a new descriptor instead"


class StreamBroken(FDStoreError):
    """The writer of the stream failed; the text stored before can still be read."""

    type = "stream_broken"

    def __init__(self, fd: str, reason: str) -> None:
        super().__init__(fd, reason)
        self.fd, self.reason = fd, reason

    def __str__(self) -> str:
        return f"{self.fd} broke off ({self.reason}); what was stored before can be read"


class Conflict(FDStoreError):
    """A name does not mean what the caller expected; nothing was changed. `found` is "absent" (the name means
    nothing), "taken" (it was expected to be free) or "other" (it means another content)."""

    type = "conflict"

    def __init__(self, fd: str, found: str) -> None:
        super().__init__(fd, found)
        self.fd, self.found = fd, found

    def __str__(self) -> str:
        what = {"absent": "does not exist", "taken": "exists already"}.get(
            self.found, "means another content by now"
        )
        return f"{self.fd} {what}; nothing was changed. Read what it means now, and decide again"
