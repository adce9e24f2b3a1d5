"""Resolve descriptors to contents, and cache their metadata and index on the client.

A `ProcessHandle` is one process as seen by one client: its keys, the attempt it writes under, and a
`ContentInfo` for each content it has read. Metadata and index of a sealed content never change, so its
`ContentInfo` is cached; pages are fetched each time. An open content is resolved again for every read.

A content is identified by its name (`triage/3`) and its creation time, in microseconds of the Redis
clock. A Redis that lost the tail of its log, or was flushed, may reuse a number for another text. So every
read fetches the creation time in the same round trip, and raises `StoreLostData` rather than return a
text other than the one this client knows. After a client has seen a number, it never creates a descriptor
at or below it.

One script (`look.lua`) resolves a descriptor and fetches the metadata and the part of the index a reader
needs, so a first read costs one round trip for a page and two for a range.
"""

from __future__ import annotations

import re
import threading
import time
from bisect import bisect_left
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, Literal, ParamSpec, TypeVar

import msgspec

from fdstore.errors import (
    DamagedRecord,
    NotFound,
    StoreFull,
    StoreLostData,
    StoreReadOnly,
    StoreRefused,
    UnsafeStore,
)
from fdstore.records import Descriptor, TreeLimits
from fdstore.store.decoding import UNREADABLE, damage, decoding, show_bytes, timestamp, whole_number
from fdstore.store.keys import ContentKeys, ProcessKeys, TreeKeys, content_keys
from fdstore.store.outcomes import outcome
from fdstore.store.recent import Recent
from fdstore.text.growth import ended_at
from fdstore.text.index import Group, group_of
from fdstore.text.numbers import MAX_INTEGER
from fdstore.wire.operation import Batch, Command, NumberedFields, Operation
from fdstore.wire.scripts import script

T = TypeVar("T")
P = ParamSpec("P")

MAX_VIEWS = 1000
"""Contents that a handle caches."""

MAX_MET = 10_000
"""Contents whose creation time a handle remembers."""

MAX_GROUPS = 256
"""Index groups (256 pages each) cached for one content."""

DAY_S = 86_400
NOTES_PER_RETENTION = 100
"""A client records the use of a tree at most this many times per retention period."""

CEILINGS_EVERY_S = 60.0
"""How often a client that writes reads the operator's ceilings (see `ceilings`)."""

EXTRACTION = "extraction"
"""The source of a content that was cut from another content; only these have an origin."""

_RANGE = re.compile(r"[0-9]{1,16}-[0-9]{1,16}", re.ASCII)

Unit = Literal["newlines", "chars"]


class ContentInfo:
    """The metadata of one content, its keys, and the parts of its index fetched so far.

    For an open content it is a snapshot. All pages but the last are final; the last may have been split
    by the time it is fetched, so its text comes with the metadata, as `last_page`. `writer_left_s` is
    the time in seconds until the writer's lease expires.

    `is_torn` is true for a stream whose pages and index may hold more than its totals, after a crash tore
    the log of Redis (see lua/common.lua). Such a stream has a `last_page` even after it has ended.
    """

    __slots__ = (
        *("content", "created", "descriptor", "groups", "is_torn", "keys", "last_page", "pages"),
        "writer_left_s",
    )

    def __init__(self, content: str, keys: ContentKeys, descriptor: Descriptor, created: bytes) -> None:
        self.content = content
        self.created = created
        self.descriptor = descriptor
        self.keys = keys
        self.pages = NumberedFields(keys.pages, self.proof)
        self.groups: Recent[int, Group] = Recent(MAX_GROUPS)
        self.last_page: bytes | None = None
        self.writer_left_s = 0.0
        self.is_torn = False

    @property
    def proof(self) -> Command:
        """The command to send after each read, in the same batch; `check` validates its reply."""
        return ("HGET", self.keys.record, "created_at")

    def check(self, created: bytes | None, *, complete: bool = True) -> None:
        """Validate the reply to `proof`; `complete` is false if any other requested field was missing.

        Raises `NotFound` (the content was released), `StoreLostData`.
        """
        fd = self.descriptor.fd
        if created is None:
            raise NotFound(fd)
        if created != self.created:
            raise StoreLostData(fd, "its number now belongs to another text")
        if not complete:
            raise StoreLostData(fd, "a part of its text or of its index is missing")

    def learn(self, first: int, value: bytes) -> Group:
        """Decode and cache a field of the index. Return the group."""
        if self.is_torn and self.last_page is not None and first == group_of(self.descriptor.pages):
            value = ended_at(value, self.descriptor.pages, self.descriptor.bytes, self.last_page)
        return self.groups.put(first, Group(first, value))

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


class ProcessHandle:
    """One process as seen by one client. `attempt` is empty for a writer without a lease."""

    def __init__(self, keys: ProcessKeys, limits: TreeLimits, attempt: int | None = None) -> None:
        self.keys = keys
        self.limits = limits
        self.attempt = "" if attempt is None else str(attempt)
        self.highest = 0
        """The highest descriptor number that this client has seen."""
        self.highest_child = 0
        self._views: Recent[str, ContentInfo] = Recent(MAX_VIEWS)
        self._met: Recent[str, bytes] = Recent(MAX_MET)
        self._numbers_lock = threading.RLock()
        self._note_every_s = limits.retention_days * DAY_S / NOTES_PER_RETENTION
        self._noted_at = time.time()
        self.ceilings_due_at = 0.0
        """When to read the operator's ceilings next, by `time.monotonic`."""

    def must_touch(self) -> bool:
        """Return whether it is time to record the use of the tree. The wall clock is used because it
        advances while the machine is suspended."""
        return bool(self._note_every_s) and not 0 <= time.time() - self._noted_at <= self._note_every_s

    def noted(self) -> None:
        """Record that the use of the tree was stored just now."""
        self._noted_at = time.time()

    def may_be_collected(self) -> bool:
        """Return whether the tree may have been collected because it was unused for its retention."""
        retention_s = self._note_every_s * NOTES_PER_RETENTION
        return bool(retention_s) and not 0 <= time.time() - self._noted_at < retention_s

    def meet(self, fd: str, content: str, created: bytes) -> None:
        """Remember a content. Raises `StoreLostData` if this client knows its name with another creation
        time."""
        if self._met.first(content, created) != created:
            raise StoreLostData(fd, "its number now belongs to another text")
        self.see(fd)

    def see(self, *fds: str) -> None:
        """Remember the highest of these descriptor numbers: new descriptors must be above it."""
        highest = max((int(fd[3:]) for fd in fds if fd.startswith("fd:")), default=0)
        with self._numbers_lock:
            self.highest = max(self.highest, highest)

    @property
    def id(self) -> str:
        return self.keys.process

    def see_child(self, process: str) -> None:
        """Remember the number of a child: new children must be above it."""
        with self._numbers_lock:
            self.highest_child = max(self.highest_child, int(process.rpartition(".")[2]))

    def known(self, fd: str) -> ContentInfo | None:
        """Return the cached view of a sealed content, or None."""
        return self._views.get(fd)

    def remember(self, fd: str, view: ContentInfo) -> ContentInfo:
        """Cache the view of a sealed content. Return the view."""
        # a number always means the same content, but another client may move a name to another content
        if view.descriptor.state != "open" and not view.is_torn and not fd.startswith("ref:"):
            self._views.put(fd, view)
        return view

    def forget(self, fd: str) -> None:
        self._views.forget(fd)

    def answer_slot(self, op: str, call_id: str | None) -> tuple[str, str]:
        """Return where a script stores its reply, for retries: a key, and for a tool call the field."""
        return (self.keys.tree.answer(op), "") if call_id is None else (self.keys.calls, call_id)


def pairs(flat: list[bytes]) -> dict[str, str]:
    """Return the reply of HGETALL as a dict."""
    texts = map(bytes.decode, flat)
    return dict(zip(texts, texts, strict=True))


def descriptor_of(fd: str, fields: dict[str, str]) -> Descriptor:
    """Build the descriptor from a content's metadata, under the name this process has for it. Raises one of
    `decoding.UNREADABLE`, also for impossible numbers: readers compute positions from them."""
    values: dict[str, object] = {**fields, "fd": fd}
    if fields["state"] != "sealed":
        values.pop("exit_code", None)  # left by an end that a torn log half restored, see lua/common.lua
    if fields["state"] != "broken":
        values.pop("reason", None)
    if "origin" in fields and fields["source"] != EXTRACTION:
        del values["origin"]  # left by a torn content that had the same number
    elif "origin" in fields:
        values["origin"] = msgspec.json.decode(fields["origin"])
    found = msgspec.convert(values, Descriptor, strict=False)  # not strict: Redis holds numbers as text
    timestamp(fields["created_at"])
    origin = found.origin
    if (
        not 0 <= found.bytes <= MAX_INTEGER
        or not (0 <= found.chars <= found.bytes and 0 <= found.lines <= found.bytes)
        # only an empty content has an empty page
        or not (1 <= found.pages <= max(found.bytes, 1) and 1 <= found.page_size <= MAX_INTEGER)
        or (origin and not (_RANGE.fullmatch(origin.chars) and _RANGE.fullmatch(origin.lines)))
    ):
        raise ValueError(f"impossible totals: {found.bytes} bytes in {found.pages} pages")
    return found


def resolve(
    handle: ProcessHandle, fd: str, *, page: int = 0, unit: Unit | None = None, first: int = 0, last: int = 0
) -> Operation[tuple[ContentInfo, bytes | None]]:
    """Resolve `fd` in Redis, ignoring the cache. Return its view and the text of `page`. With `unit`, also
    fetch the index groups that hold the LFs or characters `first` and `last`. One round trip; two more
    for the reader that finds an expired writer and breaks its stream.

    Most contents are read by the process that created them. So the page is requested from this process's
    own keys, in the batch of the script, which then only confirms the guess: text that passes through Lua
    takes twice the time.
    """
    tree = handle.keys.tree
    expected = f"{handle.id}/{fd[3:]}" if page and fd.startswith("fd:") else ""
    own, group = ContentKeys(f"{handle.keys.record}:{fd}"), group_of(page)
    while True:
        keys = (tree.record, handle.keys.fds, own.record)
        batch: Batch = [script("look")(keys, fd, page, expected, *((unit, first, last) if unit else ()))]
        if expected:
            batch += [("HGET", own.pages, page), ("HGET", own.index, group), ("HGETALL", own.record)]
        reply, *direct = yield batch
        if reply is None and not expected:
            raise DamagedRecord(content_name(handle, fd), "it names no content")
        if reply is None:
            page_text, value, flat = direct
            name, groups, live = expected, ([group, value] if value else []), []
            if not flat:
                expected = ""  # closed after the script ran
                continue
        else:
            if reply[0] == b"lent":
                torn = content_keys(tree, show_bytes(reply[1]))
                try:
                    [moved] = yield [script("put_back")((torn.pages, torn.lent))]
                except TAKES_NO_WRITES:
                    moved = [b"ok", b"0"]
                if outcome(moved, handle.id) == [b"0"]:
                    raise StoreLostData(fd, f"its pages are still under {torn.lent}")
                continue
            try:
                content, flat, page_text, groups, *live = outcome(reply, handle.id)
            except NotFound as error:
                yield from _check_numbers(handle, fd)
                handle.forget(fd)
                raise error
            name = show_bytes(content)
        with decoding(content_name(handle, fd)):
            fields = pairs(flat)
            created = fields.get("created_at", "").encode()
            if not created:
                raise StoreLostData(fd, "its record is missing")
            handle.meet(fd, name, created)
            view = handle.known(fd)
            if view is None or view.content != name or live:
                keys_of = own if reply is None else content_keys(tree, name)
                view = ContentInfo(name, keys_of, descriptor_of(fd, fields), created)
            if live:
                if live[0] is None:
                    raise LookupError("its last page is missing")
                view.last_page, view.writer_left_s, view.is_torn = live[0], float(live[1]), len(live) > 2
            for i in range(0, len(groups), 2):
                if groups[i + 1] is not None:
                    view.learn(int(groups[i]), groups[i + 1])
        if live and view.descriptor.state == "open" and view.writer_left_s <= 0:
            try:
                yield [lost_writer(tree, name)]
                continue
            except TAKES_NO_WRITES:
                # another client will break it; until then, read what is stored and poll
                view.writer_left_s = RENEWS_WITHIN_S
        return handle.remember(fd, view), page_text


TAKES_NO_WRITES = (StoreFull, StoreReadOnly, StoreRefused, UnsafeStore)
"""Errors of a cleanup write that a reader may ignore: reading still works."""

RENEWS_WITHIN_S = 5.0
"""Within this time after Redis becomes available again, a live writer has renewed its lease."""


def lost_writer(tree: TreeKeys, content: str) -> Command:
    """Return the command that breaks a stream if its writer's lease has expired, and otherwise schedules
    the next check."""
    keys = (tree.record, tree.writers, content_keys(tree, content).record)
    return script("lost_writer")(keys, content, RENEWS_WITHIN_S)


def _check_numbers(handle: ProcessHandle, fd: str) -> Operation[None]:
    """Raise `StoreLostData` if a missing descriptor that this client has seen was lost, not closed: by the
    process's counter, its number was never allocated."""
    number = int(fd[3:]) if fd.startswith("fd:") else 0
    if not 0 < number <= handle.highest:
        return
    [next_fd] = yield [("HGET", handle.keys.record, "next_fd")]
    if next_fd is None:
        if not handle.may_be_collected():
            raise StoreLostData(f"process {handle.id}", "it no longer exists, nor do its descriptors")
        return
    with decoding(f"the record of process {handle.id}"):
        lost = whole_number(next_fd) <= number
    if lost:
        raise StoreLostData(fd, f"{handle.id} no longer has this number")


def content_info(handle: ProcessHandle, fd: str) -> Operation[ContentInfo]:
    """Return the view of `fd`; no round trip if it is cached."""
    view = handle.known(fd)
    if view is None:
        view, _ = yield from resolve(handle, fd)
    return view


def reads_content(
    work: Callable[Concatenate[ProcessHandle, str, P], Operation[T]],
) -> Callable[Concatenate[ProcessHandle, str, P], Operation[T]]:
    """Make an operation on a descriptor raise `DamagedRecord` if the metadata, index or pages of the
    content cannot be decoded."""

    @wraps(work)
    def checked(handle: ProcessHandle, fd: str, /, *more: P.args, **named: P.kwargs) -> Operation[T]:
        try:
            return (yield from work(handle, fd, *more, **named))
        except UNREADABLE as error:
            handle.forget(fd)
            raise damage(content_name(handle, fd), error) from error

    return checked


def content_name(handle: ProcessHandle, fd: str) -> str:
    """Return the name of a descriptor's content for error messages."""
    return f"{fd} of process {handle.id}"


def retry_if_gone(handle: ProcessHandle, fd: str, attempt: Callable[[], Operation[T]]) -> Operation[T]:
    """Run an attempt and return its result. If the content cached as `fd` is gone, resolve it again and
    retry once, so that the error names the descriptors that exist."""
    for _ in range(2):
        try:
            return (yield from attempt())
        except NotFound:
            if handle.known(fd) is None:
                raise
        yield from resolve(handle, fd)
    raise StoreLostData(fd, "a part of its text or of its index is missing")


def group_with(view: ContentInfo, page: int) -> Operation[Group]:
    """Return the index group that describes `page`; one round trip if it is not cached."""
    first = group_of(page)
    group = view.groups.get(first)
    if group is None:
        value, created = yield [("HGET", view.keys.index, first), view.proof]
        view.check(created, complete=value is not None)
        group = view.learn(first, value)
    return group
