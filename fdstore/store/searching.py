"""Searching stored text: it streams through a scan in bounded memory and is never joined.

The cost is that of reading the part once, and one round trip to find it when it is not known.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec

from fdstore.errors import InvalidArgument, NotFound
from fdstore.records import Descriptor, SearchResult
from fdstore.store.content_info import ContentInfo, ProcessHandle, reads_content, resolve, retry_if_gone
from fdstore.store.contents import part_of
from fdstore.store.spans import Span, fetch_part
from fdstore.store.staging import StagedContent
from fdstore.text.grep import GrepPrinter
from fdstore.text.hits import HitCollector
from fdstore.text.paging import Cutter
from fdstore.text.pattern import Pattern
from fdstore.text.search import BLOCK_BYTES, Inverted, LineReader, Matcher, Scan, search_limits
from fdstore.text.selection import Part
from fdstore.wire.operation import Disk, Operation

MAX_SHOWN = 50
"""Hits that are returned, unless somebody chose otherwise."""

SOURCE = "search"
"""The source of a content made of hits."""


class _Question(msgspec.Struct, frozen=True):
    written: str
    pattern: Matcher
    context: int
    max_matches: int


class _Copy:
    """The hits on their way into a new content."""

    def __init__(self, stage: StagedContent, page_size: int, context: int) -> None:
        self.printer = GrepPrinter(context, context)
        self.stage = stage
        self._cutter = Cutter(page_size)

    def move(self) -> Operation[None]:
        yield from self.stage.add(self._cutter.feed(self.printer.take()))

    def finish(self) -> Operation[None]:
        yield from self.move()
        yield from self.stage.add(self._cutter.finish())


@reads_content
def search(
    handle: ProcessHandle,
    fd: str,
    part: Part | None,
    pattern: str,
    *,
    context: int = 0,
    max_matches: int = MAX_SHOWN,
    ignore_case: bool = False,
    invert: bool = False,
) -> Operation[SearchResult]:
    """The first `max_matches` lines of a part of a content (all of it for None) that match, with `invert`
    those that do not, and how many there are. Of a line that is partly outside, what is inside is searched.

    Raises `InvalidArgument`, `NotFound`, `PageOutOfRange`, `PositionOutOfRange`.
    """
    question = _asked(pattern, context, max_matches, ignore_case, invert)

    def attempt() -> Operation[SearchResult]:
        view, span = yield from part_of(handle, fd, part)
        return (yield from _answer(question, view, span))

    return (yield from retry_if_gone(handle, fd, attempt))


@reads_content
def search_extract(
    handle: ProcessHandle,
    fd: str,
    part: Part | None,
    pattern: str,
    *,
    context: int = 0,
    max_matches: int = MAX_SHOWN,
    ignore_case: bool = False,
    call_id: str | None = None,
) -> Operation[tuple[SearchResult, Descriptor]]:
    """As `search`, and a new content of ALL lines that match, whole, as `grep -n` prints them. With
    no match it is empty. `max_matches` bounds the result alone.

    Raises what `search` and `Stage.commit` do.
    """
    question = _asked(pattern, context, max_matches, ignore_case)

    def attempt() -> Operation[tuple[SearchResult, Descriptor]]:
        view, span = yield from part_of(handle, fd, part)
        page_size = view.descriptor.page_size
        copy = _Copy(StagedContent(handle, page_size, SOURCE, call_id), page_size, question.context)
        found: list[SearchResult] = []

        def making() -> Operation[Descriptor]:
            found.append((yield from _answer(question, view, span, copy)))
            yield from copy.finish()
            return (yield from copy.stage.commit())

        made = yield from copy.stage.kept(making())
        return found[0], made

    return (yield from retry_if_gone(handle, fd, attempt))


class Counted(msgspec.Struct, frozen=True):
    """How many lines of `fd` were searched, and how many of them match."""

    fd: str
    matches: int
    lines_searched: int


@reads_content
def print_matches(
    handle: ProcessHandle,
    fd: str,
    part: Part | None,
    matcher: Matcher,
    printer: GrepPrinter | None,
    write: Callable[[bytes], object],
) -> Operation[Counted]:
    """Give what `printer` prints of a part of a content (all of it for None) to `write` as it is found, a
    block of text at a time: memory does not grow with what matches. Stop when the printer is full, and count
    no further; without one, only count.

    Raises `NotFound`, `PageOutOfRange`, `PositionOutOfRange`.
    """
    scan = Scan(matcher, [] if printer is None else [printer])

    def begins(before: tuple[int, int]) -> None:
        scan.first_line = before[1] + 1

    def move() -> Operation[None]:
        if printer is not None:
            if printed := printer.take():
                yield Disk(partial(write, printed))
            if printer.full:
                raise _EnoughFound

    def take(run: list[bytes]) -> Operation[None]:
        yield from _feed(scan, run, move)

    try:
        view, span = yield from part_of(handle, fd, part)
        yield from fetch_part(view, span, take, begins)
        yield Disk(scan.finish)
        yield from move()
    except _EnoughFound:
        pass
    except NotFound:
        if handle.known(fd) is not None:
            yield from resolve(handle, fd)  # raises what names the descriptors that there are
        raise
    return Counted(fd, scan.matches, scan.lines)


class _EnoughFound(Exception):
    """Nothing of the rest is wanted."""


def _feed(scan: Scan, run: list[bytes], move: Callable[[], Operation[None]]) -> Operation[None]:
    data = b"".join(run)
    for start in range(0, len(data), BLOCK_BYTES):
        # not a disk, but a pattern may take as long as one: no event loop should wait for it
        yield Disk(partial(scan.feed, data[start : start + BLOCK_BYTES]))
        yield from move()


def _asked(
    pattern: str, context: int, max_matches: int, ignore_case: bool, invert: bool = False
) -> _Question:
    if not isinstance(ignore_case, bool):
        raise InvalidArgument("ignore_case", "true or false is needed")
    context, max_matches = search_limits(context, max_matches)
    compiled = Pattern(pattern, ignore_case=ignore_case)
    return _Question(pattern, Inverted(compiled) if invert else compiled, context, max_matches)


def _answer(
    question: _Question, view: ContentInfo, span: Span, copy: _Copy | None = None
) -> Operation[SearchResult]:
    collector = HitCollector(question.max_matches, question.context)
    readers: list[LineReader] = [collector]
    if copy is not None:
        readers.append(copy.printer)
    scan = Scan(question.pattern, readers)

    def begins(before: tuple[int, int]) -> None:
        chars, newlines = before
        collector.next_char, scan.first_line = chars + 1, newlines + 1

    def move() -> Operation[None]:
        if copy is not None:
            yield from copy.move()

    def take(run: list[bytes]) -> Operation[None]:
        yield from _feed(scan, run, move)

    yield from fetch_part(view, span, take, begins)
    yield Disk(scan.finish)
    hits = collector.hits
    return SearchResult(
        fd=view.descriptor.fd,
        pattern=question.written,
        hits=hits,
        shown=len(hits),
        matches=scan.matches,
        lines_searched=scan.lines,
    )
