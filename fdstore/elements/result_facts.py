"""Facts about the result of a tool call, as values: what it stored, which part it shows, what failed.

The functions that render results for models fill these in where they are known, and the journal keeps them
beside the text. So a rendered text is never read again to learn what a call did. Models never see them.

    {"kind": "result", "call": "toolu_1", "content": "<fd_content ...", "facts":
        {"shown": [{"fd": "fd:1", "page": 3, "pages": 9, "lines": "20-29"}]}}

Absent facts are left out, and unknown ones are ignored, so a journal that a newer version writes can be read.
Strings of models and users in them are cut to `MAX_CHARS` and printable, messages of errors whole.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from fdstore.model.lifecycle import ProcessState
from fdstore.model.records import (
    Comparison,
    ContentKind,
    Descriptor,
    Export,
    ProcessRecord,
    Record,
    SearchResult,
    Slice,
)
from fdstore.text.layout import show_controls

Interval = tuple[int, int]
"""The first and the last number of a run, 1-based."""

ExtractionKind = Literal["part", "all", "hits"]

MAX_CHARS = 200
"""The characters that are kept of a string of models and users."""


class _Facts(Record, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """A part of the facts of a result."""


class StoredContent(_Facts, frozen=True, kw_only=True):
    """A content that the result shows as an element in place of the whole: a text of `pages` and `chars` and
    about `tokens`, or bytes (`kind`). `shown_chars` is the length of that element, so `chars` less those were
    kept out of the context. `block` is the position of the content block with the element, from 0."""

    fd: str
    kind: ContentKind = "text"
    pages: int = 0
    chars: int = 0
    tokens: int = 0
    size_bytes: int = 0
    media_type: str = ""
    shown_chars: int = 0
    block: int = 0


class ShownPart(_Facts, frozen=True, kw_only=True):
    """A part of a content that the result shows as it is: `page` is its number if it is one page, "all" if it
    is all of the `pages`. Of another part `page_range` has its whole pages, or `char_range` its characters.
    Bytes that are shown as a picture have only a `media_type`."""

    fd: str
    page: int | Literal["all"] | None = None
    pages: int = 0
    lines: str = ""
    page_range: Interval | None = None
    char_range: Interval | None = None
    media_type: str = ""

    @property
    def whole_pages(self) -> Interval | None:
        """The pages that it shows; None if it shows lines or characters of several.

        >>> ShownPart(fd="fd:1", page=3, pages=9).whole_pages, ShownPart(fd="fd:1", pages=1).whole_pages
        ((3, 3), (1, 1))
        """
        if self.page == "all" or self.pages == 1:
            return 1, self.pages
        return self.page_range if self.page is None else (self.page, self.page)


class SearchSummary(_Facts, frozen=True, kw_only=True):
    """A search whose hits the result shows."""

    fd: str
    pattern: str = ""
    matches: int = 0


class Extraction(_Facts, frozen=True, kw_only=True):
    """A new descriptor `fd` of `chars` characters: a part, all, or the hits of a search of `source_fd`."""

    fd: str
    source_fd: str
    chars: int
    what: ExtractionKind = "part"


class ComparisonSummary(_Facts, frozen=True, kw_only=True):
    """A comparison of two texts: their selectors, and how many lines of `a` are removed, and how many added,
    to make it `b`."""

    a: str
    b: str
    removed: int
    added: int


class FileExport(_Facts, frozen=True, kw_only=True):
    """A content that was written to a file, or appended to it."""

    fd: str
    file_path: str
    size_bytes: int
    appended: bool = False


class ProcessSummary(_Facts, frozen=True, kw_only=True):
    """The state of a process, and the descriptor `fd` that it writes, if it writes one."""

    process: str
    state: ProcessState
    exit_code: int | None = None
    reason: str = ""
    fd: str = ""


class ErrorSummary(_Facts, frozen=True, kw_only=True):
    """The error that the result shows: its type, the descriptor that it concerns, if any, and its message."""

    type: str
    fd: str = ""
    message: str = ""


class ResultFacts(_Facts, frozen=True, kw_only=True):
    """Facts about a result of a tool call.

    stored     contents that are shown as an element in place of the whole
    shown      parts of contents that are shown as they are
    search     a search whose hits are shown
    listed     the number of descriptors of which a part is listed
    extraction a part that was stored as a new descriptor
    compared   two texts whose differences are shown
    written    the descriptor that was written to
    closed     the descriptor that was closed
    export     a file that was written
    processes  processes whose state is shown
    error      the error that is shown
    expanded   selectors of the texts that `{{...}}` stood for in the arguments

    >>> ResultFacts(error=ErrorSummary(type="not_found", fd="fd:9")).fds
    ('fd:9',)
    """

    stored: tuple[StoredContent, ...] = ()
    shown: tuple[ShownPart, ...] = ()
    search: SearchSummary | None = None
    listed: int | None = None
    extraction: Extraction | None = None
    compared: ComparisonSummary | None = None
    written: str = ""
    closed: str = ""
    export: FileExport | None = None
    processes: tuple[ProcessSummary, ...] = ()
    error: ErrorSummary | None = None
    expanded: tuple[str, ...] = ()

    @property
    def fds(self) -> tuple[str, ...]:
        """The descriptors that the result is about, each once."""
        one = (self.search, self.extraction, self.export, self.error)
        named = [each.fd for each in (*self.processes, *self.stored, *self.shown, *one) if each is not None]
        if self.compared is not None:
            named += [self.compared.a.partition("#")[0], self.compared.b.partition("#")[0]]
        return tuple(dict.fromkeys(fd for fd in (*named, self.written, self.closed) if fd))

    @property
    def repeatable_fds(self) -> tuple[str, ...] | None:
        """The descriptors that must still be there for the same call to show the same again; None if it shows
        no part, no search and no list."""
        if not self.shown and self.search is None and self.listed is None:
            return None
        searched = () if self.search is None else (self.search.fd,)
        return tuple(dict.fromkeys((*(part.fd for part in self.shown), *searched)))


NO_FACTS = ResultFacts()


def _printable(value: str | None) -> str:
    return show_controls((value or "")[:MAX_CHARS], keep="")


def of_slice(s: Slice) -> ResultFacts:
    """Return the facts of a part that is shown."""
    pages = chars = None
    if s.page is None and s.mode == "page":
        pages = (s.start, s.start + s.count - 1)
    elif s.page is None and s.text:
        first, _, last = s.chars.partition("-")
        chars = (int(first), int(last))
    part = ShownPart(fd=s.fd, page=s.page, pages=s.pages, lines=s.lines, page_range=pages, char_range=chars)
    return ResultFacts(shown=(part,))


def of_picture(d: Descriptor) -> ResultFacts:
    """Return the facts of bytes that are shown as a picture."""
    return ResultFacts(shown=(ShownPart(fd=d.fd, media_type=_printable(d.media_type)),))


def of_stored(d: Descriptor, tokens: int, shown_chars: int) -> ResultFacts:
    """Return the facts of a content that is shown as an element of this length."""
    if d.kind == "bytes":
        media_type = _printable(d.media_type)
        stored = StoredContent(
            fd=d.fd, kind=d.kind, size_bytes=d.bytes, media_type=media_type, shown_chars=shown_chars
        )
    else:
        stored = StoredContent(fd=d.fd, pages=d.pages, chars=d.chars, tokens=tokens, shown_chars=shown_chars)
    return ResultFacts(stored=(stored,))


def of_extraction(source_fd: str, new: Descriptor, what: ExtractionKind) -> ResultFacts:
    """Return the facts of a part that was stored as `new`."""
    return ResultFacts(extraction=Extraction(fd=new.fd, source_fd=source_fd, chars=new.chars, what=what))


def of_search(result: SearchResult) -> ResultFacts:
    """Return the facts of a search."""
    pattern = _printable(result.pattern)
    return ResultFacts(search=SearchSummary(fd=result.fd, pattern=pattern, matches=result.matches))


def of_comparison(found: Comparison) -> ResultFacts:
    """Return the facts of a comparison."""
    return ResultFacts(
        compared=ComparisonSummary(a=found.a, b=found.b, removed=found.removed, added=found.added)
    )


def of_export(export: Export) -> ResultFacts:
    """Return the facts of a file that was written."""
    return ResultFacts(
        export=FileExport(
            fd=export.fd,
            file_path=_printable(export.file_path),
            size_bytes=export.size_bytes,
            appended=export.mode == "append",
        )
    )


def of_process(record: ProcessRecord) -> ResultFacts:
    """Return the facts of the state of a process."""
    process = ProcessSummary(
        process=record.id,
        state=record.state,
        exit_code=record.exit_code,
        reason=_printable(record.reason),
        fd=record.outputs[0] if record.outputs else "",
    )
    return ResultFacts(processes=(process,))


def of_error(type: str, fd: str | None, message: str) -> ResultFacts:
    """Return the facts of an error with this message."""
    return ResultFacts(error=ErrorSummary(type=type, fd=_printable(fd), message=show_controls(message)))


def in_block(facts: ResultFacts, block: int) -> ResultFacts:
    """Return the facts of a text that is the content block at this position.

    >>> in_block(ResultFacts(stored=(StoredContent(fd="fd:1"),)), 2).stored[0].block
    2
    """
    if not block or not facts.stored:
        return facts
    stored = tuple(msgspec.structs.replace(each, block=block) for each in facts.stored)
    return msgspec.structs.replace(facts, stored=stored)


def join_facts(first: ResultFacts, *others: ResultFacts) -> ResultFacts:
    """Return the facts of a result that has these parts. What a result has only once is that of the first.

    >>> join_facts(ResultFacts(written="fd:1"), ResultFacts(expanded=("fd:2",))).fds
    ('fd:1',)
    """
    found = [part for part in (first, *others) if part != NO_FACTS]
    if len(found) < 2:
        return found[0] if found else NO_FACTS
    several = ("stored", "shown", "processes", "expanded")
    joined = {name: tuple(each for part in found for each in getattr(part, name)) for name in several}
    return msgspec.structs.replace(found[0], **joined)
