"""Searching stored text: it streams through a scan in bounded memory and is never joined.

The cost is that of reading the part once, and one round trip to find it when it is not known.
"""

from __future__ import annotations

from functools import partial

import msgspec

from fdstore.errors import InvalidArgument
from fdstore.records import Descriptor, SearchResult
from fdstore.store.contents import part_of
from fdstore.store.operation import Disk, Operation
from fdstore.store.staging import Stage
from fdstore.store.stretches import Stretch, fetch_part
from fdstore.store.views import Namespace, View, afresh_if_gone, reads_content
from fdstore.text.grep import GrepPrinter
from fdstore.text.hits import HitCollector
from fdstore.text.paging import Cutter
from fdstore.text.pattern import Pattern
from fdstore.text.search import BLOCK_BYTES, LineReader, Scan, search_limits
from fdstore.text.selection import Part

MAX_SHOWN = 50
"""Hits that are returned, unless somebody chose otherwise."""

SOURCE = "search"
"""The source of a content made of hits."""


class _Question(msgspec.Struct, frozen=True):
    written: str
    pattern: Pattern
    context: int
    max_matches: int


class _Copy:
    """The hits on their way into a new content."""

    def __init__(self, stage: Stage, page_size: int, context: int) -> None:
        self.printer = GrepPrinter(context)
        self.stage = stage
        self._cutter = Cutter(page_size)

    def move(self) -> Operation[None]:
        yield from self.stage.add(self._cutter.feed(self.printer.take()))

    def finish(self) -> Operation[None]:
        yield from self.move()
        yield from self.stage.add(self._cutter.finish())


@reads_content
def search(
    space: Namespace,
    fd: str,
    part: Part | None,
    pattern: str,
    *,
    context: int = 0,
    max_matches: int = MAX_SHOWN,
    ignore_case: bool = False,
) -> Operation[SearchResult]:
    """The first `max_matches` lines of a part of a content (all of it for None) that match, and how
    many there are. Of a line that is partly outside, what is inside is searched.

    Raises `InvalidArgument`, `NotFound`, `PageOutOfRange`, `PositionOutOfRange`.
    """
    question = _asked(pattern, context, max_matches, ignore_case)

    def attempt() -> Operation[SearchResult]:
        view, stretch = yield from part_of(space, fd, part)
        return (yield from _answer(question, view, stretch))

    return (yield from afresh_if_gone(space, fd, attempt))


@reads_content
def search_extract(
    space: Namespace,
    fd: str,
    part: Part | None,
    pattern: str,
    *,
    context: int = 0,
    max_matches: int = MAX_SHOWN,
    ignore_case: bool = False,
    call: str | None = None,
) -> Operation[tuple[SearchResult, Descriptor]]:
    """As `search`, and a new content of ALL lines that match, whole, as `grep -n` prints them. With
    no match it is empty. `max_matches` bounds the result alone.

    Raises what `search` and `Stage.commit` do.
    """
    question = _asked(pattern, context, max_matches, ignore_case)

    def attempt() -> Operation[tuple[SearchResult, Descriptor]]:
        view, stretch = yield from part_of(space, fd, part)
        page_size = view.descriptor.page_size
        copy = _Copy(Stage(space, page_size, SOURCE, call), page_size, question.context)
        found: list[SearchResult] = []

        def making() -> Operation[Descriptor]:
            found.append((yield from _answer(question, view, stretch, copy)))
            yield from copy.finish()
            return (yield from copy.stage.commit())

        made = yield from copy.stage.kept(making())
        return found[0], made

    return (yield from afresh_if_gone(space, fd, attempt))


def _asked(pattern: str, context: int, max_matches: int, ignore_case: bool) -> _Question:
    if not isinstance(ignore_case, bool):
        raise InvalidArgument("ignore_case", "true or false is needed")
    context, max_matches = search_limits(context, max_matches)
    return _Question(pattern, Pattern(pattern, ignore_case=ignore_case), context, max_matches)


def _answer(
    question: _Question, view: View, stretch: Stretch, copy: _Copy | None = None
) -> Operation[SearchResult]:
    collector = HitCollector(question.max_matches, question.context)
    readers: list[LineReader] = [collector]
    if copy is not None:
        readers.append(copy.printer)
    scan = Scan(question.pattern, readers)

    def begins(before: tuple[int, int]) -> None:
        chars, newlines = before
        collector.next_char, scan.first_line = chars + 1, newlines + 1

    def take(run: list[bytes]) -> Operation[None]:
        data = b"".join(run)
        for start in range(0, len(data), BLOCK_BYTES):
            # not a disk, but a pattern may take as long as one: no event loop should wait for it
            yield Disk(partial(scan.feed, data[start : start + BLOCK_BYTES]))
            if copy is not None:
                yield from copy.move()

    yield from fetch_part(view, stretch, take, begins)
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
