"""Store a content: stage its pages under temporary keys, then make it visible with one script.

Pages and index are written under keys that expire; then `commit` renames them, allocates the number and
writes metadata, table and holder. So a descriptor appears whole or not at all, and a writer that dies
leaves only keys that expire.

    MULTI HSET staging:OP:pages 1 ... EXPIRE ... HSET staging:OP:index ... EXPIRE ... EXEC
    ...                                 (several requests in flight)
    EVALSHA commit                      RENAME, PERSIST, number, index's last part, metadata, table, holders

MULTI, so that no key is ever without a TTL: a writer may die between two commands. A content of up to about
250 kB is stored by one pipeline of all of these: one round trip. One of a page or so is not staged: `commit`
takes its text as an argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import chain

import msgspec

from fdstore.errors import (
    FDStoreError,
    InvalidArgument,
    QuotaExceeded,
    StoreFull,
    StoreReadOnly,
    StoreRefused,
    StoreUnavailable,
    UnknownOutcome,
)
from fdstore.model.records import ContentKind, Descriptor, Origin, Record
from fdstore.store.content_info import ContentInfo, descriptor_of
from fdstore.store.contents.page_fields import MIN_SPLIT, rest_of, split
from fdstore.store.contents.resolving import content_name, resolve
from fdstore.store.hashes import pairs
from fdstore.store.keys import content_keys
from fdstore.store.outcomes import outcome
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.record_format import decode_moment, decoding
from fdstore.store.trees.ceilings import run_with_ceilings
from fdstore.text.byte_pages import DEFAULT_BYTE_PAGE_SIZE, ByteTotals
from fdstore.text.index import IndexWriter
from fdstore.text.media_types import DEFAULT_TYPES
from fdstore.text.numbers import MAX_INTEGER
from fdstore.text.paging import DEFAULT_PAGE_SIZE, Page, encode
from fdstore.text.words import joined_words
from fdstore.wire.operation import Abandon, Batch, Operation, Receive, Send, Value, new_op
from fdstore.wire.scripts import script, text

STAGING_TTL_S = 900
"""TTL of staged keys: how long a source may pause during ingestion, and how long the keys of a dead writer
remain."""
SEND_BYTES = 250_000
"""Approximate bytes of pages in one request."""

INLINE_BYTES, INLINE_PAGES = 5_000, 32
"""A content up to this size is an argument of `commit`. Text passes slowly through Lua, but this little is
stored sooner than the commands that would stage it are read."""

AHEAD = 3
"""Requests in flight while a content is staged."""

MAX_SOURCE_CHARS = 200


class Staged(Record, frozen=True, kw_only=True):
    """A content that is being stored: its process, its source, and its bytes so far."""

    process: str
    source: str
    bytes: int


class StagedContent:
    """A content being stored: accepts pages, sends them in the background, and is committed once."""

    def __init__(
        self,
        handle: ProcessHandle,
        page_size: int,
        source: str,
        call_id: str | None,
        kind: ContentKind = "text",
    ) -> None:
        self._handle = handle
        self._page_size = page_size
        self._source = check_source(source)
        self._call_id = call_id
        self._op = new_op()
        self._pages_key, self._index_key = handle.keys.tree.staging(self._op)
        self._kind = kind
        self._index = ByteTotals() if kind == "bytes" else IndexWriter()
        self._fields: list[Value] = []
        self._waiting_bytes = self._split_pages = 0
        self._in_flight = 0
        self._is_staged = False
        self._unlisting: Batch = []
        self.is_known = False
        """True if the content that was committed is certainly this one, not that of an earlier run."""

    @property
    def size(self) -> tuple[int, int]:
        """The characters and lines added so far."""
        return self._index.chars, self._index.lines

    def add(self, pages: Sequence[Page]) -> Operation[None]:
        """Buffer the next pages; send them when the buffer is large enough."""
        first, is_text = self._index.pages + 1, self._kind == "text"
        self._index.add(pages)
        for number, page in enumerate(pages, first):
            data = page.data
            size = len(data)
            if size > MIN_SPLIT:
                data, rest = split(data, is_text=is_text)
                if rest:
                    self._split_pages += 1
                    self._fields += (rest_of(number), rest)
            self._fields += (number, data)
            self._waiting_bytes += size
            if self._waiting_bytes >= SEND_BYTES:
                yield from self._send()

    def _send(self) -> Operation[None]:
        limit = self._handle.limits.tree_bytes
        if self._index.bytes > limit:
            raise QuotaExceeded("tree_bytes", limit)
        if self._in_flight == AHEAD:
            yield from self._receive()
        yield Send(self._requests(self._listing()), "stage")
        self._in_flight += 1

    def _listing(self) -> Batch:
        """Return commands that list this content as being staged, so that `fdstore du` shows it and dropping
        the tree deletes it. A content sent whole with its commit is not listed."""
        self._unlisting = [("HDEL", self._handle.keys.tree.staged, self._op)]
        staged = Staged(process=self._handle.id, source=self._source, bytes=self._index.bytes)
        key = self._handle.keys.tree.staged
        return [("HSET", key, self._op, msgspec.json.encode(staged)), ("EXPIRE", key, STAGING_TTL_S)]

    def _requests(self, listing: Batch | None = None) -> Batch:
        """Return commands that stage what was added and not yet sent."""
        batch: Batch = []
        index_fields = [*chain.from_iterable(self._index.full_groups().items())]
        for key, fields in ((self._pages_key, self._fields), (self._index_key, index_fields)):
            if fields:
                batch += [("HSET", key, *fields), ("EXPIRE", key, STAGING_TTL_S)]
        if not batch:
            return batch
        self._fields, self._waiting_bytes = [], 0
        self._is_staged = True
        return [("MULTI",), *batch, *(listing or []), ("EXEC",)]

    def _receive(self) -> Operation[None]:
        self._in_flight -= 1
        yield Receive("stage")

    def unstage_on_error(self, work: Operation[Descriptor]) -> Operation[Descriptor]:
        """Run `work`, which stages and commits this content. If it fails, delete the staged keys
        immediately: they may be what fills a full Redis."""
        try:
            return (yield from work)
        except (StoreUnavailable, StoreRefused, StoreReadOnly, UnknownOutcome):
            raise  # the keys cannot be deleted now; they expire
        except FDStoreError:
            if self._is_staged:
                yield from self._drop()
            raise
        except (Exception, KeyboardInterrupt):  # of the source, of `progress`, or of a signal
            if self._is_staged:
                yield Abandon("stage")  # a reply may have been lost
                self._in_flight = 0
                with suppress(FDStoreError):
                    yield from self._drop()
            raise

    def _drop(self) -> Operation[None]:
        while self._in_flight:
            with suppress(StoreFull):
                yield from self._receive()
        yield [("UNLINK", self._pages_key, self._index_key), *self._unlisting]

    def commit(
        self,
        origin: Origin | None = None,
        *,
        name: str = "",
        expected: str = "",
        media_type: str | None = None,
    ) -> Operation[Descriptor]:
        """Make the content visible, under the next number or under a name, whose content it replaces if that
        is the `expected` one (see `naming`).

        Raises `Conflict`, `Fenced`, `QuotaExceeded`, `NotFound` (the process is gone).
        """
        handle, index = self._handle, self._index
        process, lines = handle.id, index.lines
        media_type = media_type or DEFAULT_TYPES[self._kind]
        while self._in_flight:
            yield from self._receive()
        pages: list[Value] = []
        if not self._is_staged and self._waiting_bytes <= INLINE_BYTES and index.pages <= INLINE_PAGES:
            pages = self._fields
        batch = [] if pages else self._requests()
        groups = index.fields()
        batch.append(
            script("commit")(
                **handle.changing_once(self._op, self._call_id),
                staged_pages=self._pages_key,
                staged_index=self._index_key,
                id=process,
                name=name,
                chars=index.chars,
                bytes_now=index.bytes,
                lines=lines,
                page_count=index.pages,
                page_size=self._page_size,
                source=self._source,
                origin=msgspec.json.encode(origin) if origin else "",
                seen_fd=handle.highest,
                expected=expected,
                kind="" if self._kind == "text" else self._kind,
                media_type="" if media_type == DEFAULT_TYPES[self._kind] else media_type,
                split=self._split_pages or "",
                words=joined_words(f"{name.partition(':')[2]} {self._source}"),
                inline_pages=len(pages) // 2,
                fields=[*pages, *chain.from_iterable(groups.items())],
            )
        )
        replies = yield from run_with_ceilings(handle, [*batch, *self._unlisting])
        reply = replies[-1 - len(self._unlisting)]
        fd, content, created_at, *new = map(text, outcome(reply, process))
        self.is_known = self._call_id is None or bool(new)
        created = created_at.encode()
        with decoding(f"the calls of process {process}"):
            created_s = decode_moment(created)
        handle.meet(fd, content, created)
        descriptor = Descriptor(
            fd=fd,
            state="sealed",
            chars=index.chars,
            bytes=index.bytes,
            lines=lines,
            pages=index.pages,
            page_size=self._page_size,
            source=self._source,
            created_at=created_s,
            producer=process,
            origin=origin,
            kind=self._kind,
            media_type=media_type,
        )
        if not self.is_known:
            # the content of an earlier run of the call, which may be another than the one staged now
            if name:  # which may mean yet another one
                [flat] = yield [("HGETALL", content_keys(handle.keys.tree, content).record)]
                with decoding(content_name(handle, fd)):
                    return descriptor_of(fd, pairs(flat)) if flat else descriptor
            info, _ = yield from resolve(handle, fd)
            return info.descriptor
        keys = content_keys(handle.keys.tree, content)
        info = ContentInfo(content, keys, descriptor, created, is_split=self._split_pages > 0)
        if "1" in groups:  # if short, it has no key of its own: see commit.lua
            info.learn(1, groups["1"].encode())
        handle.remember(fd, info)
        return descriptor


MAX_REASON_CHARS = 200
"""The maximum length of the reason of a broken stream."""


def check_source(source: object) -> str:
    """Return a valid source of a content. Raises `InvalidArgument`."""
    if not isinstance(source, str) or not source or len(source) > MAX_SOURCE_CHARS:
        raise InvalidArgument("source", f"a text of 1-{MAX_SOURCE_CHARS} characters is needed")
    encode(source)
    return source


def check_page_size(page_size: object, kind: ContentKind = "text") -> int:
    """Return a valid page size; `None` means the default of the kind. Raises `InvalidArgument`."""
    if page_size is None:
        return DEFAULT_PAGE_SIZE if kind == "text" else DEFAULT_BYTE_PAGE_SIZE
    if isinstance(page_size, bool) or not isinstance(page_size, int) or not 1 <= page_size <= MAX_INTEGER:
        raise InvalidArgument("page_size", "a whole number of characters, 1 or more, is needed")
    return page_size
