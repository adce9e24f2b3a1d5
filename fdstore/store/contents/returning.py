"""Read cold contents, and bring back those that are read again and again.

A content that is read `READS` times in a minute comes back while Redis has room for it: its reader unpacks
its index, stages the pages, as those of a new content, and one script makes them its pages again. The object
is kept for some minutes, for readers that are about to fetch a range of it. A large content is brought back
by the sweep, since its reader would wait for all of it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from fdstore.errors import DamagedRecord, FDStoreError
from fdstore.store.content_info import ContentInfo
from fdstore.store.contents.cold_pages import read_pages
from fdstore.store.contents.page_fields import MIN_SPLIT, rest_of, split
from fdstore.store.contents.resolving import group_with
from fdstore.store.keys import in_bounded_pieces, in_pieces
from fdstore.store.objects.checksums import has_index
from fdstore.store.objects.records import tree_of
from fdstore.store.outcomes import outcome
from fdstore.store.record_format import UNREADABLE
from fdstore.telemetry.counts import count
from fdstore.text.index import GROUP_PAGES
from fdstore.wire.operation import Operation, Upkeep, Value, new_op
from fdstore.wire.scripts import script

READS, WITHIN_S = 3, 60
"""So many reads within so many seconds bring a content back."""

ROOM = 0.75
"""Up to this share of maxmemory."""

AT_ONCE_BYTES = 16_000_000
"""A content up to this size is brought back by its reader, a larger one by the sweep."""

RANGE_BYTES = 4_000_000
"""About what one request of a long read fetches."""

OBJECT_KEPT_S = 300
"""How long the object of a content that came back is kept."""

WANTED_S = 3600
"""How long the sweep may take until it brings a large content back."""

STAGED_FOR_S = 900
SEND_BYTES, SEND_FIELDS = 250_000, 2000

GROUPS_AT_ONCE = 100
"""Fields of an index, each of some 2 kB, that one step replaces."""

Take = Callable[[list[bytes]], Operation[None]]


def read_missing(info: ContentInfo, pages: range, created: bytes | None) -> Operation[list[bytes]]:
    """Return pages that Redis did not have, and count the read. One range request, and two round trips.

    Raises `ContentGone`, `StoreLostData`, `ObjectStoreUnavailable`.
    """
    found = yield from read_pages(info, pages, created)
    yield from _note_read(info)
    return found


def fetch_cold(info: ContentInfo, pages: range, created: bytes | None, take: Take) -> Operation[None]:
    """Pass pages that Redis did not have to `take` in order, with a range request for some `RANGE_BYTES`
    each. They count as one read. Raises as `read_missing`."""
    for run in runs_of(info, pages):
        yield from take((yield from read_pages(info, run, created)))
    yield from _note_read(info)


def runs_of(info: ContentInfo, pages: range) -> list[range]:
    """Cut pages into runs of about `RANGE_BYTES`."""
    d = info.descriptor
    step = max(1, RANGE_BYTES * d.pages // max(d.bytes, 1))
    return [pages[at : at + step] for at in range(0, len(pages), step)]


def _note_read(info: ContentInfo) -> Operation[None]:
    """Count a read, and bring the content back if that were `READS` in a minute. Nothing of it is the
    reader's: it goes without, where nothing can be written."""
    count("fdstore_cold_reads_total")
    reads = info.keys.reads
    # in one step: the key cannot expire, or be released, between the two, and so outlive its minute
    try:
        replies = yield Upkeep(
            [("MULTI",), ("SET", reads, 0, "EX", WITHIN_S, "NX"), ("INCR", reads), ("EXEC",)],
        )
    except DamagedRecord as error:
        replies = [[error]]
    if replies is None:
        return
    counted = replies[-1][-1]
    if isinstance(counted, Exception):  # the key holds something else
        yield Upkeep([("UNLINK", reads)])
        return
    if not isinstance(counted, int) or counted % READS:  # over a network that loses replies it is not known
        return
    with suppress(FDStoreError, *UNREADABLE):
        if info.descriptor.bytes <= AT_ONCE_BYTES:
            yield from bring_back(info)
        else:
            tree = tree_of(info.keys)
            yield Upkeep([("SADD", tree.wanted, info.content), ("EXPIRE", tree.wanted, WANTED_S)])


def bring_back(info: ContentInfo) -> Operation[bool]:
    """Store the pages of a cold content in Redis again, if it has room. Return whether they are there now by
    this call. Raises as `read_missing`, `StoreFull`."""
    d, tree = info.descriptor, tree_of(info.keys)
    [room, (tier, where)] = yield [
        script("cold_room")(tree=tree.record, size_bytes=d.bytes, share=ROOM),
        ("HMGET", info.keys.record, "tier", "where"),
    ]
    if outcome(room, d.producer) != [b"1"] or not tier or not where:
        return False
    pages_key, _ = tree.staging(new_op())
    stored, index = 0, b""
    try:
        for run in runs_of(info, range(1, d.pages + 1)):
            pages = yield from read_pages(info, run, info.created)
            fields = _fields(info, run, pages)
            stored += len(fields)
            for piece in in_bounded_pieces(fields, SEND_FIELDS, SEND_BYTES):
                yield [
                    ("MULTI",),
                    ("HSET", pages_key, *piece),
                    ("EXPIRE", pages_key, STAGED_FOR_S),
                    ("EXEC",),
                ]
        if has_index(d):
            index = (yield from group_with(info, 1)).value
        elif d.kind == "text":
            yield from store_index(info, where, bytes)
        [reply] = yield [
            script("cold_back")(
                tree=tree.record,
                content=info.keys.record,
                staged_pages=pages_key,
                created_at=info.created,
                where=where,
                first_group=index,
                field_count=stored,
                kept_s=OBJECT_KEPT_S,
            )
        ]
    except (FDStoreError, *UNREADABLE):
        with suppress(FDStoreError):
            yield [("UNLINK", pages_key)]
        raise
    is_back: bool = outcome(reply, d.producer) == [b"1"]
    if is_back:
        count("fdstore_cold_contents_back_total")
    return is_back


def store_index(info: ContentInfo, where: Value, form: Callable[[bytes], bytes]) -> Operation[None]:
    """Store the index of a text of several groups in another form of its fields, while it is cold, in this
    object. A round trip for each `GROUPS_AT_ONCE`, and one for each group that is not cached."""
    for some in in_pieces(range(1, info.descriptor.pages + 1, GROUP_PAGES), GROUPS_AT_ONCE):
        fields: list[Value] = []
        for first in some:
            fields += (first, form((yield from group_with(info, first)).value))
        [reply] = yield [script("cold_index")(content=info.keys.record, where=where, fields=fields)]
        if outcome(reply, info.descriptor.producer) != [b"1"]:
            return


def _fields(info: ContentInfo, run: range, pages: list[bytes]) -> list[tuple[Value, bytes]]:
    """Return the fields of pages, as when the content was stored: readers know whether any page is in two."""
    fields: list[tuple[Value, bytes]] = []
    for number, data in zip(run, pages, strict=True):
        rest = b""
        if info.is_split and len(data) > MIN_SPLIT:
            data, rest = split(data, is_text=info.descriptor.kind == "text")
        fields.append((number, data))
        if rest:
            fields.append((rest_of(number), rest))
    return fields
