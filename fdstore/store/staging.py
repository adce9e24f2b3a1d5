"""A content being made: staged out of sight, then made visible by one script.

Its pages and index go under keys that expire by themselves; then `commit` moves them to their place,
numbers the descriptor and writes metadata, table and holder. So a descriptor appears whole or not at
all, and a writer that dies leaves nothing that does not go by itself.

    MULTI HSET staging:OP:pages 1 ... EXPIRE ... HSET staging:OP:index ... EXPIRE ... EXEC
    ...                                 (several requests on their way at once)
    EVALSHA commit                      RENAME, PERSIST, number, index's last part, metadata, table, holders

MULTI, so that no key is ever without its time to live: a writer may die between two commands. A small
content is all of that in one pipeline: one round trip.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

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
from fdstore.records import Descriptor, Origin, Record
from fdstore.store.ceilings import beside
from fdstore.store.content_info import ContentInfo, ProcessHandle, resolve
from fdstore.store.keys import content_keys
from fdstore.store.outcomes import outcome
from fdstore.text.index import IndexWriter
from fdstore.text.numbers import MAX_INTEGER
from fdstore.text.paging import Page, encode
from fdstore.wire.operation import Abandon, Batch, Operation, Receive, Send, Value, new_op
from fdstore.wire.scripts import script, text

DEFAULT_PAGE_SIZE = 4000
"""Characters of a page, unless somebody chose otherwise."""

STAGING_TTL_S = 900
"""How long a source may pause while it is ingested, and what a writer that died leaves lies about."""
SEND_BYTES = 250_000
"""About how many bytes of pages one request carries."""

AHEAD = 3
"""Requests on their way at once while a content is staged."""

MAX_SOURCE_CHARS = 200


class Staged(Record, frozen=True, kw_only=True):
    """A content that is being stored: for which process, from where, and how many bytes so far."""

    process: str
    source: str
    bytes: int


class StagedContent:
    """A content being made: takes pages, sends them ahead, and is committed once."""

    def __init__(self, handle: ProcessHandle, page_size: int, source: str, call_id: str | None) -> None:
        self._handle = handle
        self._page_size = page_size
        self._source = check_source(source)
        self._call_id = call_id
        self._op = new_op()
        self._pages_key, self._index_key = handle.keys.tree.staging(self._op)
        self._index = IndexWriter()
        self._fields: list[Value] = []
        self._waiting_bytes = 0
        self._on_their_way = 0
        self._is_staged = self._is_listed = False

    @property
    def size(self) -> tuple[int, int]:
        """Characters and lines taken so far."""
        return self._index.chars, self._index.lines

    def add(self, pages: Iterable[Page]) -> Operation[None]:
        """Takes the next pages; sends them when enough have come together."""
        pages = list(pages)
        first = self._index.pages + 1
        self._index.add(pages)
        for number, page in enumerate(pages, first):
            self._fields += (number, page.data)
            self._waiting_bytes += len(page.data)
            if self._waiting_bytes >= SEND_BYTES:
                yield from self._send()

    def _send(self) -> Operation[None]:
        limit = self._handle.limits.tree_bytes
        if self._index.bytes > limit:
            raise QuotaExceeded("tree_bytes", limit)
        if self._on_their_way == AHEAD:
            yield from self._arrived()
        yield Send(self._requests(self._index.full_groups(), self._listing()), "stage")
        self._on_their_way += 1

    def _listing(self) -> Batch:
        """Say what is staged, so that people find what takes memory, and it goes with a tree that is dropped.
        A content that is sent whole with its commit is not worth that."""
        self._is_listed = True
        staged = Staged(process=self._handle.id, source=self._source, bytes=self._index.bytes)
        key = self._handle.keys.tree.staged
        return [("HSET", key, self._op, msgspec.json.encode(staged)), ("EXPIRE", key, STAGING_TTL_S)]

    def _requests(self, groups: dict[str, str], listing: Batch | None = None) -> Batch:
        batch: Batch = []
        for key, fields in ((self._pages_key, self._fields), (self._index_key, _flat(groups))):
            if fields:
                batch += [("HSET", key, *fields), ("EXPIRE", key, STAGING_TTL_S)]
        if not batch:
            return batch
        self._fields, self._waiting_bytes = [], 0
        self._is_staged = True
        return [("MULTI",), *batch, *(listing or []), ("EXEC",)]

    def _arrived(self) -> Operation[None]:
        self._on_their_way -= 1
        yield Receive("stage")

    def kept(self, making: Operation[Descriptor]) -> Operation[Descriptor]:
        """What `making` makes of this stage. If it fails, what was staged goes at once: it may be what
        makes a full Redis full."""
        try:
            return (yield from making)
        except (StoreUnavailable, StoreRefused, StoreReadOnly, UnknownOutcome):
            raise  # then it goes by itself
        except FDStoreError:
            if self._is_staged:
                yield from self._drop()
            raise
        except KeyboardInterrupt:
            if self._is_staged:
                yield Abandon("stage")  # it may have lost a reply
                self._on_their_way = 0
                with suppress(FDStoreError):
                    yield from self._drop()
            raise

    def _drop(self) -> Operation[None]:
        while self._on_their_way:
            with suppress(StoreFull):
                yield from self._arrived()
        yield [("UNLINK", self._pages_key, self._index_key), *self._unlisting()]

    def _unlisting(self) -> Batch:
        return [("HDEL", self._handle.keys.tree.staged, self._op)] if self._is_listed else []

    def commit(self, origin: Origin | None = None, name: str = "") -> Operation[Descriptor]:
        """Makes the content visible, under the next number or under `ref:NAME`.

        Raises `Fenced`, `QuotaExceeded`, `NotFound` (the process is gone).
        """
        handle, index = self._handle, self._index
        while self._on_their_way:
            yield from self._arrived()
        answer_key, answer_field = handle.answer_slot(self._op, self._call_id)
        keys = (handle.keys.tree.record, handle.keys.record, handle.keys.fds)
        batch = self._requests(index.full_groups())
        batch.append(
            script("commit")(
                (*keys, self._pages_key, self._index_key, answer_key),
                *(answer_field, handle.attempt, handle.id, name),
                *(index.chars, index.bytes, index.lines, index.pages, self._page_size, self._source),
                *(msgspec.json.encode(origin) if origin else "", handle.highest),
                *_flat(index.fields()),
            )
        )
        unlisting = self._unlisting()
        replies = yield from beside(handle, [*batch, *unlisting])
        reply = replies[-1 - len(unlisting)]
        fd, content, created_at = map(text, outcome(reply, handle.id))
        created = created_at.encode()
        handle.meet(fd, content, created)
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
            producer=handle.id,
            origin=origin,
        )
        if self._call_id is not None:
            # the call may have been answered before, with another content than the one staged now
            view, _ = yield from resolve(handle, fd)
            return view.descriptor
        handle.remember(
            fd, ContentInfo(content, content_keys(handle.keys.tree, content), descriptor, created)
        )
        return descriptor


def _flat(groups: dict[str, str]) -> list[Value]:
    return [part for entry in groups.items() for part in entry]


MAX_REASON_CHARS = 200
"""The longest reason that a stream breaks off with."""


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
    if isinstance(page_size, bool) or not isinstance(page_size, int) or not 1 <= page_size <= MAX_INTEGER:
        raise InvalidArgument("page_size", "a whole number of characters, 1 or more, is needed")
    return page_size
