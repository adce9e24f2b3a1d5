"""Check everything that is stored, for `fdstore doctor --deep`: report damage, with advice.

A tree is read in bounded steps, never by SCAN: its processes, their tables, its contents and, because
damaged ones may be missing there, the keys of every number allocated so far. Nothing is changed.

Clients may write during the check, so damage is reported only if it persists over several passes.
`audit_content` checks one content.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from typing import Any

from fdstore.errors import DamagedRecord, FDStoreError
from fdstore.model.fields import CountOf, said_of
from fdstore.model.lifecycle import ENDED
from fdstore.model.records import ProcessRecord, Record, TreeCounts
from fdstore.store.content_info import CONTENT
from fdstore.store.contents.descriptors import is_renamed
from fdstore.store.doctor.audit_content import AuditProgress, Damage, Tell, check_content
from fdstore.store.doctor.in_step import in_step
from fdstore.store.hashes import pairs
from fdstore.store.keys import (
    ProcessKeys,
    TreeKeys,
    content_keys,
    in_pieces,
    is_content,
    member_of,
)
from fdstore.store.processes import people, python_state
from fdstore.store.processes.process_records import decode_stored
from fdstore.store.record_format import (
    UNREADABLE,
    replies_or_damage,
    required,
    show_bytes,
)
from fdstore.store.tree_facts import TREE, decode_tree, tree_names
from fdstore.store.word_places import place_of
from fdstore.wire.operation import Batch, Operation

MAX_INTEGERS = 100_000
"""The most numbers of a process that are checked; above every limit."""

MAX_MEMBERS = 1_000_000
"""The most members of a set or a table that are read."""

CHECKED_AT_ONCE = 32
"""Contents, or tables, that are checked together: a window of each is in memory."""

COUNTS = said_of(TreeCounts, CountOf)
"""The counts that follow from the records of a tree; `bytes` and `fds` follow from what is stored."""

LOOKS = 3
"""Passes over a tree before damage is reported."""

__all__ = ["Damage", "check_tree"]


class ProcessTables(Record, frozen=True, kw_only=True):
    """The result of one pass over a tree's processes: `holders` of each content named in a table, the
    `numbers` of descriptors that each process has allocated, and the processes that have `ended`."""

    holders: dict[str, set[str]]
    numbers: dict[str, range]
    ended: frozenset[str]


def check_tree(tree: TreeKeys, tell: Tell = lambda read_bytes, contents: None) -> Operation[list[Damage]]:
    """Return the damage in a tree that persists over `LOOKS` passes: clients may be writing to it."""
    found: list[Damage] = []
    for look in range(LOOKS):
        seen = yield from _look(tree, tell)
        found = seen if look == 0 else [each for each in seen if each in found]
        if not found:
            break
    return found


def _look(tree: TreeKeys, tell: Tell) -> Operation[list[Damage]]:
    found: list[Damage] = []
    there, flat = yield from replies_or_damage([("EXISTS", tree.record), ("HGETALL", tree.record)])
    if there == 0:
        return []  # it is about to be created, or was just collected
    try:
        counted = decode_tree(tree.tree, required(flat))
    except FDStoreError as error:
        said = f"the tree cannot be read: {_describe(error)}"
        found.append(Damage(key=tree.record, said=said, advice=UNREADABLE_TREE))
        return found
    seen, records = yield from _processes(tree, found)
    contents = yield from _members(tree.contents, "SCARD", "SMEMBERS", found)
    listed: list[str] = []
    for content in sorted(contents | set(seen.holders)):
        if not is_content(tree, content.encode()):
            said = f"{show_bytes(content)} is not a content"
            found.append(Damage(key=tree.contents, said=said, advice=REMOVE_MEMBER))
        elif content in contents:
            listed.append(content)
        else:
            # it is neither counted nor ever removed, and reading its descriptor is an error
            found.append(_unlisted(tree, content, seen))
    size, progress = 0, AuditProgress(tell)
    for some in in_pieces(listed, CHECKED_AT_ONCE):
        checked = yield from in_step(
            check_content(tree, each, seen.holders.get(each, set()), seen.ended, progress) for each in some
        )
        for damage, stored in checked:
            found += damage
            size += stored
    found += yield from _strays(tree, contents, seen)
    yield from _words(tree, found)
    yield from _questions(tree, seen.ended, found)
    for key, count, read in ((tree.unneeded, "ZCARD", "ZRANGE"), (tree.wanted, "SCARD", "SMEMBERS")):
        yield from _members(key, count, read, found)
    agents = [record for record in records.values() if record.kind != "asks"]
    counts = {name: sum(map(each.adds, agents)) for name, each in COUNTS.items() if each.of == "processes"}
    counts |= yield from _counts_of_contents(tree, listed)
    actual = {"bytes": size, "fds": len(listed), **counts}
    if (yield from replies_or_damage([("HGETALL", tree.record)])) == [flat]:  # else a client wrote meanwhile
        found += _miscounted(tree, counted, actual)
    return found


def _counts_of_contents(tree: TreeKeys, contents: list[str]) -> Operation[dict[str, int]]:
    counts = {name: 0 for name, each in COUNTS.items() if each.of == "contents"}
    for some in in_pieces(contents):
        for reply in (
            yield from replies_or_damage([CONTENT.read(content_keys(tree, each).record) for each in some])
        ):
            content = CONTENT.decode_readable(reply)
            for name in counts:
                counts[name] += COUNTS[name].adds(content)
    return counts


UNREADABLE_TREE = "restore a backup, or remove what is left of the tree; other trees are not affected"
REMOVE_MEMBER = "remove it with redis-cli (SREM, ZREM or HDEL)"


def _miscounted(tree: TreeKeys, counted: TreeCounts, stored: dict[str, int]) -> list[Damage]:
    return [
        Damage(
            key=tree.record,
            said=f"{name} is {getattr(counted, name)}, and {actual} are there",
            advice=f"fdstore redis-cli HSET '{tree.record}' {name} {actual}",
        )
        for name, actual in stored.items()
        if getattr(counted, name) != actual
    ]


def _unlisted(tree: TreeKeys, content: str, seen: ProcessTables) -> Damage:
    holders = ", ".join(sorted(seen.holders[content])[:5])
    return Damage(
        key=content_keys(tree, content).record,
        said=f"{holders} has a descriptor of {content}, which is not among the tree's contents",
        advice="close that descriptor",
    )


def _fields(key: str, flat: Any, found: list[Damage]) -> dict[str, str] | None:
    try:
        return pairs(required(flat))
    except (DamagedRecord, *UNREADABLE) as error:
        found.append(Damage(key=key, said=f"it cannot be read: {_describe(error)}", advice=UNREADABLE_TREE))
        return None


def _describe(error: Exception) -> str:
    return f"no {error.args[0]!r}" if isinstance(error, KeyError) and error.args else show_bytes(str(error))


def _members(key: str, count: str, read: str, found: list[Damage]) -> Operation[set[str]]:
    """Return the members of a set or sorted set, or none if it cannot be read."""
    [size] = yield from replies_or_damage([(count, key)])
    if isinstance(size, DamagedRecord) or size > MAX_MEMBERS:
        said = str(size) if isinstance(size, DamagedRecord) else f"it has {size} members, more than can be"
        found.append(Damage(key=key, said=said, advice=UNREADABLE_TREE))
        return set()
    command = (read, key, 0, -1) if read == "ZRANGE" else (read, key)
    [members] = yield from replies_or_damage([command])
    return set(map(show_bytes, members))


def _processes(
    tree: TreeKeys, found: list[Damage]
) -> Operation[tuple[ProcessTables, dict[str, ProcessRecord]]]:
    """Read all processes and their tables. Return the contents they name, and the record of each process."""
    names = yield from _members(tree.processes, "ZCARD", "ZRANGE", found)
    records: dict[str, ProcessRecord] = {}
    numbers: dict[str, range] = {}
    holders: dict[str, set[str]] = {}
    pending, met = sorted(names), set(names)
    while pending:
        ours = [name for name in pending if member_of(tree, name.encode())]
        for name in set(pending) - set(ours):
            said = f"{name} is not a process of this tree"
            found.append(Damage(key=tree.processes, said=said, advice=REMOVE_MEMBER))
        pending = []
        for some in in_pieces(ours):
            keys = [ProcessKeys(tree, name) for name in some]
            replies = yield from replies_or_damage([("HGETALL", each.record) for each in keys])
            for each, flat in zip(keys, replies, strict=True):
                children = _process(each, flat, names, records, numbers, found)
                below = (f"{each.process}.{number}" for number in range(1, children))
                pending += [name for name in below if name not in met]
            for few in in_pieces(keys, CHECKED_AT_ONCE):
                yield from in_step(_table(each, holders, found) for each in few)
            yield from _programs(keys, found)
        pending = yield from _existing(tree, pending)
        met |= set(pending)
    ended = frozenset(name for name, record in records.items() if record.state in ENDED)
    return ProcessTables(holders=holders, numbers=numbers, ended=ended), records


def _existing(tree: TreeKeys, names: Iterable[str]) -> Operation[list[str]]:
    """Return those of these processes that exist."""
    existing: list[str] = []
    for some in in_pieces(names):
        replies = yield [("EXISTS", ProcessKeys(tree, name).record) for name in some]
        existing += [name for name, exists in zip(some, replies, strict=True) if exists]
    return existing


def _process(
    keys: ProcessKeys,
    flat: Any,
    names: set[str],
    records: dict[str, ProcessRecord],
    numbers: dict[str, range],
    found: list[Damage],
) -> int:
    """Check and record one process. Return the number of its next child."""
    fields = _fields(keys.record, flat, found)
    if fields is None:
        return 1
    if not fields:
        said = "the tree lists this process, and it does not exist"
        advice = f"fdstore redis-cli ZREM '{keys.tree.processes}' {keys.process}"
        found.append(Damage(key=keys.record, said=said, advice=advice))
        return 1
    try:
        record = decode_stored(keys.process, fields)
    except UNREADABLE as error:
        said = f"it cannot be read: {_describe(error)}"
        found.append(Damage(key=keys.record, said=said, advice=UNREADABLE_TREE))
        return 1
    if keys.process not in names:
        said = "this process is not among those of its tree, so nothing ends or collects it"
        advice = f"fdstore kill {keys.process}; then fdstore redis-cli UNLINK '{keys.record}' '{keys.fds}'"
        found.append(Damage(key=keys.record, said=said, advice=advice))
        return 1
    records[keys.process] = record
    # a child goes on with the numbers of its parent: those before its first one are not its own, and
    # looking for them would take as long as processes times contents
    numbers[keys.process] = range(record.first_fd, min(record.next_fd, MAX_INTEGERS))
    for name in ("next_fd", "next_child"):
        if getattr(record, name) > MAX_INTEGERS:
            said = f"{name} is {getattr(record, name)}, more than can be checked"
            found.append(Damage(key=keys.record, said=said, advice="lower it to one above the last in use"))
    return min(record.next_child, MAX_INTEGERS)


def _table(keys: ProcessKeys, holders: dict[str, set[str]], found: list[Damage]) -> Operation[None]:
    [size] = yield from replies_or_damage([("HLEN", keys.fds)])
    if isinstance(size, DamagedRecord) or size > MAX_MEMBERS:
        found.append(Damage(key=keys.fds, said=f"the table cannot be read: {size}", advice=UNREADABLE_TREE))
        return
    [flat] = yield from replies_or_damage([("HGETALL", keys.fds)])
    table = _fields(keys.fds, flat, found) or {}
    listed = yield from _members(keys.names, "ZCARD", "ZRANGE", found)
    named = {fd.removeprefix("name:") for fd, content in table.items() if fd.startswith("name:") and content}
    for key in sorted({show_bytes(key.encode()) for key in named} - listed):
        said = f"name:{key} is not among the names of the process, so listing by prefix leaves it out"
        advice = f"fdstore redis-cli ZADD '{keys.names}' 0 {shlex.quote(key)}"
        found.append(Damage(key=keys.names, said=said, advice=advice))
    for fd, content in table.items():
        if is_content(keys.tree, content.encode()):
            holders.setdefault(content, set()).add(keys.process)
        elif not is_renamed(fd.encode(), content.encode()):
            said = f"{show_bytes(fd)} names {show_bytes(content)}, which is not a content"
            found.append(Damage(key=keys.fds, said=said, advice=REMOVE_MEMBER))


def _programs(keys: list[ProcessKeys], found: list[Damage]) -> Operation[None]:
    """Check the states of the processes' programs."""
    heads = yield from replies_or_damage([("HGET", each.python, "head") for each in keys])
    for each, head in zip(keys, heads, strict=True):
        try:
            problem = (yield from python_state.problem_of(each, required(head))) if head else ""
        except (FDStoreError, *UNREADABLE) as error:
            problem = f"it cannot be read: {_describe(error)}"
        if problem:
            found.append(Damage(key=each.python, said=problem, advice=LOST_SESSION.format(each.python)))


LOST_SESSION = "its programs begin without variables after fdstore redis-cli UNLINK '{}'"


def _words(tree: TreeKeys, found: list[Damage]) -> Operation[None]:
    """Check that the words of search are in a form that it reads."""
    for member in sorted((yield from _members(tree.words, "ZCARD", "ZRANGE", found))):
        if place_of(tree, member.encode()) is None:
            said = f"{member} is not a word with its place, so search leaves it out"
            found.append(Damage(key=tree.words, said=said, advice=REMOVE_MEMBER))


def _questions(tree: TreeKeys, ended: frozenset[str], found: list[Damage]) -> Operation[None]:
    """Check that each open question is one that a person can answer. Those that a crash has left in the list
    are not shown to anybody."""
    for some in in_pieces(sorted((yield from _members(tree.questions, "ZCARD", "ZRANGE", found)))):
        known = yield from people.problems_of(tree, some, ended)
        for member, problem in known.items():
            said = f"{show_bytes(member)} {problem}, so nobody can answer it"
            found.append(Damage(key=tree.questions, said=said, advice=REMOVE_MEMBER))


def _strays(tree: TreeKeys, contents: set[str], seen: ProcessTables) -> Operation[list[Damage]]:
    """Find keys of allocated numbers whose contents the tree does not list."""
    found: list[Damage] = []
    for some in in_pieces(_candidates(seen, contents)):
        keys = [content_keys(tree, content) for content in some]
        requests: Batch = [("EXISTS", k.record, k.pages, k.index, k.holders, k.lent, k.sums) for k in keys]
        for each, there in zip(keys, (yield requests), strict=True):
            if there:
                names = (each.record, each.pages, each.index, each.holders, each.lent, each.events, each.sums)
                said = f"{there} keys of a content that is not in its tree: half stored or removed"
                unlink = f"fdstore redis-cli UNLINK {' '.join(map(repr, names))}"
                found.append(Damage(key=each.record, said=said, advice=f"they only take memory: {unlink}"))
    return found


def _candidates(seen: ProcessTables, contents: set[str]) -> Iterator[str]:
    known = contents | set(seen.holders)
    for process, numbers in seen.numbers.items():
        for number in numbers:
            if (content := f"{process}/{number}") not in known:
                yield content


def named_trees(prefix: str) -> Operation[list[TreeKeys]]:
    """Return all trees with a valid name; `ps` reports the others."""
    return [TreeKeys(prefix, name) for name in (yield from tree_names(prefix))]


_SIZE = TREE.some("bytes", "fds")


def size_of(tree: TreeKeys) -> Operation[tuple[int | None, int | None]]:
    """Return the bytes and the number of contents in a tree, by its own counters; None for one that cannot
    be read."""
    size = _SIZE.decode_readable(*(yield from replies_or_damage([_SIZE.read(tree.record)])))
    return size.bytes, size.fds
