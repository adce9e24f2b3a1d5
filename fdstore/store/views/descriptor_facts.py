"""Facts about a descriptor that a screen shows beside its text: its content, who made it, who holds it.

The work is bounded however many processes hold a content, and nothing is written.
"""

from __future__ import annotations

from fdstore.errors import DamagedRecord
from fdstore.model.records import Descriptor, ProcessRecord, Record
from fdstore.store.clock import seconds_of
from fdstore.store.contents.resolving import resolve
from fdstore.store.hashes import pairs
from fdstore.store.keys import ProcessKeys, content_keys, is_content, producer_of
from fdstore.store.objects.records import path_of
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes.process_records import decode_process
from fdstore.store.record_format import UNREADABLE, replies_or_damage, required, show_bytes
from fdstore.store.views.usage import Holder, describe_holders
from fdstore.wire.operation import Operation

MAX_HOLDERS = 50
"""The most holders of a content that are described."""


class DescriptorFacts(Record, frozen=True, kw_only=True):
    """A descriptor, the id of its content (`triage/3`) and the number of the descriptor it was made under,
    its producer's record (None if it was removed or cannot be read), and the processes that hold it: their
    number, and up to `MAX_HOLDERS` of them. `now_s` is the time of Redis, `where` the path of the object of a
    cold content below the place that the operator set."""

    descriptor: Descriptor
    content: str
    producer: ProcessRecord | None
    holder_count: int
    holders: tuple[Holder, ...]
    now_s: float
    where: str = ""


def descriptor_facts(handle: ProcessHandle, fd: str) -> Operation[DescriptorFacts]:
    """Return what is known of a descriptor. Three round trips. Raises `NotFound`, `DamagedRecord`."""
    info, _ = yield from resolve(handle, fd)
    tree, content = handle.keys.tree, info.content.encode()
    if not is_content(tree, content):
        raise DamagedRecord(f"{fd} of process {handle.id}", f"{show_bytes(content)} is not a content")
    maker = ProcessKeys(tree, show_bytes(producer_of(content)))
    holders = content_keys(tree, info.content).holders
    count, some, flat, now, where = yield from replies_or_damage(
        [
            ("SCARD", holders),
            ("SRANDMEMBER", holders, MAX_HOLDERS),
            ("HGETALL", maker.record),
            ("TIME",),
            ("HGET", info.keys.record, "where"),
        ]
    )
    # a content that its producer alone holds has no list of holders
    members = [show_bytes(each) for each in required(some)] or [maker.process]
    return DescriptorFacts(
        descriptor=info.descriptor,
        content=info.content,
        producer=_producer(maker.process, flat),
        holder_count=required(count) or 1,
        holders=tuple((yield from describe_holders(tree, fd, content, sorted(members)))),
        now_s=seconds_of(now),
        where=path_of(tree, show_bytes(where)) if isinstance(where, bytes) else "",
    )


def _producer(process: str, flat: list[bytes] | DamagedRecord) -> ProcessRecord | None:
    if not flat or isinstance(flat, DamagedRecord):
        return None
    try:
        return decode_process(process, pairs(flat))
    except UNREADABLE:
        return None


def content_of(handle: ProcessHandle, fd: str) -> Operation[tuple[Descriptor, str]]:
    """Return a descriptor, and the id of its content with its creation time, which together never mean
    another text. Raises `NotFound`."""
    info, _ = yield from resolve(handle, fd)
    return info.descriptor, f"{info.content}@{info.created.decode('ascii', 'replace')}"
