"""Resolve descriptors to contents.

One script (`resolve.lua`) resolves a descriptor and fetches the metadata and the part of the index a reader
needs, so a first read costs one round trip for a page and two for a range.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, Literal, ParamSpec, TypeVar

from fdstore.errors import (
    Conflict,
    DamagedRecord,
    NotFound,
    StoreLostData,
)
from fdstore.store.content_info import ContentGone, ContentInfo, Unit, descriptor_of
from fdstore.store.contents.cold_pages import locate_bytes, missing_group
from fdstore.store.contents.page_fields import fields_of, joined
from fdstore.store.hashes import pairs
from fdstore.store.keys import ContentKeys, TreeKeys, content_keys
from fdstore.store.outcomes import outcome
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.record_format import UNREADABLE, damage, decode_count, decoding, show_bytes
from fdstore.text.index import Group, group_of
from fdstore.wire.operation import Batch, Command, Operation, Upkeep
from fdstore.wire.scripts import script

T = TypeVar("T")


P = ParamSpec("P")


def resolve(
    handle: ProcessHandle,
    fd: str,
    *,
    page: int = 0,
    unit: Unit | Literal["bytes"] | None = None,
    first: int = 0,
    last: int = 0,
) -> Operation[tuple[ContentInfo, bytes | None]]:
    """Resolve `fd` in Redis, ignoring the cache. Return the content and the text of `page`. With `unit`, also
    fetch the index groups that hold the LFs or characters `first` and `last`; with "bytes", find the pages
    that hold these bytes of a text (counted from 0), and return "FIRST-PAGE BYTES-BEFORE-IT LAST-PAGE" in
    place of a page's text. One round trip; one more for the index of a cold content, if it is with the
    checksums, and two more for the reader that finds an expired writer and breaks its stream.

    Most contents are read by the process that created them. So the page is requested from this process's
    own keys, in the batch of the script, which then only confirms the guess: text that passes through Lua
    takes twice the time.
    """
    tree = handle.keys.tree
    expected = f"{handle.id}/{fd[3:]}" if page and fd.startswith("fd:") else ""
    own, group = ContentKeys(f"{handle.keys.record}:{fd}"), group_of(page)
    while True:
        command = script("resolve")(
            tree=tree.record,
            fd_table=handle.keys.fds,
            expected_record=own.record,
            fd=fd,
            wanted=page,
            expected=expected,
            unit=unit or "",
            first_position=first,
            last_position=last,
        )
        batch: Batch = [command]
        if expected:
            text = ("HMGET", own.pages, *fields_of((page,)))
            batch += [text, ("HGET", own.index, group), ("HGETALL", own.record)]
        reply, *direct = yield batch
        if reply is None and not expected:
            raise DamagedRecord(content_name(handle, fd), "it names no content")
        if reply is None:
            values, value, flat = direct
            [page_text] = joined(values)
            name, groups, live = expected, ([group, value] if value else []), []
            if not flat:
                expected = ""  # closed after the script ran
                continue
        else:
            if reply[0] == b"lent":
                torn = content_keys(tree, show_bytes(reply[1]))
                moved = yield Upkeep([script("restore_pages")(pages=torn.pages, lent=torn.lent)])
                if moved is None or outcome(moved[0], handle.id) == [b"0"]:
                    raise StoreLostData(fd, f"its pages are still under {torn.lent}")
                continue
            try:
                content, flat, page_text, groups, *live = outcome(reply, handle.id)
            except NotFound as error:
                yield from _check_missing(handle, fd)
                handle.forget(fd)
                raise error
            name = show_bytes(content)
        with decoding(content_name(handle, fd)):
            fields = pairs(flat)
            created = fields.get("created_at", "").encode()
            if not created:
                raise StoreLostData(fd, "its record is missing")
            handle.meet(fd, name, created)
            info = handle.last_seen(fd)
            if info is None or (info.content, info.created) != (name, created) or live:
                keys_of = own if reply is None else content_keys(tree, name)
                info = ContentInfo(
                    name, keys_of, descriptor_of(fd, fields), created, is_split="split" in fields
                )
            if live:
                if live[0] is None:
                    raise LookupError("its last page is missing")
                info.last_page, info.writer_left_s, info.is_torn = live[0], float(live[1]), len(live) > 2
            for i in range(0, len(groups), 2):
                if groups[i + 1] is not None:
                    info.learn(int(groups[i]), groups[i + 1])
                elif unit and "index" not in fields:
                    yield from missing_group(info, int(groups[i]), info.created)
            if "index" in fields:  # short, without a key of its own; `info` keeps it
                info.learn(1, fields["index"].encode())
        if unit == "bytes" and page_text and fields.get("tier"):
            page_text = yield from locate_bytes(info, first, last, page_text)
            if page_text is None:
                continue
        if live and info.descriptor.state == "open" and info.writer_left_s <= 0:
            if (yield Upkeep([lost_writer(tree, name)])) is not None:
                continue
            # another client will break it; until then, read what is stored and poll
            info.writer_left_s = RENEWS_WITHIN_S
        return handle.remember(fd, info), page_text


RENEWS_WITHIN_S = 5.0
"""Within this time after Redis becomes available again, a live writer has renewed its lease."""


def lost_writer(tree: TreeKeys, content: str) -> Command:
    """Return the command that breaks a stream if its writer's lease has expired, and otherwise schedules
    the next check."""
    return script("lost_writer")(
        tree=tree.record,
        writers=tree.writers,
        content=content_keys(tree, content).record,
        content_id=content,
        renews_s=RENEWS_WITHIN_S,
    )


def raise_if_lost(handle: ProcessHandle) -> Operation[None]:
    """Raise `StoreLostData` for a process that does not exist, if this client has seen its contents and its
    tree cannot have been collected and was not removed, which would have kept a number above all of them."""
    if not handle.has_met or handle.may_be_collected():
        return
    [next_fd] = yield [("HGET", handle.keys.tree.earlier_numbers, "next_fd")]
    with decoding(f"the numbers of earlier trees {handle.keys.tree.tree}"):
        if next_fd is not None and decode_count(next_fd) > handle.highest:
            return
    raise StoreLostData(f"process {handle.id}", "it no longer exists, nor do its descriptors")


def _check_missing(handle: ProcessHandle, fd: str) -> Operation[None]:
    """Raise `StoreLostData` if a missing descriptor was lost, not closed: its process does not exist, or by
    the process's counter its number, which this client has seen, was never allocated."""
    number = int(fd[3:]) if fd.startswith("fd:") else 0
    if not handle.has_met or number > handle.highest:
        return
    [next_fd] = yield [("HGET", handle.keys.record, "next_fd")]
    if next_fd is None:
        yield from raise_if_lost(handle)
        return
    with decoding(f"the record of process {handle.id}"):
        lost = decode_count(next_fd) <= number
    if number and lost:
        raise StoreLostData(fd, f"{handle.id} no longer has this number")


def content_info(handle: ProcessHandle, fd: str) -> Operation[ContentInfo]:
    """Return the content of `fd`; no round trip if it is cached."""
    info = handle.known(fd)
    if info is None:
        info, _ = yield from resolve(handle, fd)
    return info


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


NAME_ATTEMPTS = 100
"""The most attempts at a read through a name that is given to another content meanwhile."""


def retry_if_gone(handle: ProcessHandle, fd: str, attempt: Callable[[], Operation[T]]) -> Operation[T]:
    """Run an attempt and return its result. If the content is gone, begin again: through a name with the
    content that it means now; through a number once, so that the error names the descriptors that exist."""
    for _ in range(2 if fd.startswith("fd:") else NAME_ATTEMPTS):
        try:
            return (yield from attempt())
        except ContentGone:
            yield from resolve(handle, fd)
    if fd.startswith("fd:"):
        raise StoreLostData(fd, "a part of its text or of its index is missing")
    raise Conflict(fd, "other")


def explain_if_gone(handle: ProcessHandle, fd: str, attempt: Callable[[], Operation[T]]) -> Operation[T]:
    """Run an attempt that cannot begin again, and return its result. If the content is gone, raise what
    explains it: an error that names the existing descriptors, or `Conflict` for a name that means another
    content by now."""
    try:
        return (yield from attempt())
    except ContentGone as error:
        yield from resolve(handle, fd)
        raise error if fd.startswith("fd:") else Conflict(fd, "other") from error


def group_with(info: ContentInfo, page: int) -> Operation[Group]:
    """Return the index group that describes `page`; one round trip if it is not cached, two if it is with the
    checksums of a cold content."""
    first = group_of(page)
    group = info.groups.get(first)
    if group is None:
        value, created = yield [("HGET", info.keys.index, first), info.proof]
        if value is None:
            return (yield from missing_group(info, page, created))
        info.check(created)
        group = info.learn(first, value)
    return group
