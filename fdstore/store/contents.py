"""Create, list, extract, export and close contents. `staging` stores new ones."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import BinaryIO, Literal

import msgspec

from fdstore.errors import DamagedRecord, FDStoreError, InvalidArgument, NotFound, quoted
from fdstore.files.source import next_block
from fdstore.files.target import Target, TargetIdentity
from fdstore.records import Descriptor, Export, Origin, Unreadable
from fdstore.store.content_info import EXTRACTION, ContentInfo, descriptor_of, pairs
from fdstore.store.export_quota import LEFT_AS_IT_IS, Allowance
from fdstore.store.keys import content_keys, is_content
from fdstore.store.outcomes import outcome
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.record_format import damage, decoding, replies_or_damage, show_bytes, unreadable
from fdstore.store.resolving import content_info, content_name, reads_content, resolve, retry_if_gone
from fdstore.store.spans import Span, fetch_part, locate, total_of
from fdstore.store.staging import StagedContent, check_page_size
from fdstore.text.index import TextPosition
from fdstore.text.paging import BLOCK_CHARS, Cutter, DecodeErrors, cut
from fdstore.text.selection import Part
from fdstore.wire.operation import Disk, Operation, new_op
from fdstore.wire.scripts import script, text


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


def stat(handle: ProcessHandle, fd: str) -> Operation[Descriptor]:
    """Return the current descriptor."""
    view, _ = yield from resolve(handle, fd)
    return view.descriptor


class Listing(msgspec.Struct, frozen=True):
    """Descriptors in number order, their total number, and the damaged ones that were skipped."""

    descriptors: list[Descriptor]
    total: int
    unreadable: list[Unreadable]


def list_fds(handle: ProcessHandle) -> Operation[list[Descriptor]]:
    """Return all descriptors of the process, in number order. Two round trips."""
    return (yield from listing(handle)).descriptors


def list_page(
    handle: ProcessHandle, start: int, count: int | None
) -> Operation[tuple[list[Descriptor], int]]:
    """Return up to `count` descriptors of the process in number order, from the `start`-th (1-based) on, and
    their total number. Two round trips."""
    found = yield from listing(handle, start, count)
    return found.descriptors, found.total


def listing(handle: ProcessHandle, start: int = 1, count: int | None = None) -> Operation[Listing]:
    """As `list_page`, with the skipped ones. Raises `DamagedRecord` for the table itself.

    The first round trip fetches the whole table. It is an unordered hash, and its numbers have gaps where
    descriptors were closed or named, so the first fifty can only be determined from all of them. A sorted
    set beside it would help, but every script that creates, shares, forks or drops a descriptor would have
    to maintain it, for a rare call.
    """
    [flat] = yield [("HGETALL", handle.keys.fds)]
    tree, known, damaged = handle.keys.tree, [], []
    for name, content in zip(flat[::2], flat[1::2], strict=True):
        try:
            if not (is_content(tree, content) and _ID.match(name)):
                raise ValueError(f"{show_bytes(content)} is not a content of its tree")
            known.append((text(name), text(content)))
        except ValueError as error:
            damaged.append(unreadable(damage(content_name(handle, show_bytes(name)), error)))
    table = sorted(known, key=_number)
    handle.see(*(fd for fd, _ in table))
    page = table[start - 1 :][:count]
    found: list[Descriptor] = []
    replies = yield from replies_or_damage(
        [("HGETALL", content_keys(tree, content).record) for _, content in page]
    )
    for (fd, _), reply in zip(page, replies, strict=True):
        try:
            if isinstance(reply, DamagedRecord):
                raise reply
            if reply:
                with decoding(content_name(handle, fd)):
                    found.append(descriptor_of(fd, pairs(reply)))
        except DamagedRecord as error:
            damaged.append(unreadable(error))
    return Listing(found, len(known), damaged)


_ID = re.compile(rb"fd:[1-9][0-9]{0,15}\Z|(?!fd:)[a-z]+:.")


def _number(entry: tuple[str, str]) -> int:
    # a named passage has a number too: that of its content
    fd, content = entry
    return int(fd[3:] if fd.startswith("fd:") else content.rpartition("/")[2])


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


@reads_content
def write_part(
    handle: ProcessHandle,
    fd: str,
    part: Part | None,
    write: Callable[[bytes], object],
    allowance: Allowance | None = None,
) -> Operation[int]:
    """Pass a part of a content (all of it for None) to `write`, in order and in bounded memory: each call
    gets whole characters of UTF-8, after the `allowance` has reserved room for them. Return the number of
    characters."""
    chars = 0

    def take(run: list[bytes]) -> Operation[None]:
        nonlocal chars
        data = b"".join(run)
        chars += len(data) if data.isascii() else len(data.decode("utf-8"))
        if allowance:
            yield from allowance.add(len(data))
        yield Disk(lambda: write(data), must_end=True)

    try:
        view, span = yield from part_of(handle, fd, part)
        yield from fetch_part(view, span, take)
    except NotFound:
        if handle.known(fd) is not None:
            yield from resolve(handle, fd)  # raises an error that names the existing descriptors
        raise
    return chars


@reads_content
def export(
    handle: ProcessHandle,
    fd: str,
    part: Part | None,
    target: Target,
    mode: Literal["write", "append"],
    progress: Callable[[int], None] | None = None,
    plan: Callable[[TargetIdentity, Export], Operation[None]] | None = None,
    allowance: Allowance | None = None,
) -> Operation[Export]:
    """Write a part of a content (all of it for None) to a file, exactly, in bounded memory. `progress` is
    called with the bytes written so far, `plan` before the file is renamed into place. `allowance` reserves
    the bytes before they are written, and may refuse."""

    def attempt() -> Operation[Export]:
        if allowance:
            size_bytes = None if part else (yield from content_info(handle, fd)).descriptor.bytes
            yield from allowance.begin(size_bytes)
        return (yield from _export(handle, fd, part, target, mode, progress, plan, allowance))

    try:
        return (yield from retry_if_gone(handle, fd, attempt))
    except LEFT_AS_IT_IS:
        raise
    except FDStoreError:
        if allowance:
            yield from allowance.refund()
        raise


def _export(
    handle: ProcessHandle,
    fd: str,
    part: Part | None,
    target: Target,
    mode: Literal["write", "append"],
    progress: Callable[[int], None] | None,
    plan: Callable[[TargetIdentity, Export], Operation[None]] | None,
    allowance: Allowance | None,
) -> Operation[Export]:
    written = 0

    def write(data: bytes) -> None:
        nonlocal written
        target.write(data)
        written += len(data)
        if progress:
            progress(written)

    try:
        # inside the try: if a cancellation arrives during __enter__, __exit__ still releases the file
        yield Disk(target.__enter__, must_end=True)
        chars = yield from write_part(handle, fd, part, write, allowance)
        if allowance:
            yield from allowance.settle()
        mark: TargetIdentity = yield Disk(target.mark, must_end=True)
        done = Export(fd=fd, file_path=target.path, mode=mode, char_count=chars, size_bytes=mark.size_bytes)
        if plan:
            yield from plan(mark, done)
        yield Disk(target.commit, must_end=True)
    finally:
        target.__exit__(None, None, None)
    return done


def close(handle: ProcessHandle, fd: str, *, call_id: str | None = None) -> Operation[None]:
    """Drop a descriptor; its content is deleted with the last holder."""
    answer_key, answer_field = handle.answer_slot(new_op(), call_id)
    keys = (handle.keys.tree.record, handle.keys.record, handle.keys.fds, answer_key)
    [reply] = yield [script("close")(keys, answer_field, handle.attempt, handle.id, fd)]
    handle.forget(fd)
    outcome(reply, handle.id)
