"""What a client knows of the contents its process holds, and finding out more.

A `ProcessHandle` is one process as seen by one client: its keys, the attempt it writes under, and a
`ContentInfo` of each content it has met. Metadata and index of a sealed content never change, so a view of
one is kept; pages are fetched each time. An open content is looked up anew for every read.

A content is identified by its name (`triage/3`) and by when it was created, to the microsecond, by the
clock of Redis. A Redis that lost the tail of its log, or was emptied, may give a number to another text.
So every read asks, in the same round trip, when the content was created, and raises `StoreLostData`
rather than return a text that is not the one this client knows. A client that has seen a number also
never makes a new descriptor at or below it.

One script, `resolve`, resolves a descriptor, fetches the metadata and the part of the index a reader
needs, so the first read of anything costs one round trip for a page and two for a range.
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
"""Contents a namespace remembers."""

MAX_MET = 10_000
"""Contents of which a namespace remembers when they were created."""

MAX_GROUPS = 256
"""Groups of the index (of 256 pages each) remembered for a content."""

DAY_S = 86_400
NOTES_PER_RETENTION = 100
"""Reads note the use of a tree at most once in this part of its retention."""

CEILINGS_EVERY_S = 60.0
"""A client that writes reads the operator's ceilings again after this time (see `ceilings`)."""

EXTRACTION = "extraction"
"""The source of a content that was cut from another, and knows its origin."""

_RANGE = re.compile(r"[0-9]{1,16}-[0-9]{1,16}", re.ASCII)

Unit = Literal["newlines", "chars"]


class ContentInfo:
    """One content: its metadata, where it is, and the parts of its index seen so far.

    Of an open one it is a snapshot. All its pages but the last are final; that one may have been split
    by the time it is fetched, so its text comes with the metadata, as `last_page`. `writer_left_s` is
    how long the writer may still be silent.

    `is_torn` says of a stream that its pages and index may hold more than its totals, after a crash tore the
    log of Redis (see lua/common.lua). It then has its `last_page` also when it has ended.
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
        """What to ask beside each read, after it; `check` judges the reply."""
        return ("HGET", self.keys.record, "created_at")

    def check(self, created: bytes | None, *, complete: bool = True) -> None:
        """Judge the reply to `proof`; `complete` says that everything else that was asked for was there.

        Raises `NotFound` (released), `StoreLostData`.
        """
        fd = self.descriptor.fd
        if created is None:
            raise NotFound(fd)
        if created != self.created:
            raise StoreLostData(fd, "another text has its number now")
        if not complete:
            raise StoreLostData(fd, "a part of its text or of its index is missing")

    def learn(self, first: int, value: bytes) -> Group:
        """Takes a field of the index."""
        if self.is_torn and self.last_page is not None and first == group_of(self.descriptor.pages):
            value = ended_at(value, self.descriptor.pages, self.descriptor.bytes, self.last_page)
        return self.groups.put(first, Group(first, value))

    def group_at(self, unit: Unit, position: int) -> Group | None:
        """The known group that holds this LF or character. Position 0 is in the first group, a
        position after the last is in the last."""
        known = sorted(self.groups.snapshot())
        begins_later = bisect_left(known, position, key=lambda entry: getattr(entry[1].start, unit))
        # only the first group can hold what nothing comes before
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
        """When to read the operator's ceilings, by `time.monotonic`."""

    def must_note(self) -> bool:
        """Whether it is time to note that the tree is in use, by a clock that sleeping machines keep."""
        return bool(self._note_every_s) and not 0 <= time.time() - self._noted_at <= self._note_every_s

    def noted(self) -> None:
        """Record that the use of the tree was noted."""
        self._noted_at = time.time()

    def may_be_collected(self) -> bool:
        """Whether the tree may be gone because nobody used it for its retention."""
        retention_s = self._note_every_s * NOTES_PER_RETENTION
        return bool(retention_s) and not 0 <= time.time() - self._noted_at < retention_s

    def meet(self, fd: str, content: str, created: bytes) -> None:
        """Remember a content. Raises `StoreLostData` if its name belonged to another one before."""
        if self._met.first(content, created) != created:
            raise StoreLostData(fd, "another text has its number now")
        self.see(fd)

    def see(self, *fds: str) -> None:
        """Remember descriptor numbers: a new one will be higher."""
        highest = max((int(fd[3:]) for fd in fds if fd.startswith("fd:")), default=0)
        with self._numbers_lock:
            self.highest = max(self.highest, highest)

    @property
    def id(self) -> str:
        return self.keys.process

    def see_child(self, process: str) -> None:
        """Remember the number of a child: a new one will be higher."""
        with self._numbers_lock:
            self.highest_child = max(self.highest_child, int(process.rpartition(".")[2]))

    def known(self, fd: str) -> ContentInfo | None:
        """The view of a sealed content met before."""
        return self._views.get(fd)

    def remember(self, fd: str, view: ContentInfo) -> ContentInfo:
        # a number means one content for ever; a name may be given to another one by another client
        if view.descriptor.state != "open" and not view.is_torn and not fd.startswith("ref:"):
            self._views.put(fd, view)
        return view

    def forget(self, fd: str) -> None:
        self._views.forget(fd)

    def answer_slot(self, op: str, call_id: str | None) -> tuple[str, str]:
        """Where a write leaves its answer: the key, and the field of it for a tool call."""
        return (self.keys.tree.answer(op), "") if call_id is None else (self.keys.calls, call_id)


def pairs(flat: list[bytes]) -> dict[str, str]:
    """The reply of HGETALL as a dict."""
    texts = map(bytes.decode, flat)
    return dict(zip(texts, texts, strict=True))


def descriptor_of(fd: str, fields: dict[str, str]) -> Descriptor:
    """The descriptor that a content's metadata says, under the name this process has for it. Raises one of
    `decoding.UNREADABLE`, also when its numbers cannot be true: readers count by them."""
    said: dict[str, object] = {**fields, "fd": fd}
    if fields["state"] != "sealed":
        said.pop("exit_code", None)  # of an end that was torn from the log, see lua/common.lua
    if fields["state"] != "broken":
        said.pop("reason", None)
    if "origin" in fields and fields["source"] != EXTRACTION:
        del said["origin"]  # of a content that was torn and had the same number
    elif "origin" in fields:
        said["origin"] = msgspec.json.decode(fields["origin"])
    found = msgspec.convert(said, Descriptor, strict=False)  # not strict: Redis holds numbers as text
    timestamp(fields["created_at"])
    origin = found.origin
    if (
        not 0 <= found.bytes <= MAX_INTEGER
        or not (0 <= found.chars <= found.bytes and 0 <= found.lines <= found.bytes)
        # no page is empty but that of an empty content
        or not (1 <= found.pages <= max(found.bytes, 1) and 1 <= found.page_size <= MAX_INTEGER)
        or (origin and not (_RANGE.fullmatch(origin.chars) and _RANGE.fullmatch(origin.lines)))
    ):
        raise ValueError(f"{found.bytes} bytes in {found.pages} pages and the like cannot be")
    return found


def resolve(
    handle: ProcessHandle, fd: str, *, page: int = 0, unit: Unit | None = None, first: int = 0, last: int = 0
) -> Operation[tuple[ContentInfo, bytes | None]]:
    """Resolves `fd` afresh: its view, and the text of `page`. With `unit`, the view also learns the
    groups that hold the LFs or characters `first` and `last`. One round trip; two more for whoever
    is the first to find that a stream's writer is gone, and breaks it.

    Most contents were made by the process that reads them. So a page is asked for there, beside the
    script, which in that case only confirms it: texts that pass through Lua take twice the time.
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
                expected = ""  # closed since the script saw it
                continue
        else:
            if reply[0] == b"lent":
                torn = content_keys(tree, show_bytes(reply[1]))
                try:
                    [moved] = yield [script("put_back")((torn.pages, torn.lent))]
                except TAKES_NO_WRITES:
                    moved = [b"ok", b"0"]
                if outcome(moved, handle.id) == [b"0"]:
                    raise StoreLostData(fd, f"its pages are not in their place but under {torn.lent}")
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
                # broken by whoever may write; until then it is as it is stored, and looked at now and then
                view.writer_left_s = RENEWS_WITHIN_S
        return handle.remember(fd, view), page_text


TAKES_NO_WRITES = (StoreFull, StoreReadOnly, StoreRefused, UnsafeStore)
"""Why a write that only tidies is left to others: no reason not to read."""

RENEWS_WITHIN_S = 5.0
"""How soon a writer that lives has renewed its lease when Redis was away and is back."""


def lost_writer(tree: TreeKeys, content: str) -> Command:
    """Make the command that breaks a stream if its writer is gone, and else notes when to look again."""
    keys = (tree.record, tree.writers, content_keys(tree, content).record)
    return script("lost_writer")(keys, content, RENEWS_WITHIN_S)


def _check_numbers(handle: ProcessHandle, fd: str) -> Operation[None]:
    """Raise `StoreLostData` if a descriptor that this client has seen is missing because its number was
    never given out, as far as Redis knows, rather than because it was closed."""
    number = int(fd[3:]) if fd.startswith("fd:") else 0
    if not 0 < number <= handle.highest:
        return
    [next_fd] = yield [("HGET", handle.keys.record, "next_fd")]
    if next_fd is None:
        if not handle.may_be_collected():
            raise StoreLostData(f"process {handle.id}", "it is gone with all its descriptors")
        return
    with decoding(f"the record of process {handle.id}"):
        lost = whole_number(next_fd) <= number
    if lost:
        raise StoreLostData(fd, f"{handle.id} has no such number any more")


def content_info(handle: ProcessHandle, fd: str) -> Operation[ContentInfo]:
    """The view of `fd`; no round trip when it is known."""
    view = handle.known(fd)
    if view is None:
        view, _ = yield from resolve(handle, fd)
    return view


def reads_content(
    work: Callable[Concatenate[ProcessHandle, str, P], Operation[T]],
) -> Callable[Concatenate[ProcessHandle, str, P], Operation[T]]:
    """Have an operation on the content of a descriptor raise `DamagedRecord` where its metadata, index or
    pages are not what was stored there."""

    @wraps(work)
    def checked(handle: ProcessHandle, fd: str, /, *more: P.args, **named: P.kwargs) -> Operation[T]:
        try:
            return (yield from work(handle, fd, *more, **named))
        except UNREADABLE as error:
            handle.forget(fd)
            raise damage(content_name(handle, fd), error) from error

    return checked


def content_name(handle: ProcessHandle, fd: str) -> str:
    """What people call the content behind a descriptor."""
    return f"{fd} of process {handle.id}"


def retry_if_gone(handle: ProcessHandle, fd: str, attempt: Callable[[], Operation[T]]) -> Operation[T]:
    """Return what the attempt returns. If the content that this client knows as `fd` is gone, look it up
    again, so that the error names what there is."""
    for _ in range(2):
        try:
            return (yield from attempt())
        except NotFound:
            if handle.known(fd) is None:
                raise
        yield from resolve(handle, fd)
    raise StoreLostData(fd, "a part of its text or of its index is missing")


def group_with(view: ContentInfo, page: int) -> Operation[Group]:
    """The group that describes `page`; one round trip when it is not known."""
    first = group_of(page)
    group = view.groups.get(first)
    if group is None:
        value, created = yield [("HGET", view.keys.index, first), view.proof]
        view.check(created, complete=value is not None)
        group = view.learn(first, value)
    return group
