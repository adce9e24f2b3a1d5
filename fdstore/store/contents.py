"""Create contents, from text, files and parts of others. `staging` stores them."""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO

from fdstore.errors import InvalidArgument, quoted
from fdstore.files.source import next_block
from fdstore.records import Descriptor, Origin
from fdstore.store.content_info import EXTRACTION, ContentInfo
from fdstore.store.locating import Span, fetch_part, locate, total_of
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.resolving import content_info, reads_content, retry_if_gone
from fdstore.store.staging import StagedContent, check_page_size
from fdstore.text.index import TextPosition
from fdstore.text.paging import BLOCK_CHARS, Cutter, DecodeErrors, cut
from fdstore.text.selection import Part
from fdstore.wire.operation import Disk, Operation


def create(
    handle: ProcessHandle,
    content: str,
    source: str,
    page_size: int | None = None,
    *,
    name: str = "",
    call_id: str | None = None,
) -> Operation[Descriptor]:
    """Store a text that is in memory."""
    if not isinstance(content, str):
        raise InvalidArgument(
            "text", f"a str is needed, not {quoted(content)}; use ingest for bytes and files"
        )
    size = check_page_size(page_size)
    stage = StagedContent(handle, size, source, call_id)

    def store() -> Operation[Descriptor]:
        for pages in cut(content, size):
            yield from stage.add(pages)
        return (yield from stage.commit(name=name))

    return (yield from stage.unstage_on_error(store()))


def ingest(
    handle: ProcessHandle,
    file: BinaryIO,
    source: str,
    page_size: int | None = None,
    errors: DecodeErrors = "strict",
    progress: Callable[[int], None] | None = None,
    *,
    call_id: str | None = None,
) -> Operation[Descriptor]:
    """Store the text of a binary file, in bounded memory. `progress` is called with the bytes read so far."""
    size = check_page_size(page_size)
    if errors not in ("strict", "backslashreplace"):
        raise InvalidArgument("errors", "use strict or backslashreplace")
    stage = StagedContent(handle, size, source, call_id)

    def store() -> Operation[Descriptor]:
        cutter = Cutter(size, errors)
        read = 0
        while block := (yield Disk(lambda: next_block(file, BLOCK_CHARS))):
            yield from stage.add(cutter.feed(block))
            read += len(block)
            if progress:
                progress(read)
        yield from stage.add(cutter.finish())
        return (yield from stage.commit())

    return (yield from stage.unstage_on_error(store()))


@reads_content
def extract(
    handle: ProcessHandle,
    fd: str,
    part: Part | None,
    *,
    page_size: int | None = None,
    call_id: str | None = None,
) -> Operation[Descriptor]:
    """Store a part of a content (all of it for None) as a new content, which records its origin."""
    return (yield from retry_if_gone(handle, fd, lambda: _extract(handle, fd, part, page_size, call_id)))


def _extract(
    handle: ProcessHandle, fd: str, part: Part | None, page_size: int | None, call_id: str | None
) -> Operation[Descriptor]:
    view, span = yield from part_of(handle, fd, part)
    source = view.descriptor
    size = source.page_size if page_size is None else check_page_size(page_size)
    stage = StagedContent(handle, size, EXTRACTION, call_id)
    cutter = Cutter(size)
    head: list[tuple[int, int]] = []

    def take(run: list[bytes]) -> Operation[None]:
        yield from stage.add(cutter.feed(b"".join(run)))

    def store() -> Operation[Descriptor]:
        yield from fetch_part(view, span, take, head.append)
        yield from stage.add(cutter.finish())
        [(chars_before, newlines_before)] = head
        return (yield from stage.commit(_origin(view, chars_before, newlines_before, stage)))

    return (yield from stage.unstage_on_error(store()))


def _origin(view: ContentInfo, chars_before: int, newlines_before: int, stage: StagedContent) -> Origin:
    chars, lines = stage.size
    content, fd = view.content, view.descriptor.fd
    first = view.descriptor.origin
    if first is not None:
        # the source is itself an extraction: give the position in its origin
        content, fd = first.content, first.fd
        chars_before += max(int(first.chars.partition("-")[0]) - 1, 0)
        newlines_before += max(int(first.lines.partition("-")[0]) - 1, 0)
    empty = chars == 0
    return Origin(
        content=content,
        fd=fd,
        chars="0-0" if empty else f"{chars_before + 1}-{chars_before + chars}",
        lines="0-0" if empty else f"{newlines_before + 1}-{newlines_before + lines}",
    )


@reads_content
def part_of(handle: ProcessHandle, fd: str, part: Part | None) -> Operation[tuple[ContentInfo, Span]]:
    """Locate a part of a content; None means all of it."""
    if part is not None:
        return (yield from locate(handle, fd, part))
    view = yield from content_info(handle, fd)
    pages = view.descriptor.pages
    everything = Part("page", 1, total_of(view.descriptor, "page"))
    return view, Span(everything, TextPosition(1, 0, 0, False), TextPosition(pages, 0, 0, False))
