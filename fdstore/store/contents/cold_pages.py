"""Where the pages come from that Redis does not have.

Readers ask Redis for pages, as ever. Only where pages are missing this looks at the record of the content: if
it is cold, its index says which bytes of its object the pages are, and one range request fetches them. Each
page must have the checksum that was stored when it moved; so an object that was cut, replaced or damaged is
`StoreLostData`, never another text. The index of a short text is there too, with the checksums.

A content may move at any moment: each look takes the record, the checksums and the index in one round trip,
and an object that is gone is looked up again.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from fdstore.errors import InvalidArgument, ObjectStoreUnavailable, StoreLostData
from fdstore.store.content_info import ContentInfo
from fdstore.store.contents.page_fields import fields_of, joined
from fdstore.store.objects import object_store
from fdstore.store.objects.checksums import (
    bytes_of_a_page,
    decode_index,
    decode_sums,
    digest_of_page,
    has_index,
    most_bytes_of,
)
from fdstore.store.objects.object_store import ObjectMissing
from fdstore.store.objects.records import COLD, content_of, path_of, tree_of
from fdstore.store.objects.settings import parse_url
from fdstore.store.record_format import show_bytes
from fdstore.text.index import GROUP_PAGES, ROW_PAGES, Group, group_of
from fdstore.wire.operation import Alongside, Batch, Disk, Operation

LOOKS = 5
"""How often a content is looked up again that moves while it is read."""


class ColdPages(msgspec.Struct, frozen=True):
    """Some pages of an object: where it is, the byte at which the first one begins, and of each page its size
    and its checksum."""

    url: str
    path: str
    start: int
    sizes: list[int]
    sums: list[bytes]


def read_pages(info: ContentInfo, pages: range, created: bytes | None) -> Operation[list[bytes]]:
    """Return pages that Redis did not have; `created` is its reply to `info.proof`. One round trip and one
    range request.

    Raises `ContentGone`, `StoreLostData`, `ObjectStoreUnavailable`.
    """
    info.check(created)
    fd, seen = info.descriptor.fd, ""
    for _ in range(LOOKS):
        place = yield from locate_pages(info, pages)
        if place is None:
            fields = fields_of(pages) if info.is_split else list(pages)
            values, created = yield [("HMGET", info.keys.pages, *fields), info.proof]
            values = joined(values) if info.is_split else values
            info.check(created)
            if None not in values:
                return list(values)
            if seen == "in Redis":
                break
            seen = "in Redis"
            continue
        end = place.start + sum(place.sizes)
        try:
            data = yield Disk(partial(object_store.get_range, place.url, place.path, place.start, end))
        except ObjectMissing:
            if seen == place.path:
                raise StoreLostData(fd, f"its object {place.path} is missing in {place.url}") from None
            seen = place.path
            continue
        found = _checked(fd, place, pages, data)
        if info.descriptor.kind == "text":
            _check_text(fd, place, pages, found)
        return found
    info.check(created, complete=False)
    raise AssertionError


def _checked(fd: str, place: ColdPages, pages: range, data: bytes) -> list[bytes]:
    """Cut the bytes of an object into pages. Raises `StoreLostData`."""
    if len(data) != sum(place.sizes):
        has = place.start + len(data)
        raise StoreLostData(fd, f"its object {place.path} in {place.url} was cut: it ends after {has} bytes")
    found, at = [], 0
    for number, size, checksum in zip(pages, place.sizes, place.sums, strict=True):
        page = data[at : at + size]
        if digest_of_page(page) != checksum:
            raise StoreLostData(fd, f"page {number} of its object {place.path} in {place.url} was changed")
        found.append(page)
        at += size
    return found


def _check_text(fd: str, place: ColdPages, pages: range, found: list[bytes]) -> None:
    """Raise `StoreLostData` for a page that is not UTF-8: its checksum was changed too."""
    for number, page in zip(pages, found, strict=True):
        try:
            page.decode("utf-8")
        except UnicodeDecodeError as error:
            said = f"page {number} of its object {place.path} in {place.url} is not text"
            raise StoreLostData(fd, said) from error


def locate_pages(info: ContentInfo, pages: range) -> Operation[ColdPages | None]:
    """Return where pages of a cold content are, None if the content is not cold. One round trip.

    Raises `ContentGone`, `StoreLostData`, `ObjectStoreUnavailable` (no place is set).
    """
    d, keys, tree = info.descriptor, info.keys, tree_of(info.keys)
    is_text, width = d.kind == "text", bytes_of_a_page(d)
    has_more = is_text and d.chars != d.bytes
    first = row_of(pages[0]) if has_more else pages[0]
    known = _known_groups(info, range(first, pages[-1] + 1)) if is_text else {}
    missing = [each for each, group in known.items() if group is None]
    with_index = bool(missing) and has_index(d)
    entries_of = range(1, d.pages + 1) if with_index else range(first, pages[-1] + 1)
    begin, end = (entries_of[0] - 1) * width, entries_of[-1] * width
    batch: Batch = [
        ("HMGET", keys.record, "created_at", "tier", "where"),
        ("GETRANGE", keys.sums, begin, (most_bytes_of(d) if with_index else end) - 1),
    ]
    if missing and not with_index:
        batch.append(("HMGET", keys.index, *missing))
    [setting], ((created, tier, where), sums, *values) = yield Alongside(
        [("HMGET", tree.ceilings, "cold")], batch
    )
    info.check(created)
    if not tier and not where:
        return None
    path = _path(info, tier, where)
    entries = decode_sums(sums[: end - begin], d)
    if len(sums) < end - begin:
        raise StoreLostData(d.fd, f"the checksums of its object {path} are missing")
    if with_index:
        try:
            values = [[decode_index(sums[end:], d, [more for _, more in entries])]]
        except ValueError as error:
            said = f"the index with the checksums of its object {path} is damaged"
            raise StoreLostData(d.fd, said) from error
    for name, value in zip(missing, values[0] if missing else [], strict=True):
        info.check(created, complete=value is not None)
        known[name] = info.learn(name, value)
    [url] = [None] if setting is None else setting  # None: that node of a Cluster is away
    if url is None:
        raise ObjectStoreUnavailable(
            "of this store", f"none is set, and {d.fd} is in one: fdstore limits set cold URL"
        )
    sizes = [
        page_size(info, known, number, more) for number, (_, more) in zip(entries_of, entries, strict=True)
    ]
    before = pages[0] - entries_of[0]
    wanted = slice(before, before + len(pages))
    start = start_of(info, known, entries_of[0]) + sum(sizes[:before])
    try:
        checked_url = parse_url("cold", show_bytes(url, 1000))
    except InvalidArgument as error:
        raise ObjectStoreUnavailable("of this store", f"its setting is wrong: {error.problem}") from error
    return ColdPages(checked_url, path, start, sizes[wanted], [each for each, _ in entries[wanted]])


def missing_group(info: ContentInfo, page: int, created: bytes | None) -> Operation[Group]:
    """Return the index group of a page that Redis did not have; `created` is its reply to `info.proof`. One
    round trip if it is not cached.

    Raises `ContentGone`, `StoreLostData`, `ObjectStoreUnavailable`.
    """
    info.check(created)
    first = group_of(page)
    for _ in range(LOOKS):
        group = info.groups.get(first)
        if group is not None:
            return group
        place = yield from locate_pages(info, range(page, page + 1))
        if place is None:  # it came back
            value, created = yield [("HGET", info.keys.index, first), info.proof]
            info.check(created)
            if value is not None:
                return info.learn(first, value)
    info.check(created, complete=False)
    raise AssertionError


def locate_bytes(info: ContentInfo, first: int, last: int, located: bytes) -> Operation[bytes | None]:
    """Return which pages of a cold text hold these bytes, in the form of `resolve`, from the rows of the
    index that do. None if it is not cold any more."""
    begin, _, end = map(int, located.split())
    last_of_head = end if has_index(info.descriptor) else begin + ROW_PAGES - 1
    head = range(begin, min(last_of_head, info.descriptor.pages) + 1)
    place = yield from locate_pages(info, head)
    if place is None:
        return None
    page, before = _page_of_byte(head, place, first)
    tail = range(row_of(end), end + 1)
    if tail[-1] > head[-1]:
        place = yield from locate_pages(info, tail)
        if place is None:
            return None
        head = tail
    last_page, _ = _page_of_byte(head, place, last)
    return b"%d %d %d" % (page, before, last_page)


def _page_of_byte(pages: range, place: ColdPages, position: int) -> tuple[int, int]:
    """Return the page that holds a byte, the last one if it is later, and the bytes before the page."""
    before = place.start
    for number, size in zip(pages, place.sizes, strict=True):
        if before + size > position or number == pages[-1]:
            return number, before
        before += size
    raise AssertionError


def row_of(page: int) -> int:
    """Return the first page of the row of the index that has this page."""
    return (page - 1) // ROW_PAGES * ROW_PAGES + 1


def _known_groups(info: ContentInfo, pages: range) -> dict[int, Group | None]:
    firsts = range(group_of(pages[0]), pages[-1] + 1, GROUP_PAGES)
    return {first: info.groups.get(first) for first in firsts}


def _path(info: ContentInfo, tier: Any, where: Any) -> str:
    tree, name = tree_of(info.keys), show_bytes(where or b"")
    if show_bytes(tier or b"") != COLD or content_of(tree, name) != info.content:
        raise StoreLostData(info.descriptor.fd, "its record does not say which object it is")
    return path_of(tree, name)


def start_of(info: ContentInfo, groups: dict[int, Group | None], page: int) -> int:
    """Return the byte at which a page begins: of a text with more bytes than characters, the first of a
    row."""
    d = info.descriptor
    if d.kind == "bytes":
        return (page - 1) * d.page_size
    group = groups[group_of(page)]
    assert group is not None
    if d.chars == d.bytes:
        return group.before(page).chars
    return sum(group.bytes[: (page - group.first) // ROW_PAGES + 1])


def page_size(info: ContentInfo, groups: dict[int, Group | None], page: int, more: int) -> int:
    """Return the bytes of a page, which has so many `more` than characters."""
    d = info.descriptor
    if d.kind == "bytes":
        return min(d.page_size, d.bytes - (page - 1) * d.page_size)
    group = groups[group_of(page)]
    assert group is not None
    return group.after(page).chars - group.before(page).chars + more
