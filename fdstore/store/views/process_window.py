"""Parts of what a process has, for a page: some of its descriptors, and some of its children.

`descriptors.listing` fetches a whole table. These read a window of numbers instead where a table is
large, so that a page costs the same whatever a process holds.
"""

from __future__ import annotations

from contextlib import suppress

from fdstore.errors import DamagedRecord
from fdstore.model.records import Descriptor, ProcessRecord, Record, TreeLimits, Unreadable
from fdstore.store.contents.descriptors import listing
from fdstore.store.contents.naming import look_up
from fdstore.store.keys import ProcessKeys, is_content
from fdstore.store.outcomes import by_number
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes.process_records import decode_reply
from fdstore.store.record_format import decode_ordinal, decoding, replies_or_damage, show_bytes, unreadable
from fdstore.store.views.shown_processes import fold_lanes
from fdstore.wire.operation import Operation

SMALL_TABLE = 300
"""A table of at most so many descriptors is shown whole."""

WINDOW = 100
"""Descriptor numbers looked at in a larger one."""

MAX_CHILDREN = 50


class DescriptorWindow(Record, frozen=True, kw_only=True):
    """Some descriptors of a process, of `total`: all, or of a large table those of the numbers from
    `first` up to `before` - 1, which leaves out names and references. `earlier` is the next `before`
    (None: no more)."""

    descriptors: list[Descriptor]
    total: int
    is_whole: bool
    first: int = 1
    before: int = 0
    earlier: int | None = None
    unreadable: tuple[Unreadable, ...] = ()


def descriptor_window(keys: ProcessKeys, before: int = 0) -> Operation[DescriptorWindow]:
    """Return the descriptors of a process; of a large table the last ones below the number `before` (0:
    at its end). Three round trips."""
    handle = ProcessHandle(keys, TreeLimits())
    total, next_fd = yield [("HLEN", keys.fds), ("HGET", keys.record, "next_fd")]
    if total <= SMALL_TABLE and not before:
        found = yield from listing(handle)
        return DescriptorWindow(
            descriptors=found.descriptors,
            total=found.total,
            is_whole=True,
            unreadable=tuple(found.unreadable),
        )
    with decoding(f"the record of process {keys.process}"):
        end = decode_ordinal(next_fd or 1)
    before = min(before, end) if before else end
    first = max(1, before - WINDOW)
    looked_up = yield from look_up(handle, [f"fd:{number}" for number in range(first, before)])
    return DescriptorWindow(
        descriptors=[each for each in looked_up if isinstance(each, Descriptor)],
        total=total,
        is_whole=False,
        first=first,
        before=before,
        earlier=first if first > 1 else None,
        unreadable=tuple(unreadable(each) for each in looked_up if isinstance(each, DamagedRecord)),
    )


def descriptor_names(keys: ProcessKeys) -> Operation[tuple[str, ...]]:
    """Return the names of the descriptors of a process, by number; of a large table the last ones, without
    names and references. Two round trips."""
    total, next_fd = yield [("HLEN", keys.fds), ("HGET", keys.record, "next_fd")]
    if total <= SMALL_TABLE:
        [flat] = yield [("HGETALL", keys.fds)]
        found = [
            show_bytes(name)
            for name, content in zip(flat[::2], flat[1::2], strict=True)
            if is_content(keys.tree, content)
        ]
        return tuple(sorted(found, key=by_number))
    end = 1
    with suppress(ValueError):
        end = decode_ordinal(next_fd)
    numbered = [f"fd:{number}" for number in range(max(1, end - WINDOW), end)]
    if not numbered:
        return ()
    [held] = yield [("HMGET", keys.fds, *numbered)]
    return tuple(fd for fd, content in zip(numbered, held, strict=True) if content is not None)


class Children(Record, frozen=True, kw_only=True):
    """The last children of a process, oldest first, and how many it has created, the lanes of a call as one;
    None if that are more than are looked at."""

    children: list[ProcessRecord]
    total: int | None


def children_of(keys: ProcessKeys, next_child: int) -> Operation[Children]:
    """Return the last children of a process whose next child has this number, the lanes of a call as one. At
    most two round trips."""
    numbers = range(max(1, next_child - MAX_CHILDREN), next_child)
    ids = [f"{keys.process}.{number}" for number in numbers]
    found: list[ProcessRecord] = []
    replies = yield from replies_or_damage(
        [("HGETALL", ProcessKeys(keys.tree, process).record) for process in ids]
    )
    for process, reply in zip(ids, replies, strict=True):
        if isinstance(reply, list) and reply:
            try:
                found.append(decode_reply(process, reply)[0])
            except DamagedRecord:
                continue  # the page of the tree names it
    folded = yield from fold_lanes(keys.tree.prefix, found)
    lanes = len(found) - len(folded)
    return Children(children=folded, total=next_child - 1 - lanes if next_child - 1 <= MAX_CHILDREN else None)
