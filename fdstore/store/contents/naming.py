"""Names of contents: `put` makes or replaces one in one atomic step, `find`, `rename`, listing by prefix.

A name is an entry `name:KEY` in the table of a process, and so works wherever a number does: it is shared,
forked and closed like one. `ref:NAME` is the same for the passages that models name. Beside the table the
names are kept in order (`{triage}:triage.1:names`), so that listing by prefix costs the same beside any
number of other names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from fdstore.errors import DamagedRecord, InvalidArgument, quoted
from fdstore.model.flags import check_flag
from fdstore.model.records import Descriptor
from fdstore.store.content_info import descriptor_of
from fdstore.store.contents.resolving import content_name, raise_if_lost
from fdstore.store.hashes import pairs
from fdstore.store.keys import AT_ONCE
from fdstore.store.outcomes import outcome
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.record_format import decoding, required, show_bytes
from fdstore.text.names import NAME, check_prefix, name_id
from fdstore.text.words import joined_words
from fdstore.wire.operation import Operation, new_op
from fdstore.wire.scripts import script, text

AFTER_ALL_KEYS = b"\xff"
"""Sorts after every text in UTF-8."""


class Absent(msgspec.Struct, frozen=True):
    """The type of `ABSENT`."""

    def __repr__(self) -> str:
        return "fdstore.ABSENT"


ABSENT: Final = Absent()
"""The `expect` of `put` for a name that must not exist yet."""

Expected = Descriptor | Absent | None
"""The meaning that `put` expects of a name: this content, nothing, or (None) anything."""


def expectation(expect: object) -> str:
    """Return an expectation as scripts compare it. Raises `InvalidArgument`."""
    if expect is None:
        return ""
    if isinstance(expect, Absent):
        return "absent"
    if isinstance(expect, Descriptor):
        return f"{expect.created_at:.6f} {expect.producer}"
    raise InvalidArgument("expect", f"a descriptor or fdstore.ABSENT is needed, not {quoted(expect)}")


def find(handle: ProcessHandle, key: str) -> Operation[Descriptor | None]:
    """Return what a name means, or None. One round trip. Raises `DamagedRecord`."""
    found = yield from look_up(handle, [name_id(key)])
    return required(found[0]) if found else None


def list_names(handle: ProcessHandle, prefix: str = "") -> Operation[list[Descriptor]]:
    """Return the descriptors of all names that begin with `prefix`, in the order of their UTF-8, without
    damaged ones. One round trip for each `AT_ONCE`."""
    first, last = _range_of(prefix)
    listed: list[Descriptor] = []
    while True:
        found, reached = yield from _ask(handle, AT_ONCE, first, last)
        listed += [each for each in found if isinstance(each, Descriptor)]
        if not reached:
            return listed
        first = b"(" + reached


def page_of_names(
    handle: ProcessHandle, prefix: str, start: int, count: int
) -> Operation[tuple[list[Descriptor], int]]:
    """Return up to `count` descriptors of the names that begin with `prefix`, in the order of their UTF-8,
    from the `start`-th (1-based) on, and the number of all of them. Damaged ones are left out. Two round
    trips for up to `AT_ONCE`."""
    first, last = _range_of(prefix)
    names = handle.keys.names
    total, found = yield [
        ("ZLEXCOUNT", names, first, last),
        ("ZRANGEBYLEX", names, first, last, "LIMIT", start - 1, count),
    ]
    fds = [NAME + key.decode("utf-8", "backslashreplace") for key in found]
    listed: list[Descriptor] = []
    for at in range(0, len(fds), AT_ONCE):
        described = yield from look_up(handle, fds[at : at + AT_ONCE])
        listed += [each for each in described if isinstance(each, Descriptor)]
    return listed, total


def _range_of(prefix: str) -> tuple[bytes, bytes]:
    """Return the first and the last name that begin with `prefix`, as ZRANGEBYLEX takes them."""
    encoded = check_prefix(prefix).encode()
    return b"[" + encoded, b"(" + encoded + AFTER_ALL_KEYS


def look_up(handle: ProcessHandle, fds: Sequence[str]) -> Operation[list[Descriptor | DamagedRecord]]:
    """Return what those of these descriptors mean that exist, each in one atomic step. One round trip."""
    return (yield from _ask(handle, 0, lookups=fds))[0]


def _ask(
    handle: ProcessHandle,
    count: int,
    first: str | bytes = "",
    last: str | bytes = "",
    lookups: Sequence[str] = (),
) -> Operation[tuple[list[Descriptor | DamagedRecord], bytes]]:
    """Return descriptors, or why they cannot be read, and the last name examined, empty at the end."""
    command = script("names")(
        tree=handle.keys.tree.record,
        process=handle.keys.record,
        fd_table=handle.keys.fds,
        names_index=handle.keys.names,
        most_names=count,
        first_name=first,
        last_name=last,
        lookups=lookups,
    )
    [reply] = yield [command]
    if reply[0] == b"gone":
        yield from raise_if_lost(handle)
    reached, entries = outcome(reply, handle.id)
    found: list[Descriptor | DamagedRecord] = []
    for name, content, flat in zip(entries[::3], entries[1::3], entries[2::3], strict=True):
        fd = name.decode("utf-8", "backslashreplace")
        try:
            if not isinstance(flat, list):
                raise DamagedRecord(content_name(handle, fd), show_bytes(flat))
            found.append(_described(handle, fd, content, flat))
        except DamagedRecord as error:
            found.append(error)
    return found, reached


def _described(handle: ProcessHandle, fd: str, content: bytes, flat: list[bytes]) -> Descriptor:
    with decoding(content_name(handle, fd)):
        fields = pairs(flat)
        found = descriptor_of(fd, fields)
        handle.meet(fd, text(content), fields["created_at"].encode())
    return found


def rename(handle: ProcessHandle, key: str, new_key: str, *, replace: bool = False) -> Operation[Descriptor]:
    """Give a named content another name, in one atomic step, and return its descriptor. A content that has
    that name is let go of with `replace`. One round trip. Raises `NotFound`, `Conflict`, `Fenced`,
    `InvalidArgument`."""
    old, new = name_id(key), name_id(new_key)
    command = script("rename")(
        **handle.changing_once(new_op(), None),
        process_id=handle.id,
        fd=old,
        new_fd=new,
        replaces="1" if check_flag("replace", replace) else "0",
        words=joined_words(new_key),
    )
    [reply] = yield [command]
    handle.forget(old)
    handle.forget(new)
    content, flat = outcome(reply, handle.id)
    return _described(handle, new, content, flat)
