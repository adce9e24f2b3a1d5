"""Create contents, from text, files and parts of others. `staging` stores them."""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO, Literal, NamedTuple

from fdstore.errors import InvalidArgument, quoted
from fdstore.files.source import next_block
from fdstore.model.records import ContentKind, Descriptor, Origin
from fdstore.store.content_info import EXTRACTION, ContentInfo
from fdstore.store.contents.locating import PageSpan, fetch_part, locate, total_of
from fdstore.store.contents.resolving import content_info, reads_content, retry_if_gone
from fdstore.store.contents.staging import StagedContent, check_page_size
from fdstore.store.process_handle import ProcessHandle
from fdstore.text.byte_pages import ByteCutter, cut_bytes
from fdstore.text.index import TextPosition
from fdstore.text.media_types import DEFAULT_TYPES, check_media_type, media_type_of
from fdstore.text.names import NAME
from fdstore.text.paging import BLOCK_CHARS, Cutter, cut
from fdstore.text.selection import AnyPart, Part
from fdstore.wire.operation import Disk, Operation

IngestErrors = Literal["strict", "backslashreplace", "bytes"]
"""Refuse a file that is not UTF-8, escape its invalid bytes, or store any file as bytes."""


def create(
    handle: ProcessHandle,
    content: str | bytes,
    source: str | None = None,
    page_size: int | None = None,
    *,
    media_type: str | None = None,
    name: str = "",
    expected: str = "",
    call_id: str | None = None,
) -> Operation[Descriptor]:
    """Store a text or bytes that are in memory, under the next number or under a name (see `naming`)."""
    created = yield from create_or_recall(
        handle,
        content,
        source,
        page_size,
        media_type=media_type,
        name=name,
        expected=expected,
        call_id=call_id,
    )
    return created.descriptor


class Created(NamedTuple):
    """A stored content. `is_known`: it is certainly the one that was given, not that of an earlier run of the
    call, which may have been another."""

    descriptor: Descriptor
    is_known: bool


def create_or_recall(
    handle: ProcessHandle,
    content: str | bytes,
    source: str | None = None,
    page_size: int | None = None,
    *,
    media_type: str | None = None,
    name: str = "",
    expected: str = "",
    call_id: str | None = None,
) -> Operation[Created]:
    """Store a content as `create` does, and return whether it is what was given."""
    kind: ContentKind = "text" if isinstance(content, str) else "bytes"
    if isinstance(content, (bytearray, memoryview)):
        content = bytes(content)
    if not isinstance(content, (str, bytes)):
        raise InvalidArgument(
            "content", f"a str or bytes is needed, not {quoted(content)}; use ingest for files"
        )
    size = check_page_size(page_size, kind)
    if media_type is not None:
        media_type = check_media_type(media_type)
    else:
        head = content if isinstance(content, bytes) else b""
        media_type = media_type_of(kind, _key(name), head)
    stage = StagedContent(handle, size, kind if source is None else source, call_id, kind)

    def store() -> Operation[Descriptor]:
        for pages in cut(content, size) if isinstance(content, str) else cut_bytes(content, size):
            yield from stage.add(pages)
        return (yield from stage.commit(name=name, expected=expected, media_type=media_type))

    descriptor = yield from stage.unstage_on_error(store())
    return Created(descriptor, stage.is_known)


def _key(name: str) -> str:
    return name.removeprefix(NAME) if name.startswith(NAME) else ""


def ingest(
    handle: ProcessHandle,
    file: BinaryIO,
    source: str,
    page_size: int | None = None,
    errors: IngestErrors = "strict",
    progress: Callable[[int], None] | None = None,
    *,
    media_type: str | None = None,
    name: str = "",
    expected: str = "",
    call_id: str | None = None,
) -> Operation[Descriptor]:
    """Store a binary file in bounded memory: as text, or with errors="bytes" as bytes. `progress` is called
    with the bytes read so far. The media type is given, else that of the name, else that of the source."""
    if errors not in ("strict", "backslashreplace", "bytes"):
        raise InvalidArgument("errors", "use strict, backslashreplace or bytes")
    kind: ContentKind = "bytes" if errors == "bytes" else "text"
    size = check_page_size(page_size, kind)
    if media_type is not None:
        media_type = check_media_type(media_type)
    stage = StagedContent(handle, size, source, call_id, kind)

    def store() -> Operation[Descriptor]:
        cutter = ByteCutter(size) if errors == "bytes" else Cutter(size, errors)
        found = media_type
        read = 0
        while block := (yield Disk(lambda: next_block(file, BLOCK_CHARS))):
            found = found or _type_of_file(kind, name, source, block)
            yield from stage.add(cutter.feed(block))
            read += len(block)
            if progress:
                progress(read)
        yield from stage.add(cutter.finish())
        found = found or _type_of_file(kind, name, source, b"")
        return (yield from stage.commit(name=name, expected=expected, media_type=found))

    return (yield from stage.unstage_on_error(store()))


def _type_of_file(kind: ContentKind, name: str, source: str, head: bytes) -> str:
    found = media_type_of(kind, _key(name), head)
    return media_type_of(kind, source, head) if found == DEFAULT_TYPES[kind] else found


@reads_content
def extract(
    handle: ProcessHandle,
    fd: str,
    part: AnyPart | None,
    *,
    page_size: int | None = None,
    call_id: str | None = None,
) -> Operation[Descriptor]:
    """Store a part of a content (all of it for None) as a new content, which records its origin."""
    return (yield from retry_if_gone(handle, fd, lambda: _extract(handle, fd, part, page_size, call_id)))


def _extract(
    handle: ProcessHandle, fd: str, part: AnyPart | None, page_size: int | None, call_id: str | None
) -> Operation[Descriptor]:
    info, span = yield from part_of(handle, fd, part)
    source = info.descriptor
    size = source.page_size if page_size is None else check_page_size(page_size)
    stage = StagedContent(handle, size, EXTRACTION, call_id)
    cutter = Cutter(size)
    head: list[tuple[int, int]] = []

    def take(run: list[bytes]) -> Operation[None]:
        yield from stage.add(cutter.feed(b"".join(run)))

    def store() -> Operation[Descriptor]:
        yield from fetch_part(info, span, take, head.append)
        yield from stage.add(cutter.finish())
        [(chars_before, newlines_before)] = head
        return (yield from stage.commit(_origin(info, chars_before, newlines_before, stage)))

    return (yield from stage.unstage_on_error(store()))


def _origin(info: ContentInfo, chars_before: int, newlines_before: int, stage: StagedContent) -> Origin:
    chars, lines = stage.size
    content, fd = info.content, info.descriptor.fd
    first = info.descriptor.origin
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
def part_of(handle: ProcessHandle, fd: str, part: AnyPart | None) -> Operation[tuple[ContentInfo, PageSpan]]:
    """Locate a part of a text; None means all of it. Raises `NotText`."""
    if part is not None:
        return (yield from locate(handle, fd, part))
    info, span = yield from whole_of(handle, fd)
    info.require_text()
    return info, span


def whole_of(handle: ProcessHandle, fd: str) -> Operation[tuple[ContentInfo, PageSpan]]:
    """Return the span of a whole content, text or bytes."""
    info = yield from content_info(handle, fd)
    pages = info.descriptor.pages
    everything = Part("page", 1, total_of(info.descriptor, "page"))
    return info, PageSpan(everything, TextPosition(1, 0, 0, False), TextPosition(pages, 0, 0, False))
