"""Facts about a descriptor that a screen shows beside its text: its content, who made it, who holds it.

The work is bounded however many processes hold a content, and nothing is written.
"""

from __future__ import annotations

from fdstore.errors import DamagedRecord
from fdstore.records import Descriptor, ProcessRecord, Record
from fdstore.store.clock import seconds_of
from fdstore.store.content_info import pairs
from fdstore.store.contents.resolving import resolve
from fdstore.store.keys import ProcessKeys, content_keys, is_content, producer_of
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes.process_records import decode_process
from fdstore.store.record_format import UNREADABLE, replies_or_damage, show_bytes
from fdstore.store.views.usage import Holder
from fdstore.wire.operation import Operation

MAX_HOLDERS = 50
"""The most holders of a content that are described."""


class DescriptorFacts(Record, frozen=True, kw_only=True):
    """A descriptor, the id of its content (`triage/3`) and the number of the descriptor it was made under,
    its producer's record (None if it was removed or cannot be read), and the processes that hold it: their
    number, and up to `MAX_HOLDERS` of them. `now_s` is the time of Redis."""

    descriptor: Descriptor
    content: str
    producer: ProcessRecord | None
    holder_count: int
    holders: tuple[Holder, ...]
    now_s: float


def descriptor_facts(handle: ProcessHandle, fd: str) -> Operation[DescriptorFacts]:
    """Return what is known of a descriptor. Three round trips. Raises `NotFound`, `DamagedRecord`."""
    info, _ = yield from resolve(handle, fd)
    tree, content = handle.keys.tree, info.content.encode()
    if not is_content(tree, content):
        raise DamagedRecord(f"{fd} of process {handle.id}", f"{show_bytes(content)} is not a content")
    maker = ProcessKeys(tree, show_bytes(producer_of(content)))
    holders = content_keys(tree, info.content).holders
    count, some, flat, now = yield from replies_or_damage(
        [("SCARD", holders), ("SRANDMEMBER", holders, MAX_HOLDERS), ("HGETALL", maker.record), ("TIME",)]
    )
    for reply in (count, some):
        if isinstance(reply, DamagedRecord):
            raise reply
    # a content that its producer alone holds has no list of holders
    members = [show_bytes(each) for each in some] or [maker.process]
    return DescriptorFacts(
        descriptor=info.descriptor,
        content=info.content,
        producer=_producer(maker.process, flat),
        holder_count=count or 1,
        holders=tuple((yield from _holders(handle, fd, content, sorted(members)))),
        now_s=seconds_of(now),
    )


def _producer(process: str, flat: list[bytes] | DamagedRecord) -> ProcessRecord | None:
    if not flat or isinstance(flat, DamagedRecord):
        return None
    try:
        return decode_process(process, pairs(flat))
    except UNREADABLE:
        return None


def _holders(handle: ProcessHandle, fd: str, content: bytes, ids: list[str]) -> Operation[list[Holder]]:
    # a holder has the content under this id, or under the one it was made with; its other names are not
    # looked for: that would read its whole table
    made = f"fd:{show_bytes(content).rpartition('/')[2]}"
    of = [ProcessKeys(handle.keys.tree, each) for each in ids]
    reads = [read for each in of for read in (("HGET", each.record, "state"), ("HMGET", each.fds, fd, made))]
    replies = yield from replies_or_damage(list(reads))
    found = []
    for each, state, table in zip(of, replies[::2], replies[1::2], strict=True):
        named = [None, None] if isinstance(table, DamagedRecord) else table
        own = next((name for name, held in zip((fd, made), named, strict=True) if held == content), None)
        known = "unreadable" if isinstance(state, DamagedRecord) else show_bytes(state or b"gone")
        found.append(Holder(process=each.process, state=known, fd=own))
    return found


def content_of(handle: ProcessHandle, fd: str) -> Operation[tuple[Descriptor, str]]:
    """Return a descriptor, and the id of its content with its creation time, which together never mean
    another text. Raises `NotFound`."""
    info, _ = yield from resolve(handle, fd)
    return info.descriptor, f"{info.content}@{info.created.decode('ascii', 'replace')}"
