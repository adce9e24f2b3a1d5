"""The message of an `fd_result`: what is stored, and how a model continues with the tools that it has.

Each tool says itself what it can be used for (`Tool.offer`). A conversation gets this once: later messages
have at most `LATER_CHARS`, since the attributes say the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple, TypeAlias

from fdstore.errors import NotText
from fdstore.model.records import Descriptor
from fdstore.text.media_types import MAX_VIEWABLE_BYTES
from fdstore.text.remedies import remedy_of_type

LATER_CHARS = 60

Shown = Literal["all", "first page", "part"]
"""The part of a text that an `fd_result` shows."""


LONG_LINE_CHARS = 4000
"""Lines with more characters on average are long."""


class StoredResult(NamedTuple):
    """A stored result, for which tools are offered.

    shows        how much of a text the model sees; "nothing" of bytes
    is_open      whether it is still being written
    is_viewable  whether it is a picture or PDF that a model can look at
    lines        of a text
    page_size    its characters of a page
    """

    fd: str
    shows: Shown | Literal["nothing"]
    pages: int
    is_open: bool
    is_viewable: bool
    lines: int = 0
    page_size: int = 0

    @property
    def has_long_lines(self) -> bool:
        """Return whether it is one line, or few of thousands of characters: then lines are no way to read."""
        chars_each = self.pages * self.page_size / max(self.lines, 1)
        return not self.is_open and (self.lines == 1 or (self.lines > 1 and chars_each > LONG_LINE_CHARS))


Offer: TypeAlias = Callable[[StoredResult], str]
"""Returns how a model continues with a tool: `read on with read_fd(fd="fd:1", start=2)`; "" if it cannot."""


def stored_message(
    d: Descriptor, offers: Iterable[Offer] = (), *, shows: Shown = "first page", is_first: bool = True
) -> str:
    """Return the message of an `fd_result`: what is stored, and how to continue, by the tools' `offers`.
    It is short if it is not the first of its conversation."""
    if not is_first:
        return _later_message(d, shows)
    stored = _of_text(d, shows)
    if d.kind == "bytes":
        said, stored = _bytes_are_stored(d), _stored_bytes(d.fd, d.media_type, d.bytes)
    else:
        size = "1 page" if d.pages == 1 else f"{d.pages} pages of at most {d.page_size} characters"
        match d.state:
            case "sealed":
                whole = " and shown whole" if shows == "all" else ""
                said = f"The text is stored as {d.fd} ({size}){whole}."
            case "open":
                said = f"{d.fd} is still being written ({size} so far)."
            case "broken":
                reason = d.reason or "unknown reason"
                said = f"{d.fd} broke off ({reason}); what came before is stored ({size})."
    ways = _joined(stored, offers)
    return f"{said} {ways[0].upper()}{ways[1:]}." if ways else said


def _of_text(d: Descriptor, shows: Shown) -> StoredResult:
    return StoredResult(d.fd, shows, d.pages, d.state == "open", False, d.lines, d.page_size)


def _later_message(d: Descriptor, shows: Shown) -> str:
    match d.state:
        case "sealed":
            if d.kind == "bytes":
                return "Stored."
            if shows == "all":
                return "Stored and shown whole."
            has_long_lines = d.pages > 1 and _of_text(d, shows).has_long_lines
            return "Long lines: read #C1-4000." if has_long_lines else "Stored."
        case "open":
            return "Still being written."
        case "broken":
            said = f"Broke off: {d.reason or 'unknown reason'}."
            return said if len(said) <= LATER_CHARS else f"{said[: LATER_CHARS - 3]}..."


def _bytes_are_stored(d: Descriptor) -> str:
    match d.state:
        case "sealed":
            return f"{d.fd} holds {d.bytes} bytes of {d.media_type}."
        case "open":
            return f"{d.fd} is still being written ({d.bytes} bytes of {d.media_type} so far)."
        case "broken":
            reason = d.reason or "unknown reason"
            return f"{d.fd} broke off ({reason}); {d.bytes} bytes of {d.media_type} are stored."


def advise(error: NotText, offers: Iterable[Offer]) -> str:
    """Return what a model can do with bytes that it cannot read, and the command that makes text of such a
    file; "" if nothing.

    >>> advise(NotText("fd:1", "audio/mpeg", 100), [lambda stored: f"save it with save({stored.fd})"])
    'save it with save(fd:1)'
    >>> advise(NotText("fd:1", "application/vnd.sqlite3", 100), [])
    'of a file this makes text: sqlite3 FILE .dump'
    """
    stored = _stored_bytes(error.fd, error.media_type, error.size_bytes)
    if error.problem:
        stored = stored._replace(is_viewable=False)
    remedy = None if stored.is_viewable else remedy_of_type(error.media_type)
    made = "" if remedy is None else f"of a file this makes text: {remedy.on('-')}"
    return "; ".join(filter(None, [_joined(stored, offers), made]))


def _stored_bytes(fd: str, media_type: str, size_bytes: int) -> StoredResult:
    is_viewable = size_bytes <= MAX_VIEWABLE_BYTES.get(media_type, -1)
    return StoredResult(fd, "nothing", 0, is_open=False, is_viewable=is_viewable)


def _joined(stored: StoredResult, offers: Iterable[Offer]) -> str:
    ways = [way for offer in offers if (way := offer(stored))]
    return ", or ".join(filter(None, [", ".join(ways[:-1]), *ways[-1:]]))
