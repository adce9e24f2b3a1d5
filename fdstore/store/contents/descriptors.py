"""Descriptors of a process: list them, show their state, drop them."""

from __future__ import annotations

import re

import msgspec

from fdstore.errors import NotFound
from fdstore.model.records import Descriptor, Unreadable
from fdstore.store.content_info import descriptor_of
from fdstore.store.contents.naming import look_up
from fdstore.store.contents.resolving import content_name, raise_if_lost, resolve
from fdstore.store.hashes import pairs
from fdstore.store.keys import content_keys, is_content
from fdstore.store.outcomes import outcome
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.record_format import (
    damage,
    decoding,
    replies_or_damage,
    required,
    show_bytes,
    skipping,
    unreadable,
)
from fdstore.wire.operation import Operation, new_op
from fdstore.wire.scripts import script, text


def stat(handle: ProcessHandle, fd: str) -> Operation[Descriptor]:
    """Return the current descriptor."""
    info, _ = yield from resolve(handle, fd)
    return info.descriptor


class Listing(msgspec.Struct, frozen=True):
    """Descriptors in number order, their total number, and the damaged ones that were skipped. `last` is the
    number of the last one if others follow, else None."""

    descriptors: list[Descriptor]
    total: int
    unreadable: list[Unreadable]
    last: int | None = None


def holds_any(handle: ProcessHandle) -> Operation[bool]:
    """Return whether the process holds any descriptor, in one round trip."""
    [count] = yield [("HLEN", handle.keys.fds)]
    return bool(count)


def list_fds(handle: ProcessHandle) -> Operation[list[Descriptor]]:
    """Return all descriptors: by number, then the named ones by creation. Two round trips."""
    return (yield from listing(handle)).descriptors


def list_page(
    handle: ProcessHandle, start: int, count: int | None
) -> Operation[tuple[list[Descriptor], int]]:
    """Return up to `count` descriptors of the process in number order, from the `start`-th (1-based) on, and
    their total number. Two round trips."""
    found = yield from listing(handle, start, count)
    return found.descriptors, found.total


def listing(
    handle: ProcessHandle, start: int = 1, count: int | None = None, *, after: int = 0
) -> Operation[Listing]:
    """As `list_page`, with the skipped ones, of the descriptors whose numbers are above `after`. Raises
    `DamagedRecord` for the table itself.

    The first round trip fetches the whole table. It is an unordered hash, and its numbers have gaps where
    descriptors were closed or named, so the first fifty can only be determined from all of them. A sorted
    set beside it would help, but every script that creates, shares, forks or drops a descriptor would have
    to maintain it, for a rare call.
    """
    [flat] = yield [("HGETALL", handle.keys.fds)]
    if not flat and handle.has_met:  # else it is new, as far as this client knows
        [exists] = yield [("EXISTS", handle.keys.record)]
        if not exists:
            yield from raise_if_lost(handle)
            raise NotFound(f"process {handle.id}")
    tree, known = handle.keys.tree, []
    damaged: list[Unreadable] = []
    for name, content in zip(flat[::2], flat[1::2], strict=True):
        if is_renamed(name, content):
            continue
        try:
            if not (is_content(tree, content) and _ID.match(name)):
                raise ValueError(f"{show_bytes(content)} is not a content of its tree")
            known.append((text(name), text(content)))
        except ValueError as error:
            damaged.append(unreadable(damage(content_name(handle, show_bytes(name)), error)))
    table = sorted(known, key=_number)
    handle.see(*(fd for fd, _ in table))
    rest = [entry for entry in table if _number(entry) > after][start - 1 :]
    page = rest[:count]
    last = _number(page[-1]) if page and len(page) < len(rest) else None
    found: list[Descriptor] = []
    gone: list[str] = []
    replies = yield from replies_or_damage(
        [("HGETALL", content_keys(tree, content).record) for _, content in page]
    )
    for (fd, _), reply in zip(page, replies, strict=True):
        with skipping(damaged), decoding(content_name(handle, fd)):
            if required(reply):
                found.append(descriptor_of(fd, pairs(reply)))
            else:
                gone.append(fd)
    if gone:  # closed meanwhile, or a name that means another content by now
        for each in (yield from look_up(handle, gone)):
            with skipping(damaged):
                found.append(required(each))
    return Listing(found, len(known), damaged, last)


def is_renamed(name: bytes, content: bytes) -> bool:
    """Return whether this entry of a table was left by a torn rename; it names nothing."""
    return not content and name.startswith(b"name:")


_ID = re.compile(rb"fd:[1-9][0-9]{0,15}\Z|(?!fd:)[a-z]+:.")


def _number(entry: tuple[str, str]) -> int:
    # a name has the number of its content, which is above all numbers of descriptors
    fd, content = entry
    return int(fd[3:] if fd.startswith("fd:") else content.rpartition("/")[2])


def close(handle: ProcessHandle, fd: str, *, call_id: str | None = None) -> Operation[None]:
    """Drop a descriptor; its content is deleted with the last holder."""
    command = script("close")(**handle.changing_once(new_op(), call_id), process_id=handle.id, fd=fd)
    [reply] = yield [command]
    handle.forget(fd)
    outcome(reply, handle.id)
