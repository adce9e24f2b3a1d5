"""Names of contents: `put` makes or replaces one in one atomic step, `find`, `rename`, listing by prefix.

A name is an entry `name:KEY` in the table of a process, and so works wherever a number does: it is shared,
forked and closed like one. `ref:NAME` is the same for the passages that models name. Beside the table the
names are kept in order (`{triage}:triage.1:names`), so that listing by prefix costs the same beside any
number of other names.
"""

from __future__ import annotations

from typing import Final

import msgspec

from fdstore.errors import InvalidArgument, quoted
from fdstore.records import Descriptor
from fdstore.store.content_info import descriptor_of, pairs
from fdstore.store.outcomes import outcome
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.record_format import decoding
from fdstore.store.resolving import content_name
from fdstore.text.names import check_prefix, name_id
from fdstore.wire.operation import Operation, new_op
from fdstore.wire.scripts import script, text

AT_ONCE = 500
"""Names listed by one request."""

AFTER_ALL_KEYS = b"\xff"
"""Sorts after every text in UTF-8."""


class Absent(msgspec.Struct, frozen=True):
    """The type of `ABSENT`."""

    def __repr__(self) -> str:
        return "fdstore.ABSENT"


ABSENT: Final = Absent()
"""What `put` expects of a name that must not exist yet."""

Expected = Descriptor | Absent | None
"""What `put` expects that a name means: this content, nothing, or (None) anything."""


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
    """Return what a name means, or None. One round trip."""
    encoded = name_id(key).removeprefix("name:").encode()
    found, _ = yield from _list(handle, b"[" + encoded, b"[" + encoded, 1)
    return found[0] if found else None


def list_names(handle: ProcessHandle, prefix: str = "") -> Operation[list[Descriptor]]:
    """Return the descriptors of all names that begin with `prefix`, in the order of their UTF-8. One round
    trip for each `AT_ONCE`."""
    encoded = check_prefix(prefix).encode()
    first, last = b"[" + encoded, b"(" + encoded + AFTER_ALL_KEYS
    listed: list[Descriptor] = []
    while True:
        found, reached = yield from _list(handle, first, last, AT_ONCE)
        listed += found
        if not reached:
            return listed
        first = b"(" + reached


def _list(
    handle: ProcessHandle, first: bytes, last: bytes, count: int
) -> Operation[tuple[list[Descriptor], bytes]]:
    """Return the descriptors of names in a range, and the last name examined, empty at its end. A damaged
    record raises `DamagedRecord`."""
    keys = (handle.keys.tree.record, handle.keys.fds, handle.keys.names)
    [reply] = yield [script("names")(keys, first, last, count)]
    reached, entries = outcome(reply, handle.id)
    found: list[Descriptor] = []
    for name, content, flat in zip(entries[::3], entries[1::3], entries[2::3], strict=True):
        fd = text(name)
        with decoding(content_name(handle, fd)):
            fields = pairs(flat)
            found.append(descriptor_of(fd, fields))
            handle.meet(fd, text(content), fields["created_at"].encode())
    return found, reached


def rename(handle: ProcessHandle, key: str, new_key: str, *, replace: bool = False) -> Operation[None]:
    """Give a named content another name, in one atomic step. A content that has that name is let go of with
    `replace`. One round trip. Raises `NotFound`, `Conflict`, `Fenced`, `InvalidArgument`."""
    answer_key, answer_field = handle.answer_slot(new_op(), None)
    keys = (handle.keys.tree.record, handle.keys.record, handle.keys.fds, answer_key)
    old, new = name_id(key), name_id(new_key)
    arguments = (answer_field, handle.attempt, handle.id, old, new, "1" if replace else "0")
    [reply] = yield [script("rename")(keys, *arguments)]
    handle.forget(old)
    handle.forget(new)
    outcome(reply, handle.id)
