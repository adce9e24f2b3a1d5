"""Search stored text by streaming it through a scan, in bounded memory.

The cost is one read of the part, plus one round trip to locate it if its index is not cached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

import msgspec

from fdstore.model.flags import check_flag
from fdstore.model.records import Descriptor, SearchResult
from fdstore.store.content_info import ContentInfo
from fdstore.store.contents.contents import part_of
from fdstore.store.contents.locating import PageSpan, fetch_part
from fdstore.store.contents.resolving import explain_if_gone, reads_content, retry_if_gone
from fdstore.store.contents.staging import StagedContent
from fdstore.store.process_handle import ProcessHandle
from fdstore.text.grep import GrepPrinter
from fdstore.text.hits import HitCollector
from fdstore.text.near_misses import NearMiss, NearMisses
from fdstore.text.paging import Cutter
from fdstore.text.pattern import HitCount, Pattern
from fdstore.text.search import BLOCK_BYTES, LineReader, Matcher, Scan, search_limits
from fdstore.text.selection import AnyPart
from fdstore.wire.operation import Disk, Operation

MAX_SHOWN = 50
"""The default maximum of returned hits."""

KEPT_BYTES = 1_000_000
"""A text of so many bytes is kept while it is searched for the first time."""

MAX_AGAIN_BYTES = 50_000_000
"""A larger text is not looked at again for what it has instead of a match."""

SOURCE = "search"
"""The source of a content created from hits."""


class _Query(msgspec.Struct, frozen=True):
    text: str
    ignore_case: bool
    matcher: Matcher
    context: int
    max_matches: int


class _HitWriter:
    """Writes hits to a new content."""

    def __init__(self, stage: StagedContent, page_size: int, context: int) -> None:
        self.printer = GrepPrinter(context, context)
        self.stage = stage
        self._cutter = Cutter(page_size)

    def flush(self) -> Operation[None]:
        yield from self.stage.add(self._cutter.feed(self.printer.take()))

    def finish(self) -> Operation[None]:
        yield from self.flush()
        yield from self.stage.add(self._cutter.finish())


@reads_content
def search(
    handle: ProcessHandle,
    fd: str,
    part: AnyPart | None,
    pattern: str,
    *,
    context: int = 0,
    max_matches: int = MAX_SHOWN,
    ignore_case: bool = False,
    progress: Callable[[int, int | None], None] | None = None,
) -> Operation[SearchResult]:
    """Find matching lines in a part of a content (all of it for None). Return the first `max_matches` of them
    and their total number. Of a line that is partly outside, only the part
    inside is searched. `progress` is called with the bytes searched so far, and those of a whole content.

    Raises `InvalidArgument`, `NotFound`, `PageOutOfRange`, `PositionOutOfRange`.
    """
    query = _query(pattern, context, max_matches, ignore_case)

    def attempt() -> Operation[SearchResult]:
        info, span = yield from part_of(handle, fd, part)
        return (yield from _run(query, info, span, take=_progress_of(progress, info, part)))

    return (yield from retry_if_gone(handle, fd, attempt))


@reads_content
def search_or_near(
    handle: ProcessHandle,
    fd: str,
    part: AnyPart | None,
    pattern: str,
    *,
    context: int = 0,
    max_matches: int = MAX_SHOWN,
    ignore_case: bool = False,
    progress: Callable[[int, int | None], None] | None = None,
) -> Operation[tuple[SearchResult, NearMiss | None]]:
    """As `search`; where no line matches, return also what the text has instead. That takes another pass over
    the text, which is read once more if it has more than `KEPT_BYTES`. A stream that is open is not looked
    at again: what it does not have may be written yet. Nor is one of more than `MAX_AGAIN_BYTES`.

    Raises as `search`.
    """
    query = _query(pattern, context, max_matches, ignore_case)

    def attempt() -> Operation[tuple[SearchResult, NearMiss | None]]:
        info, span = yield from part_of(handle, fd, part)
        kept = _Kept()
        tell = _progress_of(progress, info, part)

        def take(run: list[bytes]) -> None:
            kept.take(run)
            tell(run)

        result = yield from _run(query, info, span, take=take)
        if result.matches or info.descriptor.state == "open" or info.descriptor.bytes > MAX_AGAIN_BYTES:
            return result, None
        return result, (yield from _near_misses(query, info, span, kept))

    return (yield from retry_if_gone(handle, fd, attempt))


class _Kept:
    """Keeps the beginning of a text, and says whether that is all."""

    def __init__(self) -> None:
        self.run: list[bytes] = []
        self.is_all = True

    def take(self, run: list[bytes]) -> None:
        if self.is_all:
            self.run += run
        if sum(map(len, self.run)) > KEPT_BYTES:
            self.run, self.is_all = [], False


def _near_misses(query: _Query, info: ContentInfo, span: PageSpan, kept: _Kept) -> Operation[NearMiss]:
    near = NearMisses(query.text, ignore_case=query.ignore_case)
    if not near.can_be:
        return NearMiss()

    def take(run: list[bytes]) -> Operation[None]:
        for block in _blocks(run):
            yield Disk(partial(near.feed, block))

    if kept.is_all:
        yield from take(kept.run)
    else:
        yield from fetch_part(info, span, take)
    found: NearMiss = yield Disk(near.finish)
    return found


def _progress_of(
    progress: Callable[[int, int | None], None] | None, info: ContentInfo, part: AnyPart | None
) -> Callable[[list[bytes]], None]:
    """Return the function that receives the runs of a text, and reports how much that was."""
    total = info.descriptor.bytes if part is None else None
    searched = 0

    def take(run: list[bytes]) -> None:
        nonlocal searched
        searched += sum(map(len, run))
        if progress is not None:
            progress(searched, total)

    return take


@reads_content
def search_extract(
    handle: ProcessHandle,
    fd: str,
    part: AnyPart | None,
    pattern: str,
    *,
    context: int = 0,
    max_matches: int = MAX_SHOWN,
    ignore_case: bool = False,
    call_id: str | None = None,
) -> Operation[tuple[SearchResult, Descriptor]]:
    """As `search`, but also store ALL matching lines, whole, as `grep -n` prints them, in a new content. It
    is empty without a match. `max_matches` bounds the search result alone.

    Raises as `search` and `StagedContent.commit`.
    """
    query = _query(pattern, context, max_matches, ignore_case)

    def attempt() -> Operation[tuple[SearchResult, Descriptor]]:
        info, span = yield from part_of(handle, fd, part)
        page_size = info.descriptor.page_size
        writer = _HitWriter(StagedContent(handle, page_size, SOURCE, call_id), page_size, query.context)
        found: list[SearchResult] = []

        def store() -> Operation[Descriptor]:
            found.append((yield from _run(query, info, span, writer)))
            yield from writer.finish()
            return (yield from writer.stage.commit())

        descriptor = yield from writer.stage.unstage_on_error(store())
        return found[0], descriptor

    return (yield from retry_if_gone(handle, fd, attempt))


class Counted(msgspec.Struct, frozen=True):
    """The number of lines searched in `fd`, of those that match, and of the matches in them, if these were
    counted."""

    fd: str
    matches: int
    lines_searched: int
    hits: HitCount | None


@reads_content
def print_matches(
    handle: ProcessHandle,
    fd: str,
    part: AnyPart | None,
    matcher: Matcher,
    printer: GrepPrinter | None,
    write: Callable[[bytes], object],
    hits: HitCount | None = None,
) -> Operation[Counted]:
    """Search a part of a content (all of it for None) and pass the output of `printer` to `write` as it is
    produced, a block of text at a time: memory does not grow with the number of matches. Stop searching and
    counting when the printer is full; without a printer, only count, with `hits` the matches in the lines
    too.

    Raises `NotFound`, `PageOutOfRange`, `PositionOutOfRange`.
    """
    scan = Scan(matcher, [] if printer is None else [printer], hits)

    def begins(before: tuple[int, int]) -> None:
        scan.first_line = before[1] + 1

    def flush() -> Operation[None]:
        if printer is not None:
            if printed := printer.take():
                yield Disk(partial(write, printed))
            if printer.full:
                raise _EnoughFound

    def take(run: list[bytes]) -> Operation[None]:
        yield from _feed(scan, run, flush)

    def search_part() -> Operation[None]:
        info, span = yield from part_of(handle, fd, part)
        yield from fetch_part(info, span, take, begins)
        yield Disk(scan.finish)
        yield from flush()

    with suppress(_EnoughFound):
        yield from explain_if_gone(handle, fd, search_part)
    return Counted(fd, scan.matches, scan.lines, hits)


class _EnoughFound(Exception):
    """Stops a search whose printer is full."""


def _feed(scan: Scan, run: list[bytes], flush: Callable[[], Operation[None]]) -> Operation[None]:
    for block in _blocks(run):
        # matching may take as long as disk I/O: keep it off the event loop
        yield Disk(partial(scan.feed, block))
        yield from flush()


def _blocks(run: list[bytes]) -> Iterator[bytes]:
    data = b"".join(run)
    for start in range(0, len(data), BLOCK_BYTES):
        yield data[start : start + BLOCK_BYTES]


def _query(pattern: str, context: int, max_matches: int, ignore_case: bool) -> _Query:
    check_flag("ignore_case", ignore_case)
    context, max_matches = search_limits(context, max_matches)
    return _Query(pattern, ignore_case, Pattern(pattern, ignore_case=ignore_case), context, max_matches)


def _run(
    query: _Query,
    info: ContentInfo,
    span: PageSpan,
    writer: _HitWriter | None = None,
    take: Callable[[list[bytes]], None] | None = None,
) -> Operation[SearchResult]:
    """Search a span; `take` receives its bytes too."""
    collector = HitCollector(query.max_matches, query.context)
    readers: list[LineReader] = [collector]
    if writer is not None:
        readers.append(writer.printer)
    total = HitCount()
    scan = Scan(query.matcher, readers, total)

    def begins(before: tuple[int, int]) -> None:
        chars, newlines = before
        collector.next_char, scan.first_line = chars + 1, newlines + 1

    def flush() -> Operation[None]:
        if writer is not None:
            yield from writer.flush()

    def feed(run: list[bytes]) -> Operation[None]:
        yield from _feed(scan, run, flush)
        if take is not None:
            take(run)

    yield from fetch_part(info, span, feed, begins)
    yield Disk(scan.finish)
    hits = collector.hits
    return SearchResult(
        fd=info.descriptor.fd,
        pattern=query.text,
        hits=hits,
        shown=len(hits),
        matches=scan.matches,
        total_hits=total.hits,
        hits_are_exact=total.is_exact,
        lines_searched=scan.lines,
    )
