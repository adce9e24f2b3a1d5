"""The knowledge of a client about a content: its metadata, and the parts of its index fetched so far.

Metadata and index of a sealed content never change, so its `ContentInfo` is cached (see
`process_handle`); pages are fetched each time. An open content is resolved again for every read.

A stream of bytes has its length in bytes in the record's field `chars`, the position that its writer and its
followers share (see lua/append.lua); its descriptor has no characters, like that of any bytes.

A content is identified by its name (`triage/3`) and its creation time, in microseconds of the Redis
clock. A Redis that lost the tail of its log, or was flushed, may reuse a number for another text. So every
read fetches the creation time in the same round trip, and raises `StoreLostData` rather than return a
text other than the one this client knows. After a client has seen a number, it never creates a descriptor
at or below it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import Literal

from fdstore.errors import NotFound, NotText, StoreLostData
from fdstore.model.records import TEXT_TYPE, Count, Descriptor
from fdstore.store.hashes import Hash
from fdstore.store.keys import ContentKeys
from fdstore.store.recent import Recent
from fdstore.text.growth import ended_at
from fdstore.text.index import Group, group_of
from fdstore.text.json_pointer import CharSpan
from fdstore.text.media_types import BYTES_TYPE
from fdstore.text.packed_index import is_packed, unpack_field
from fdstore.wire.operation import Command, NumberedFields

MAX_GROUPS = 256
"""Index groups (256 pages each) cached for one content."""

EXTRACTION = "extraction"
"""The source of a content that was cut from another content; only these have an origin."""

_RANGE = re.compile(r"[0-9]{1,16}-[0-9]{1,16}", re.ASCII)

Unit = Literal["newlines", "chars"]
"""The unit that the index counts."""


class ContentGone(NotFound):
    """A content was deleted after its descriptor was resolved: it was closed, or its name was given to
    another content. `resolving.retry_if_gone` resolves it again."""


class ContentInfo:
    """The metadata of one content, its keys, and the parts of its index fetched so far.

    For an open content it is a snapshot. All pages but the last are final; the last may have been split
    by the time it is fetched, so its text comes with the metadata, as `last_page`. `writer_left_s` is
    the time in seconds until the writer's lease expires.

    `values` are the places of values of JSON that were looked up, by their pointers.

    `is_split` is true if some of the pages are in two fields (see `page_fields`).

    `is_torn` is true for a stream whose pages and index may hold more than its totals, after a crash tore
    the log of Redis (see lua/common.lua). Such a stream has a `last_page` even after it has ended.
    """

    __slots__ = (
        *("content", "created", "descriptor", "groups", "is_split", "is_torn", "keys", "last_page"),
        *("pages", "values", "writer_left_s"),
    )

    def __init__(
        self,
        content: str,
        keys: ContentKeys,
        descriptor: Descriptor,
        created: bytes,
        *,
        is_split: bool = False,
    ) -> None:
        self.content = content
        self.created = created
        self.descriptor = descriptor
        self.keys = keys
        self.is_split = is_split
        self.pages = NumberedFields(keys.pages, self.proof, "+" if is_split else "")
        self.groups: Recent[int, Group] = Recent(MAX_GROUPS)
        self.values: Recent[str, CharSpan] | None = None
        self.last_page: bytes | None = None
        self.writer_left_s = 0.0
        self.is_torn = False

    @property
    def proof(self) -> Command:
        """The command to send after each read, in the same batch; `check` validates its reply."""
        return ("HGET", self.keys.record, "created_at")

    def check(self, created: bytes | None, *, complete: bool = True) -> None:
        """Validate the reply to `proof`; `complete` is false if any other requested field was missing.

        Raises `ContentGone`, `StoreLostData`.
        """
        fd = self.descriptor.fd
        if created is None:
            raise ContentGone(fd)
        if created != self.created:
            raise StoreLostData(fd, "its number now belongs to another text")
        if not complete:
            raise StoreLostData(fd, "a part of its text or of its index is missing")

    def require_text(self) -> None:
        """Raise `NotText` for a content of bytes."""
        d = self.descriptor
        if d.kind != "text":
            raise NotText(d.fd, d.media_type, d.bytes)

    def learn(self, first: int, value: bytes) -> Group:
        """Decode and cache a field of the index. Return the group."""
        return self.groups.put(first, self.decode_group(first, value))

    def decode_group(self, first: int, value: bytes) -> Group:
        """Decode a field of the index, which is packed while the content is cold. Raises `ValueError`."""
        if is_packed(value):
            value = unpack_field(value, self.descriptor.page_size)
        if self.is_torn and self.last_page is not None and first == group_of(self.descriptor.pages):
            value = ended_at(value, self.descriptor.pages, self.descriptor.bytes, self.last_page)
        return Group(first, value)

    def group_at(self, unit: Unit, position: int) -> Group | None:
        """Return the cached group that holds this LF or character, or None if it is not cached. Position 0
        is in the first group, a position after the end in the last."""
        known = sorted(self.groups.snapshot())
        begins_later = bisect_left(known, position, key=lambda entry: getattr(entry[1].start, unit))
        # position 0 comes before every group's start; it belongs to the first group
        group = known[begins_later - 1][1] if begins_later else dict(known[:1]).get(1)
        if group is None or (position > getattr(group.end, unit) and group.last != self.descriptor.pages):
            return None
        return group


class StoredContent(Descriptor, frozen=True, kw_only=True):
    """The whole hash of a content. `tail` is the length in bytes of its last page, `split` how many pages
    are in two fields (see `page_fields`), `index` its index, if that is short. `tier` and `where` are those
    of a cold content (see `objects.records`)."""

    tail: Count | None = None
    split: Count = 0
    index: str | None = None
    tier: str = ""
    where: str = ""


CONTENT = Hash(StoredContent)

_DESCRIPTOR = Hash(Descriptor)


def descriptor_of(fd: str, fields: dict[str, str]) -> Descriptor:
    """Build the descriptor from a content's metadata, under the name this process has for it. Raises one of
    `record_format.UNREADABLE`, also for impossible numbers: readers compute positions from them."""
    state, kind = fields.get("state"), fields.get("kind") or "text"
    known: dict[str, object] = {"fd": fd}
    if state != "sealed":
        known["exit_code"] = None  # left by an end that a torn log half restored, see lua/common.lua
    if state != "broken":
        known["reason"] = None
    if not fields.get("media_type"):  # or an empty one, left by the first piece of a stream
        known["media_type"] = BYTES_TYPE if kind == "bytes" else TEXT_TYPE
    if kind == "bytes":
        known["chars"] = 0  # the record of a stream of bytes counts its bytes there
    if fields.get("source") != EXTRACTION:
        known["origin"] = None  # left by a torn content that had the same number
    found = _DESCRIPTOR.decode(fields, **known)
    origin = found.origin
    if (
        max(found.chars, found.lines) > found.bytes
        or found.pages > max(found.bytes, 1)  # only an empty content has an empty page
        or (origin and not (_RANGE.fullmatch(origin.chars) and _RANGE.fullmatch(origin.lines)))
    ):
        raise ValueError(f"impossible totals: {found.bytes} bytes in {found.pages} pages")
    return found
