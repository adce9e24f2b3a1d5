"""Making, copying out and dropping contents.

A new content is *staged*: its pages and index go under keys that expire by themselves, then one
script moves them to their place, numbers the descriptor and writes metadata, table and holder. So a
descriptor appears whole or not at all, and a writer that dies leaves nothing.

    HSET staging:OP:pages 1 ... 2 ...   (several requests on their way at once)
    HSET staging:OP:index 1 ...
    EVALSHA commit                      RENAME, PERSIST, number, metadata, table, holders

A small content is all of that in one pipeline: one round trip.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import BinaryIO, Literal

import msgspec

from fdstore.errors import InvalidArgument, QuotaExceeded, quoted
from fdstore.files import Target
from fdstore.inputs import next_block
from fdstore.records import Descriptor, Export, Origin
from fdstore.store.keys import content_keys
from fdstore.store.operation import Batch, Disk, Operation, Receive, Send, Value, new_op
from fdstore.store.reading import Stretch, fetch_part, locate, total_of
from fdstore.store.scripts import outcome, script, text
from fdstore.store.views import Namespace, View, afresh_if_gone, descriptor_of, look, pairs, view_of
from fdstore.text.index import IndexWriter, Place
from fdstore.text.paging import BLOCK_CHARS, Cutter, DecodeErrors, Page, cut, encode
from fdstore.text.selection import Part

DEFAULT_PAGE_SIZE = 4000
"""Characters of a page, unless somebody chose otherwise."""

STAGING_TTL_S = 900
"""How long a source may pause while it is ingested, and what a writer that died leaves lies about."""
SEND_BYTES = 700_000
"""About how many bytes of pages one request carries."""

AHEAD = 3
"""Requests on their way at once while a content is staged."""

MAX_SOURCE_CHARS = 200


class Stage:
    """A content being made: takes pages, sends them ahead, and is committed once."""

    def __init__(self, space: Namespace, page_size: int, source: str, call: str | None) -> None:
        self._space = space
        self._page_size = page_size
        self._source = check_source(source)
        self._call = call
        self._op = new_op()
        self._pages_key, self._index_key = space.keys.tree.staging(self._op)
        self._index = IndexWriter()
        self._fields: list[Value] = []
        self._waiting_bytes = 0
        self._on_their_way = 0

    @property
    def size(self) -> tuple[int, int]:
        """Characters and lines taken so far."""
        return self._index.chars, self._index.lines

    def add(self, pages: Iterable[Page]) -> Operation[None]:
        """Takes the next pages; sends them when enough have come together."""
        pages = list(pages)
        number = self._index.pages
        self._index.add(pages)
        for page in pages:
            number += 1
            self._fields += (number, page.data)
            self._waiting_bytes += len(page.data)
            if self._waiting_bytes >= SEND_BYTES:
                yield from self._send()

    def _send(self) -> Operation[None]:
        limit = self._space.limits.tree_bytes
        if self._index.bytes > limit:
            raise QuotaExceeded("tree_bytes", limit)
        if self._on_their_way == AHEAD:
            yield Receive("stage")
            self._on_their_way -= 1
        yield Send(self._requests(self._index.full_groups()), "stage")
        self._on_their_way += 1

    def _requests(self, groups: dict[str, str]) -> Batch:
        batch: Batch = []
        if self._fields:
            batch += [("HSET", self._pages_key, *self._fields), ("EXPIRE", self._pages_key, STAGING_TTL_S)]
        if groups:
            entries = [part for entry in groups.items() for part in entry]
            batch += [("HSET", self._index_key, *entries), ("EXPIRE", self._index_key, STAGING_TTL_S)]
        self._fields, self._waiting_bytes = [], 0
        return batch

    def commit(self, origin: Origin | None = None, name: str = "") -> Operation[Descriptor]:
        """Makes the content visible, under the next number or under `ref:NAME`.

        Raises `Fenced`, `QuotaExceeded`, `NotFound` (the process is gone).
        """
        space, index = self._space, self._index
        for _ in range(self._on_their_way):
            yield Receive("stage")
        answer_key, answer_field = space.answer_slot(self._op, self._call)
        keys = (space.keys.tree.record, space.keys.record, space.keys.fds)
        batch = self._requests(index.fields())
        batch.append(
            script("commit")(
                (*keys, self._pages_key, self._index_key, answer_key),
                *(answer_field, space.attempt, space.id, name),
                *(index.chars, index.bytes, index.lines, index.pages, self._page_size, self._source),
                msgspec.json.encode(origin) if origin else "",
            )
        )
        *_, reply = yield batch
        fd, content, created_at = map(text, outcome(reply, space.id))
        descriptor = Descriptor(
            fd=fd,
            state="sealed",
            chars=index.chars,
            bytes=index.bytes,
            lines=index.lines,
            pages=index.pages,
            page_size=self._page_size,
            source=self._source,
            created_at=float(created_at),
            producer=space.id,
            origin=origin,
        )
        if self._call is not None:
            # the call may have been answered before, with another content than the one staged now
            view, _ = yield from look(space, fd)
            return view.descriptor
        space.remember(fd, View(content, content_keys(space.keys.tree, content), descriptor))
        return descriptor


def check_source(source: object) -> str:
    """What a content may say of where it comes from. Raises `InvalidArgument`."""
    if not isinstance(source, str) or not source or len(source) > MAX_SOURCE_CHARS:
        raise InvalidArgument("source", f"a text of 1-{MAX_SOURCE_CHARS} characters is needed")
    encode(source)
    return source


def check_page_size(page_size: object) -> int:
    """A page size that can be used; `None` means the default. Raises `InvalidArgument`."""
    if page_size is None:
        return DEFAULT_PAGE_SIZE
    if isinstance(page_size, bool) or not isinstance(page_size, int) or not 1 <= page_size <= 2**53:
        raise InvalidArgument("page_size", "a whole number of characters, 1 or more, is needed")
    return page_size


def create(
    space: Namespace,
    content: str,
    source: str,
    page_size: int | None = None,
    *,
    name: str = "",
    call: str | None = None,
) -> Operation[Descriptor]:
    """Stores a text that is in memory."""
    if not isinstance(content, str):
        raise InvalidArgument(
            "text", f"a str is needed, not {quoted(content)}; use ingest for bytes and files"
        )
    size = check_page_size(page_size)
    stage = Stage(space, size, source, call)
    for pages in cut(content, size):
        yield from stage.add(pages)
    return (yield from stage.commit(name=name))


def ingest(
    space: Namespace,
    file: BinaryIO,
    source: str,
    page_size: int | None = None,
    errors: DecodeErrors = "strict",
    progress: Callable[[int], None] | None = None,
    *,
    call: str | None = None,
) -> Operation[Descriptor]:
    """Stores what a binary file holds, in bounded memory. `progress` is told the bytes read so far."""
    size = check_page_size(page_size)
    if errors not in ("strict", "backslashreplace"):
        raise InvalidArgument("errors", "use strict or backslashreplace")
    stage = Stage(space, size, source, call)
    cutter = Cutter(size, errors)
    read = 0
    while block := (yield Disk(lambda: next_block(file, BLOCK_CHARS))):
        yield from stage.add(cutter.feed(block))
        read += len(block)
        if progress:
            progress(read)
    yield from stage.add(cutter.finish())
    return (yield from stage.commit())


def stat(space: Namespace, fd: str) -> Operation[Descriptor]:
    """The descriptor as it is now."""
    view, _ = yield from look(space, fd)
    return view.descriptor


def listed(space: Namespace) -> Operation[list[Descriptor]]:
    """All descriptors of the process, in number order. Two round trips."""
    [flat] = yield [("HGETALL", space.keys.fds)]
    table = sorted(pairs(flat).items(), key=_number)
    if not table:
        return []
    tree = space.keys.tree
    replies = yield [("HGETALL", content_keys(tree, content).record) for _, content in table]
    return [
        descriptor_of(fd, pairs(fields)) for (fd, _), fields in zip(table, replies, strict=True) if fields
    ]


def _number(entry: tuple[str, str]) -> int:
    # a named passage took a number too: that of its content
    fd, content = entry
    return int(fd[3:] if fd.startswith("fd:") else content.rpartition("/")[2])


def extract(
    space: Namespace,
    fd: str,
    wanted: Part | None,
    *,
    page_size: int | None = None,
    call: str | None = None,
) -> Operation[Descriptor]:
    """A new content that is a part of another (all of it for None); it knows where it came from."""
    return (yield from afresh_if_gone(space, fd, lambda: _extract(space, fd, wanted, page_size, call)))


def _extract(
    space: Namespace, fd: str, wanted: Part | None, page_size: int | None, call: str | None
) -> Operation[Descriptor]:
    view, stretch = yield from part_of(space, fd, wanted)
    source = view.descriptor
    size = source.page_size if page_size is None else check_page_size(page_size)
    stage = Stage(space, size, "extraction", call)
    cutter = Cutter(size)
    head: list[tuple[int, int]] = []

    def take(run: list[bytes]) -> Operation[None]:
        yield from stage.add(cutter.feed(b"".join(run)))

    yield from fetch_part(view, stretch, take, head.append)
    yield from stage.add(cutter.finish())
    [(chars_before, newlines_before)] = head
    origin = _origin(view, chars_before, newlines_before, stage)
    return (yield from stage.commit(origin))


def _origin(view: View, chars_before: int, newlines_before: int, stage: Stage) -> Origin:
    chars, lines = stage.size
    content, fd = view.content, view.descriptor.fd
    first = view.descriptor.origin
    if first is not None:
        # the source is itself cut from something: say where in that
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


def part_of(space: Namespace, fd: str, wanted: Part | None) -> Operation[tuple[View, Stretch]]:
    """Where a part of a content is; None means all of it."""
    if wanted is not None:
        return (yield from locate(space, fd, wanted))
    view = yield from view_of(space, fd)
    pages = view.descriptor.pages
    everything = Part("page", 1, total_of(view.descriptor, "page"))
    return view, Stretch(everything, Place(1, 0, 0, False), Place(pages, 0, 0, False))


def copy_out(
    space: Namespace, fd: str, wanted: Part | None, write: Callable[[bytes], object]
) -> Operation[int]:
    """Gives a part of a content (all of it for None) to `write`, in order and in bounded memory: each
    time some whole characters of UTF-8. Returns how many characters there were."""
    view, stretch = yield from part_of(space, fd, wanted)
    chars = 0

    def take(run: list[bytes]) -> Operation[None]:
        nonlocal chars
        data = b"".join(run)
        chars += len(data) if data.isascii() else len(data.decode("utf-8"))
        yield Disk(lambda: write(data))

    yield from fetch_part(view, stretch, take)
    return chars


def export(
    space: Namespace,
    fd: str,
    wanted: Part | None,
    target: Target,
    mode: Literal["write", "append"],
    progress: Callable[[int], None] | None = None,
) -> Operation[Export]:
    """Writes a part of a content (all of it for None) to a file, exactly, in bounded memory.
    `progress` is told the bytes written so far."""
    return (yield from afresh_if_gone(space, fd, lambda: _export(space, fd, wanted, target, mode, progress)))


def _export(
    space: Namespace,
    fd: str,
    wanted: Part | None,
    target: Target,
    mode: Literal["write", "append"],
    progress: Callable[[int], None] | None,
) -> Operation[Export]:
    written = 0

    def write(data: bytes) -> None:
        nonlocal written
        target.write(data)
        written += len(data)
        if progress:
            progress(written)

    yield Disk(target.__enter__)
    try:
        chars = yield from copy_out(space, fd, wanted, write)
        size = yield Disk(target.commit)
    finally:
        target.__exit__(None, None, None)
    return Export(fd=fd, file_path=target.path, mode=mode, char_count=chars, size_bytes=size)


def close(space: Namespace, fd: str, *, call: str | None = None) -> Operation[None]:
    """Drops a descriptor; the content lives while anybody holds it."""
    answer_key, answer_field = space.answer_slot(new_op(), call)
    keys = (space.keys.tree.record, space.keys.record, space.keys.fds, answer_key)
    [reply] = yield [script("close")(keys, answer_field, space.attempt, space.id, fd)]
    space.forget(fd)
    outcome(reply, space.id)
