"""Measure usage: bytes of text by tree, process and descriptor, contents being stored, and holders.

Nothing here writes or runs a script, so it works on a Redis that is full or read-only, or for a user with
read access alone. All reads are in bounded batches. Damaged records are left out and listed in
`unreadable`.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from fdstore.errors import DamagedRecord, NotFound
from fdstore.model.records import Count, Record, TreeCounts, Unreadable
from fdstore.store.contents.descriptors import is_renamed
from fdstore.store.contents.resolving import resolve
from fdstore.store.contents.staging import Staged
from fdstore.store.hashes import Hash, pairs
from fdstore.store.keys import (
    AT_ONCE,
    ProcessKeys,
    TreeKeys,
    content_keys,
    in_pieces,
    is_content,
    producer_of,
)
from fdstore.store.objects.records import path_of
from fdstore.store.objects.settings import written_settings
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes.process_records import missing, tree_record
from fdstore.store.record_format import (
    check_format,
    decode_or_none,
    decoding,
    replies_of_trees,
    replies_or_damage,
    required,
    show_bytes,
    skipping,
)
from fdstore.store.tree_facts import read_counts, tree_names
from fdstore.wire.operation import Batch, Operation


class TreeUsage(Record, frozen=True, kw_only=True):
    """The usage of a tree: `bytes` of text in its `contents`, of which `cold_bytes` are in the object store;
    `staged` bytes are still being stored."""

    tree: str
    bytes: int
    staged: int
    contents: int
    processes: int
    live: int
    used_at: float
    cold_bytes: int = 0


class ProcessUsage(Record, frozen=True, kw_only=True):
    """The usage of a process: `bytes` of text behind its `descriptors`. Dropping all of them would free
    `freed` bytes: those that no other process holds."""

    process: str
    state: str
    descriptors: int
    bytes: int
    freed: int


class DescriptorUsage(Record, frozen=True, kw_only=True):
    """One descriptor, with its content's bytes, number of holders, state and source. The `tier` of a content
    in the object store is `cold`, else it is empty."""

    process: str
    fd: str
    bytes: int
    holders: int
    state: str
    source: str
    tier: str = ""


class UsageReport(msgspec.Struct, kw_only=True):
    """The usage found; each list has the largest first."""

    trees: list[TreeUsage] = []
    processes: list[ProcessUsage] = []
    descriptors: list[DescriptorUsage] = []
    staged: list[Staged] = []
    unreadable: list[Unreadable] = []


class Holder(Record, frozen=True, kw_only=True):
    """A process that holds a content, and its descriptor for it (None if its table has none)."""

    process: str
    state: str
    fd: str | None


Tell = Callable[[int], None]
"""A progress callback: called with the number of contents read so far."""


def usage_of_trees(prefix: str) -> Operation[UsageReport]:
    """Return the usage of every tree. Two round trips for 500 trees, and one more if contents are being
    stored."""
    found = UsageReport()
    names = yield from tree_names(prefix, found.unreadable)
    for piece in in_pieces(names):
        trees = [TreeKeys(prefix, name) for name in piece]
        found.trees += map(_usage_of, (yield from read_counts(trees, found.unreadable)))
        found.staged += yield from _staged(trees)
    return _sorted(found)


def _staged(trees: list[TreeKeys]) -> Operation[list[Staged]]:
    """Return the contents being stored in these trees. Entries without staged keys, left by killed clients,
    are skipped."""
    replies = yield from replies_of_trees([("HGETALL", tree.staged) for tree in trees])
    entries = [
        (tree.staging(show_bytes(op))[0], value)
        for tree, reply in zip(trees, replies, strict=True)
        if isinstance(reply, list)
        for op, value in zip(reply[::2], reply[1::2], strict=True)
    ]
    found = []
    for piece in in_pieces(entries):
        there = yield [("EXISTS", key) for key, _ in piece]
        for (_, value), exists in zip(piece, there, strict=True):
            if exists and (staged := decode_or_none(value, Staged)) is not None:  # a damaged one expires
                found.append(staged)
    return found


def usage_of_tree(prefix: str, name: str, tell: Tell = lambda done: None) -> Operation[UsageReport]:
    """Return the usage of a tree, its processes, and the descriptors of its root. Raises `NotFound`,
    `NewerFormat`, `DamagedRecord`."""
    record = yield from tree_record(prefix, name)
    tree = TreeKeys(prefix, name)
    found = UsageReport(unreadable=list(record.unreadable), staged=(yield from _staged([tree])))
    found.trees.append(_usage_of(record))
    tables, contents = yield from read_tables(tree, [member.id for member in record.members], found, tell)
    for member in record.members:
        of_one = [contents[content] for content in tables[member.id].values() if content in contents]
        found.processes.append(
            ProcessUsage(
                process=member.id,
                state=member.state,
                descriptors=len(tables[member.id]),
                bytes=sum(each.bytes for each in of_one),
                freed=sum(each.bytes for each in of_one if each.holders == 1),
            )
        )
    found.descriptors = describe(name, tables.get(name, {}), contents)
    return _sorted(found)


def _usage_of(tree: TreeCounts) -> TreeUsage:
    return TreeUsage(
        tree=tree.id,
        bytes=tree.bytes,
        staged=0,
        contents=tree.fds,
        processes=tree.processes,
        live=tree.live,
        used_at=tree.used_at,
        cold_bytes=tree.cold_bytes,
    )


def usage_of_process(keys: ProcessKeys, tell: Tell = lambda done: None) -> Operation[UsageReport]:
    """Return the usage of a process's descriptors. Raises `NotFound`, `NewerFormat`."""
    state, form = yield [("HGET", keys.record, "state"), ("HGET", keys.tree.record, "format")]
    if state is None:
        raise (yield from missing(keys))
    check_format(keys.tree.tree, form)
    found = UsageReport()
    tables, contents = yield from read_tables(keys.tree, [keys.process], found, tell)
    found.descriptors = describe(keys.process, tables[keys.process], contents)
    found.staged = [each for each in (yield from _staged([keys.tree])) if each.process == keys.process]
    return _sorted(found)


class _Content(msgspec.Struct, frozen=True):
    bytes: Count
    holders: int
    state: str = ""
    source: str = ""
    tier: str = ""


_CONTENT = Hash(_Content, "holders")


def read_tables(
    tree: TreeKeys, processes: list[str], found: UsageReport, tell: Tell = lambda done: None
) -> Operation[tuple[dict[str, dict[str, str]], dict[str, _Content]]]:
    """Return the descriptor tables of these processes of a tree, and the contents in them by name. What is
    damaged goes to `found`. One round trip for each process, and one for 500 contents."""
    tables: dict[str, dict[str, str]] = {}
    for process in processes:
        tables[process] = yield from _read_table(ProcessKeys(tree, process), found)
    held = {content for table in tables.values() for content in table.values()}
    return tables, (yield from _read_contents(tree, held, found, tell))


def _read_table(keys: ProcessKeys, found: UsageReport) -> Operation[dict[str, str]]:
    [flat] = yield from replies_or_damage([("HGETALL", keys.fds)])
    with skipping(found.unreadable), decoding(f"the table of process {keys.process}"):
        entries = zip(required(flat)[::2], flat[1::2], strict=True)
        return pairs([part for entry in entries if not is_renamed(*entry) for part in entry])
    return {}


def _read_contents(
    tree: TreeKeys, names: set[str], found: UsageReport, tell: Tell = lambda done: None
) -> Operation[dict[str, _Content]]:
    contents: dict[str, _Content] = {}
    known = sorted(name for name in names if is_content(tree, name.encode()))
    found.unreadable += [
        Unreadable(what=f"a table of tree {tree.tree}", problem=f"{show_bytes(name)} is not a content")
        for name in sorted(names - set(known))
    ]
    for done, piece in enumerate(in_pieces(known), 1):
        reads: Batch = []
        for name in piece:
            keys = content_keys(tree, name)
            reads += [_CONTENT.read(keys.record), ("SCARD", keys.holders)]
        replies = yield from replies_or_damage(reads)
        for name, facts, holders in zip(piece, replies[::2], replies[1::2], strict=True):
            with skipping(found.unreadable), decoding(f"content {name}"):
                # a content that its producer alone holds has no list of holders
                contents[name] = _CONTENT.decode_values(required(facts), holders=required(holders) or 1)
        tell(min(done * AT_ONCE, len(known)))
    return contents


def describe(process: str, table: dict[str, str], contents: dict[str, _Content]) -> list[DescriptorUsage]:
    """Return the descriptors of a table, of those contents that were read."""
    return [
        DescriptorUsage(
            process=process,
            fd=fd,
            **msgspec.structs.asdict(contents[content]),
        )
        for fd, content in table.items()
        if content in contents
    ]


def _sorted(found: UsageReport) -> UsageReport:
    staged: dict[str, int] = {}
    for each in found.staged:
        tree = each.process.partition(".")[0]
        staged[tree] = staged.get(tree, 0) + each.bytes
    found.trees = [msgspec.structs.replace(each, staged=staged.get(each.tree, 0)) for each in found.trees]
    found.trees.sort(key=lambda each: (-each.bytes - each.staged, each.tree))
    found.processes.sort(key=lambda each: (-each.bytes, each.process))
    found.descriptors.sort(key=lambda each: (-each.bytes, each.fd))
    found.staged.sort(key=lambda each: (-each.bytes, each.process))
    return found


def holders(handle: ProcessHandle, fd: str) -> Operation[list[Holder]]:
    """Return the processes that hold the content of a descriptor; it is deleted when the last of them drops
    it. Raises `NotFound`."""
    [content] = yield [("HGET", handle.keys.fds, fd)]
    if content is None:
        yield from resolve(handle, fd)  # raises an error that names the existing descriptors
        raise NotFound(fd)
    tree = handle.keys.tree
    with decoding(f"{fd} of process {handle.id}"):
        if not is_content(tree, content):
            raise ValueError(f"{show_bytes(content)} is not a content")
        keys = content_keys(tree, content.decode())
    [members] = yield [("SMEMBERS", keys.holders)]
    ids = sorted(map(show_bytes, members or [producer_of(content)]))
    found = yield from describe_holders(tree, fd, content, ids)
    for number, holder in enumerate(found):
        if holder.fd is None:  # it received the content as an answer, or has another name for it
            [flat] = yield [("HGETALL", ProcessKeys(tree, holder.process).fds)]
            entries = zip(flat[::2], flat[1::2], strict=True)
            own = next((show_bytes(name) for name, held in entries if held == content), None)
            found[number] = msgspec.structs.replace(holder, fd=own)
    return found


def cold_place(handle: ProcessHandle, fd: str) -> Operation[str | None]:
    """Return where the object of a cold content is, None for a content in Redis. Raises `NotFound`."""
    info, _ = yield from resolve(handle, fd)
    [(tier, where)] = yield [("HMGET", info.keys.record, "tier", "where")]
    if not tier or not where:
        return None
    settings = yield from written_settings(handle.keys.tree.prefix)
    return f"{settings.get('cold', '')}/{path_of(handle.keys.tree, show_bytes(where))}"


def describe_holders(tree: TreeKeys, fd: str, content: bytes, ids: list[str]) -> Operation[list[Holder]]:
    """Return these processes, which hold the content of `fd`. Each has it under this id or under the one it
    was made with; other names are not looked for: that would read its whole table. One round trip."""
    made = f"fd:{show_bytes(content).rpartition('/')[2]}"
    of = [ProcessKeys(tree, each) for each in ids]
    reads = [read for each in of for read in (("HGET", each.record, "state"), ("HMGET", each.fds, fd, made))]
    replies = yield from replies_or_damage(list(reads))
    found = []
    for each, state, table in zip(of, replies[::2], replies[1::2], strict=True):
        named = [None, None] if isinstance(table, DamagedRecord) else table
        own = next((name for name, held in zip((fd, made), named, strict=True) if held == content), None)
        known = "unreadable" if isinstance(state, DamagedRecord) else show_bytes(state or b"gone")
        found.append(Holder(process=each.process, state=known, fd=own))
    return found
