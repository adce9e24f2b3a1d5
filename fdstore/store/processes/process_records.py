"""Read the state of processes and trees: their records, their answers, and their ends.

Nothing here writes; `processes` and `leases` change processes, `waiting` waits for their ends.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal

import msgspec

from fdstore.errors import DamagedRecord, NotFound
from fdstore.model.records import Moment, Ordinal, ProcessRecord, Seconds, Survey, TreeRecord, Unreadable
from fdstore.store.clock import seconds_of
from fdstore.store.hashes import Hash, pairs
from fdstore.store.keys import (
    ProcessKeys,
    TreeKeys,
    check_root,
    in_pieces,
    member_of,
    process_keys,
)
from fdstore.store.record_format import (
    UNREADABLE,
    decode_moment,
    decoding,
    replies_of_trees,
    replies_or_damage,
    required,
    show_bytes,
    skipping,
    unreadable,
)
from fdstore.store.tree_facts import TREE, decode_tree, tree_names
from fdstore.store.trees.troubles import Troubles, decode_troubles
from fdstore.wire.operation import Batch, Operation

log = logging.getLogger("fdstore.store")

KINDS: dict[str, Literal["pipeline", "asks"]] = {"pipeline": "pipeline", "asks": "asks"}


class StoredProcess(ProcessRecord, frozen=True, kw_only=True):
    """The whole hash of a process. `ready_at` is when it last became ready, `claimed_at` when its attempt
    began, `wait_s` the seconds of its wait for children; `first_fd` is the first number of its own, since a
    child goes on with the numbers of its parent; `recent_losses` are for `losses.decode_losses`."""

    ready_at: Moment | None = None
    claimed_at: Moment | None = None
    wait_s: Seconds | None = None
    first_fd: Ordinal = 1
    recent_losses: str = ""


PROCESS = Hash(StoredProcess, "id", "asks")

_HASH = Hash(ProcessRecord, "id", "asks")


def decode_process(process: str, fields: dict[str, str]) -> ProcessRecord:
    """Decode the record of a process from its hash. Raises one of `record_format.UNREADABLE`."""
    kind = KINDS.get(fields.get("kind", ""))
    return _HASH.decode(fields, id=process, kind=kind, asks=None)


def decode_stored(process: str, fields: dict[str, str]) -> StoredProcess:
    """As `decode_process`, of the whole hash."""
    return PROCESS.decode(fields, id=process, kind=KINDS.get(fields.get("kind", "")), asks=None)


def decode_reply(process: str, flat: list[bytes]) -> tuple[ProcessRecord, dict[str, str]]:
    """Decode a process. Return its record and all fields of its hash. Raises `DamagedRecord`."""
    with decoding(f"the record of process {process}"):
        fields = pairs(flat)
        return decode_process(process, fields), fields


def record(prefix: str, process: str) -> Operation[ProcessRecord]:
    """Return the current record of a process. Raises `NotFound`, `DamagedRecord`."""
    return (yield from record_at(prefix, process))[0]


def record_at(prefix: str, process: str) -> Operation[tuple[ProcessRecord, float]]:
    """Return the current record of a process, and the Redis time. Raises as `record`."""
    keys = process_keys(prefix, process)
    flat, now = yield [("HGETALL", keys.record), ("TIME",)]
    if not flat:
        raise (yield from missing(keys))
    return decode_reply(process, flat)[0], seconds_of(now)


def missing(keys: ProcessKeys) -> Operation[NotFound]:
    """Return the error for a missing process: it names the processes of its tree, or else the trees."""
    tree = keys.tree
    members, trees = yield [("ZRANGE", tree.processes, 0, 50), ("ZRANGE", tree.trees, 0, 50)]
    return NotFound(f"process {keys.process}", tuple(map(show_bytes, members or trees)))


class ProcessAnswer(msgspec.Struct, frozen=True):
    """The result of a process: its record, and its answer as a short text or as a descriptor of its parent
    (its own, for a root)."""

    record: ProcessRecord
    text: str
    fd: str | None


def answer_of(prefix: str, process: str) -> Operation[ProcessAnswer]:
    """Return the result of a process; before its end, with an empty answer. Raises as `answers_of`."""
    [answer] = yield from answers_of(prefix, [process])
    return answer


def answers_of(
    prefix: str, processes: Sequence[str], read: Mapping[str, list[bytes]] | None = None
) -> Operation[list[ProcessAnswer]]:
    """Return the results of these processes; before its end, one with an empty answer. `read`: their hashes,
    if they were read already. One round trip, or none. Raises `NotFound`, `DamagedRecord`."""
    keys = [process_keys(prefix, process) for process in processes]
    if read is None:
        replies = yield [("HGETALL", each.record) for each in keys]
    else:
        replies = [read[process] for process in processes]
    answers = []
    for each, flat in zip(keys, replies, strict=True):
        if not flat:
            raise (yield from missing(each))
        found, fields = decode_reply(each.process, flat)
        answers.append(ProcessAnswer(found, fields.get("answer", ""), fields.get("answer_fd") or None))
    return answers


def tree_record(prefix: str, tree: str, start: int = 0, count: int | None = None) -> Operation[TreeRecord]:
    """Return a tree with its processes, or `count` of them from the `start`-th (from 0) on, by creation;
    `unreadable` lists the damaged ones. Two round trips. Raises `NotFound`, `NewerFormat`, and
    `DamagedRecord` for the record of the tree itself."""
    keys = TreeKeys(prefix, check_root(tree))
    last = -1 if count is None else start + count - 1
    flat, names = yield [("HGETALL", keys.record), ("ZRANGE", keys.processes, start, last)]
    if not flat:
        [trees] = yield [("ZRANGE", keys.trees, 0, 50)]
        raise NotFound(f"tree {tree}", tuple(map(show_bytes, trees)))
    [found] = yield from _with_members([(keys, decode_tree(tree, flat), names)])
    return found


def _with_members(trees: list[tuple[TreeKeys, TreeRecord, list[bytes]]]) -> Operation[list[TreeRecord]]:
    """Return these trees with the records of their processes, given by name. One round trip for some hundred
    processes."""
    damaged: list[list[Unreadable]] = [[] for _ in trees]
    wanted: list[tuple[int, ProcessKeys]] = []
    for number, (keys, _, names) in enumerate(trees):
        for name in names:
            process = member_of(keys, name)
            if process is not None:
                wanted.append((number, process))
            else:
                problem = f"{show_bytes(name)} is not a process of this tree"
                damaged[number].append(Unreadable(what=keys.processes, problem=problem))
    members: list[list[ProcessRecord]] = [[] for _ in trees]
    for some in in_pieces(wanted):
        replies = yield from replies_or_damage([("HGETALL", process.record) for _, process in some])
        for (number, process), reply in zip(some, replies, strict=True):
            with skipping(damaged[number]):
                if required(reply):
                    members[number].append(decode_reply(process.process, reply)[0])
    return [
        msgspec.structs.replace(record, members=tuple(of_one), unreadable=tuple(problems))
        for (_, record, _), of_one, problems in zip(trees, members, damaged, strict=True)
    ]


def survey(prefix: str, *, with_processes: bool = True) -> Operation[Survey]:
    """Return all trees; those that are damaged or of a newer format are listed as unreadable. Three round
    trips for some hundred trees and processes, one for 500 trees without their processes."""
    found = Survey(trees=[], unreadable=[])
    names = yield from tree_names(prefix, found.unreadable)
    for some in in_pieces(names):
        trees = [TreeKeys(prefix, name) for name in some]
        records = yield from replies_of_trees([("HGETALL", keys.record) for keys in trees])
        members: list[Any] = [[]] * len(trees)
        if with_processes:
            members = yield from replies_of_trees([("ZRANGE", keys.processes, 0, -1) for keys in trees])
        readable: list[tuple[TreeKeys, TreeRecord, list[bytes]]] = []
        for keys, flat, names_of in zip(trees, records, members, strict=True):
            with skipping(found.unreadable):
                # without a record it has just been removed, or is not created yet
                if required(flat):
                    readable.append((keys, decode_tree(keys.tree, flat), required(names_of)))
        found.trees.extend((yield from _with_members(readable)))
    for tree in found.trees:
        found.unreadable.extend(tree.unreadable)
    return found


def log_unreadable(found: Survey) -> Survey:
    """Log the unreadable records of a survey, for callers that return only the trees."""
    for each in found.unreadable:
        log.warning("%s cannot be read: %s", each.what, each.problem)
    return found


class TreeHoldings(msgspec.Struct, frozen=True):
    """The holdings of a tree at the moment: live processes, bytes of text, streams that are written; its
    failures and losses of the last hour; its open questions to a person, and when the oldest was asked; its
    cold contents and their bytes. A field of the tree's record is read from there by its name."""

    live: int
    bytes: int
    open_streams: int
    troubles: tuple[Troubles, ...] = ()
    questions: int = 0
    oldest_question: float | None = None
    cold_fds: int = 0
    cold_bytes: int = 0


_HELD = TREE.some(*(name for name in TreeHoldings.__struct_fields__ if name in TREE.names))


class FinishedTrees(msgspec.Struct, frozen=True):
    """Trees whose processes have all ended, and trees whose own record cannot be read. `usage` is that
    of all other trees, too."""

    trees: list[str]
    unreadable: list[tuple[str, Unreadable]]
    usage: dict[str, TreeHoldings]


def _moment_of(oldest: list[bytes] | DamagedRecord) -> float | None:
    """Return when the oldest question was asked; None without one, or if that cannot be read."""
    if isinstance(oldest, DamagedRecord) or not oldest:
        return None
    with suppress(*UNREADABLE):
        return decode_moment(oldest[1])
    return None


def finished_trees(prefix: str, trees: list[str]) -> Operation[FinishedTrees]:
    """Return those of these trees whose processes have all ended. One round trip, if no tree is
    damaged."""
    keys = [TreeKeys(prefix, tree) for tree in trees]
    records: Batch = [(*_HELD.read(each.record), "troubles") for each in keys]
    others: Batch = []
    for each in keys:
        others += [
            ("ZCARD", each.writers),
            ("ZCARD", each.questions),
            ("ZRANGE", each.questions, 0, 0, "WITHSCORES"),
        ]
    replies = yield from replies_of_trees([*records, *others])
    found = FinishedTrees([], [], {})
    of_each = zip(*(iter(replies[len(trees) :]),) * 3, strict=True)
    for tree, record, (streams, asked, oldest) in zip(trees, replies[: len(trees)], of_each, strict=True):
        if isinstance(record, DamagedRecord):
            found.unreadable.append((tree, unreadable(record)))
            continue
        *held, troubles = record
        if dict(zip(_HELD.names, held, strict=True))["live"] == b"0":
            found.trees.append(tree)
        with suppress(*UNREADABLE):  # `doctor` reports it
            now = _HELD.decode_values(held)
            found.usage[tree] = TreeHoldings(
                **msgspec.structs.asdict(now),
                open_streams=0 if isinstance(streams, DamagedRecord) else streams,
                troubles=decode_troubles(troubles),
                questions=0 if isinstance(asked, DamagedRecord) else asked,
                oldest_question=_moment_of(oldest),
            )
    return found
