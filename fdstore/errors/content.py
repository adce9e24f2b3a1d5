"""Errors about contents and descriptors: out of range, too large, no text, closed, broken, taken."""

from __future__ import annotations

from fdstore.errors.base import FDStoreError, InvalidArgument, given


class PageOutOfRange(FDStoreError):
    """The page number is past the last page of the content."""

    type = "invalid_page"
    remedy = "Read a page that exists; `pages` says how many there are."
    sample = given("fd:1", 9, 3)
    of_request = True

    fd: str
    number: int
    pages: int

    def __str__(self) -> str:
        valid = f"pages 1-{self.pages}" if self.pages > 1 else "only page 1"
        return f"{self.fd} has {valid}; there is no page {self.number}"


class PositionOutOfRange(FDStoreError):
    """The start line or character is past the end of the content."""

    type = "invalid_range"
    remedy = "Read a line or character that exists; `total` says how many there are."
    sample = given("fd:1", "line", 900, 120)
    of_request = True

    fd: str
    unit: str
    start: int
    total: int

    def __str__(self) -> str:
        valid = f"{self.unit}s 1-{self.total}" if self.total else f"no {self.unit}s: it is empty"
        return f"{self.fd} has {valid}; there is no {self.unit} {self.start}"


class NotEncoded(InvalidArgument):
    """Bytes are invalid in the given encoding. `position` is 1-based."""

    says = 'text: {problem}; errors="backslashreplace" keeps such bytes as \\xNN'
    sample = given("utf-8", 17, "invalid start byte")

    encoding: str
    position: int
    reason: str

    def __init__(self, encoding: str, position: int, reason: str) -> None:
        FDStoreError.__init__(self, encoding, position, reason)
        self.argument, self.problem = "text", f"byte {position} is not {encoding.upper()} ({reason})"

    def __str__(self) -> str:
        return FDStoreError.__str__(self)


class TooLarge(FDStoreError):
    """The result would exceed the limit, of characters or of another `unit`; nothing was returned."""

    type = "too_large"
    remedy = "Read pages, search, or extract the part that matters."
    sample = given("fd:1", 10_000_000, 100_000, "read pages, or search it")
    of_request = True

    what: str
    size: int
    limit: int
    advice: str = ""
    unit: str = "characters"

    def __str__(self) -> str:
        advice = f"; {self.advice}" if self.advice else ""
        return f"{self.what} has {self.size} {self.unit}, more than the limit of {self.limit}{advice}"


class NotText(FDStoreError):
    """The content is bytes, and was to be read as text, or is a picture that cannot be shown (`problem`).
    `advice`: what can be done with it."""

    type = "not_text"
    remedy = "Use `read_bytes`, `open_bytes` or `export`."
    sample = given("fd:1", "image/png", 20_480)
    of_request = True

    fd: str
    media_type: str
    size_bytes: int
    problem: str = ""
    advice: str = "write it to a file, pass it to a command, or read its bytes"

    def __str__(self) -> str:
        said = f"{self.fd} is {self.media_type} ({self.size_bytes} bytes), not text"
        if self.problem:
            said += f", and cannot be shown: {self.problem}"
        return f"{said}; {self.advice}" if self.advice else said


class StreamClosed(FDStoreError):
    """A write to a content that is sealed, broken or no longer held."""

    type = "stream_closed"
    says = "{fd} is {state} and takes no more text; make a new descriptor instead"
    remedy = "Write to a new descriptor."
    sample = given("fd:1", "sealed")
    reply = "stream_closed"

    fd: str
    state: str


class StreamBroken(FDStoreError):
    """The writer of the stream failed; the text stored before can still be read."""

    type = "stream_broken"
    says = "{fd} broke off ({reason}); what was stored before can be read"
    remedy = "Read what was stored before; `reason` says how the writer failed."
    sample = given("fd:1", "writer_lost")

    fd: str
    reason: str


class Conflict(FDStoreError):
    """A name does not mean what the caller expected; nothing was changed. `found` is "absent" (the name means
    nothing), "taken" (it was expected to be free) or "other" (it means another content)."""

    type = "conflict"
    remedy = "Read what is there now, and decide again. Nothing was changed."
    sample = given("name:plan.md", "other")
    http = 409
    reply = "conflict"

    fd: str
    found: str

    def __str__(self) -> str:
        what = {"absent": "does not exist", "taken": "exists already"}.get(
            self.found, "means another content by now"
        )
        return f"{self.fd} {what}; nothing was changed. Read what it means now, and decide again"
