"""Check one content: its index and totals must match its pages, and its holders must hold it.

Index and totals are recomputed from the pages, which are read once, in bounded memory.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from fdstore.errors import FDStoreError, ObjectStoreUnavailable, StoreLostData
from fdstore.model.records import Descriptor, Record
from fdstore.store.content_info import CONTENT, ContentGone, ContentInfo, descriptor_of
from fdstore.store.contents.cold_pages import read_pages
from fdstore.store.contents.locating import window_of
from fdstore.store.contents.page_fields import fields_of, joined
from fdstore.store.contents.resolving import group_with
from fdstore.store.hashes import pairs
from fdstore.store.keys import ContentKeys, TreeKeys, content_keys, in_pieces, producer_of
from fdstore.store.objects.checksums import has_index
from fdstore.store.record_format import UNREADABLE, replies_or_damage, show_bytes
from fdstore.text.byte_pages import ByteTotals
from fdstore.text.index import GROUP_PAGES, IndexWriter
from fdstore.text.packed_index import is_packed, pack_field
from fdstore.text.paging import Page
from fdstore.wire.operation import Operation

LOOKS = 5
"""The most checks of a stream that is being written; one that changed during every check passes."""

DROP = "only a backup has the lost part; close its descriptors, and store it again"
REREAD = "read it whole, or by pages, and store it again"


class Damage(Record, frozen=True, kw_only=True):
    """A damaged key: what is wrong (`said`), and what to do. `harmless` damage was left by a torn log, and
    readers and writers handle it."""

    key: str
    said: str
    advice: str
    harmless: bool = False


Tell = Callable[[int, int], None]
"""A progress callback: called with the bytes of text and the contents read so far."""


class AuditProgress:
    """Adds up the bytes of the contents that are checked at the same time."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._read: dict[str, int] = {}
        self._bytes = 0

    def add(self, content: str, read_bytes: int) -> None:
        """Report that so many bytes of a content were read; if it is read again, they are counted once."""
        before = self._read.get(content, 0)
        self._read[content] = max(before, read_bytes)
        self._bytes += max(0, read_bytes - before)
        self._tell(self._bytes, len(self._read))


_LAYOUT = CONTENT.some("tail", "split", "index", "tier", "where")

STORE_OBJECT = "its object is the text: store that again, and only then close its descriptors"
RESTORE_OBJECT = (
    "restore the object from a backup of the object store; if it is whole, its index is wrong: "
    "store it again, and only then close its descriptors"
)


def check_content(
    tree: TreeKeys, content: str, holders: set[str], ended: frozenset[str], progress: AuditProgress
) -> Operation[tuple[list[Damage], int]]:
    """Return the damage in a content of a tree, and its size in bytes. `holders` are the processes whose
    tables name it. A content that grows, moves out or comes back during the check is checked again."""
    keys = content_keys(tree, content)
    tell = partial(progress.add, content)
    totals = ("HMGET", keys.record, "chars", "state", "tier", "where")
    for _ in range(LOOKS):
        [before] = yield from replies_or_damage([totals])
        found, size_bytes = yield from _look(tree, content, holders, ended, tell)
        [after] = yield from replies_or_damage([totals])
        if not found or isinstance(before, FDStoreError) or before == after:
            return found, size_bytes
    return [], size_bytes


def _look(
    tree: TreeKeys, content: str, holders: set[str], ended: frozenset[str], tell: Callable[[int], None]
) -> Operation[tuple[list[Damage], int]]:
    keys = content_keys(tree, content)
    flat, *counts = yield from replies_or_damage(
        [
            ("HGETALL", keys.record),
            *(("HLEN", keys.pages), ("HLEN", keys.index), ("SCARD", keys.holders), ("EXISTS", keys.lent)),
        ]
    )
    for reply in (flat, *counts):
        if isinstance(reply, FDStoreError):
            return [_damage(keys, f"it cannot be read: {reply}")], 0
    if not flat:
        forget = f"fdstore redis-cli SREM '{tree.contents}' {content}"
        advice = f"close its descriptors; then {forget}" if holders else forget
        return [_damage(keys, "the tree lists this content, and it does not exist", advice)], 0
    try:
        fields = pairs(flat)
        d = descriptor_of("fd:0", fields)
        layout = _LAYOUT.decode(fields)
    except UNREADABLE as error:
        return [_damage(keys, f"its metadata cannot be read: {show_bytes(str(error))}")], 0
    found = yield from _holding(keys, content, counts[2], holders)
    if d.state == "open" and d.producer in ended:
        said = f"it is open, and {d.producer}, which writes it, has ended"
        found.append(_damage(keys, said, "read it: a read breaks it", harmless=True))
    page_fields, groups, _, lent = counts
    if layout.tier or layout.where:
        found += yield from _cold_text(keys, content, d, layout, fields, (page_fields, groups), tell)
        return found, d.bytes
    pages = page_fields - layout.split
    if lent:
        advice = "read it: a read moves them back"
        found.append(_damage(keys, f"its pages are still in {keys.lent}", advice))
        return found, d.bytes
    if pages < d.pages:
        found.append(_damage(keys, f"it has {pages} pages, and its totals say {d.pages}"))
        return found, d.bytes
    more = pages > d.pages
    found += yield from _text(keys, d, layout, more=more, tell=tell, short=layout.index)
    least = -(-d.pages // GROUP_PAGES) if d.kind == "text" and layout.index is None else 0
    if groups > least and not more:
        said = f"its index has {groups} fields, and its pages need {least}"
        found.append(_damage(keys, said, "nothing reads the others", harmless=True))
    return found, d.bytes


def _cold_text(
    keys: ContentKeys,
    content: str,
    d: Descriptor,
    layout: Any,
    fields: dict[str, str],
    counts: tuple[int, int],
    tell: Callable[[int], None],
) -> Operation[list[Damage]]:
    """Compare the object of a cold content with its checksums, its index and its totals. `counts` are how
    many fields of pages and of the index are in Redis."""
    with_index = has_index(d)
    for key, count in zip((keys.pages, keys.index), (counts[0], with_index and counts[1]), strict=True):
        if count:
            said = f"it is cold, and {key} is in Redis too: a torn log left it, or it was added since"
            advice = f"it only takes memory: fdstore redis-cli UNLINK '{key}'"
            return [_damage(keys, said, advice, harmless=True)]
    info = ContentInfo(content, keys, d, fields["created_at"].encode(), is_split="split" in fields)

    def pages(numbers: list[int]) -> Operation[list[bytes | None]]:
        found = yield from read_pages(info, range(numbers[0], numbers[-1] + 1), info.created)
        return list(found)

    try:
        short = (yield from group_with(info, 1)).value.decode() if with_index else layout.index
        if with_index and layout.index not in (None, short):
            return [_damage(keys, "its index is not the one with its checksums", REREAD)]
        return (yield from _text(keys, d, layout, more=False, tell=tell, short=short, pages=pages))
    except ContentGone:
        return []
    except StoreLostData as error:
        return [_damage(keys, error.problem, RESTORE_OBJECT)]
    except ObjectStoreUnavailable as error:
        return [_damage(keys, f"its object cannot be read: {error.problem}", "look again when it answers")]
    except UNREADABLE as error:
        said = f"its index or checksums cannot be read: {show_bytes(str(error))}"
        return [_damage(keys, said, STORE_OBJECT)]


def _damage(keys: ContentKeys, said: str, advice: str = DROP, *, harmless: bool = False) -> Damage:
    return Damage(key=keys.record, said=said, advice=advice, harmless=harmless)


def _holding(keys: ContentKeys, content: str, count: int, holders: set[str]) -> Operation[list[Damage]]:
    """Compare the holders with the tables that name the content."""
    members, listed = set(), count > 0
    if count <= 100_000:
        [found] = yield from replies_or_damage([("SMEMBERS", keys.holders)])
        # a content that its producer alone holds has no list of holders
        members = set(map(show_bytes, found or [producer_of(content.encode())]))
    damage = []
    if missing := sorted(holders - members):
        said = f"{', '.join(missing[:5])} has a descriptor of it and is not among its holders"
        added = missing[:5] if listed else sorted(holders)[:5]
        advice = f"fdstore redis-cli SADD '{keys.holders}' {' '.join(added)}"
        damage.append(Damage(key=keys.holders, said=said, advice=advice))
    if extra := sorted(members - holders):
        said = f"{', '.join(extra[:5])} is among its holders and has no descriptor of it"
        remove = f"fdstore redis-cli SREM '{keys.holders}' {' '.join(extra[:5])}"
        advice = "it takes memory until its tree is removed" + (f": {remove}" if listed else "")
        damage.append(Damage(key=keys.holders, said=said, advice=advice))
    return damage


def _text(
    keys: ContentKeys,
    d: Descriptor,
    layout: Any,
    *,
    more: bool,
    tell: Callable[[int], None],
    short: str | None,
    pages: Callable[[list[int]], Operation[list[bytes | None]]] | None = None,
) -> Operation[list[Damage]]:
    """Compare the pages with the index and the totals. `short` is the index, if it has no key; `pages`
    fetches the pages, if they are not in Redis."""
    tail = layout.tail
    writer = IndexWriter() if d.kind == "text" else ByteTotals()
    wrong: list[Damage] = []
    last = b""
    beyond = False
    for numbers in in_pieces(range(1, d.pages + 1), window_of(d)):
        if pages is None:
            [found] = yield from replies_or_damage([("HMGET", keys.pages, *fields_of(numbers))])
            found = joined(found)
        else:
            found = yield from pages(numbers)
        for number, data in zip(numbers, found, strict=True):
            if data is None:
                return [*wrong, Damage(key=keys.pages, said=f"page {number} is missing", advice=DROP)]
            if number == d.pages and tail is not None and (more or len(data) != tail):
                beyond = True
                data = yield from _before_tear(keys, number, data, tail)
            if d.kind == "bytes":
                if len(data) != d.page_size and number < d.pages:
                    said = f"page {number} has {len(data)} bytes, not {d.page_size}"
                    wrong.append(Damage(key=keys.pages, said=said, advice=DROP))
                last = data
                writer.add([Page(data, 0)])
                continue
            try:
                text = data.decode("utf-8")
            except UnicodeDecodeError as error:
                said = f"page {number} is not UTF-8: {show_bytes(str(error))}"
                return [*wrong, Damage(key=keys.pages, said=said, advice=DROP)]
            if len(text) > d.page_size:
                said = f"page {number} has {len(text)} characters, and a page has {d.page_size} at most"
                wrong.append(Damage(key=keys.pages, said=said, advice=DROP))
            last = data
            writer.add([Page(data, len(text))])
        tell(writer.bytes)
        if not beyond:
            wrong += yield from _index(keys, d, writer.full_groups(), short)
    if not beyond:
        wrong += yield from _index(keys, d, writer.fields(), short)
    for name, right in (("chars", writer.chars), ("bytes", writer.bytes), ("lines", writer.lines)):
        if getattr(d, name) != right:
            said = f"{name} is {getattr(d, name)}, and its pages have {right}"
            wrong.append(_damage(keys, said))
    if tail is not None and not beyond and len(last) != tail:
        wrong.append(_damage(keys, f"its last page has {len(last)} bytes, not {tail}"))
    if beyond and not wrong:
        said = "its pages go beyond its totals: a torn log left a piece half stored"
        advice = "nothing to do: readers see the text without it, and the next piece replaces it"
        wrong.append(_damage(keys, said, advice, harmless=True))
    return wrong


def _before_tear(keys: ContentKeys, number: int, data: bytes, tail: int) -> Operation[bytes]:
    """Return the last page without what a torn log added, as its totals count it."""
    [after] = yield from replies_or_damage([("HGET", keys.pages, number + 1)])
    return (data + (after if isinstance(after, bytes) else b""))[:tail]


def _index(
    keys: ContentKeys, d: Descriptor, fields: dict[str, str], short: str | None
) -> Operation[list[Damage]]:
    if not fields:
        return []
    if short is not None:
        return [] if {"1": short} == fields else [_damage(keys, "its index does not match its pages", REREAD)]
    [stored] = yield from replies_or_damage([("HMGET", keys.index, *fields)])
    wrong = []
    for (name, right), found in zip(fields.items(), stored, strict=True):
        if found is None or not _is_field(found, right.encode("ascii"), d.page_size):
            what = "is missing" if found is None else "does not match its pages"
            said = f"field {name} of the index {what}: reads by line or character go wrong"
            wrong.append(Damage(key=keys.index, said=said, advice=REREAD))
    return wrong


def _is_field(found: bytes, right: bytes, page_size: int) -> bool:
    return found == (pack_field(right, page_size) if is_packed(found) else right)
