"""Summaries of many trees: what the inspector shows on its first page.

The index of all trees (`trees`) orders them by the earliest time of their collection, so the end of it
are those used last. Each request reads a bounded number of names, trees and processes, in a few round
trips.
"""

from __future__ import annotations

import msgspec

from fdstore.errors import DamagedRecord
from fdstore.model.records import Count, ModelPrice, Moment, Record, TokenUsage, TreeCounts, Unreadable
from fdstore.store.clock import seconds_of
from fdstore.store.hashes import Hash
from fdstore.store.keys import TreeKeys, is_root, member_of
from fdstore.store.record_format import replies_of_trees, replies_or_damage
from fdstore.store.tree_facts import COUNTED, counts_or_damage
from fdstore.store.views.shown_processes import count_processes
from fdstore.wire.operation import Batch, Operation
from fdstore.wire.scripts import text

MAX_NAMES = 20_000
"""Trees whose names one request looks at: those used last."""

MAX_MEMBERS = 1_000
"""Processes of one tree that are counted by state."""


class _Process(TokenUsage, frozen=True, kw_only=True):
    """What is summed over the processes of a tree. The page of a tree names a damaged one."""

    state: str = "unreadable"
    kind: str | None = None
    parent: str | None = None
    call: str | None = None
    program: str | None = None
    losses: Count = 0
    price: ModelPrice | None = None


class _Root(Record, frozen=True, kw_only=True):
    task: str | None = None
    reason: str | None = None
    exit_code: str | None = None
    started_at: Moment | None = None
    ended_at: Moment | None = None


_Fields = list[bytes | None] | DamagedRecord

_PROCESS, _ROOT = Hash(_Process), Hash(_Root)
_NO_ROOT: _Fields = [None] * len(_ROOT.names)


class TreeSummary(Record, frozen=True, kw_only=True):
    """One tree: its size, its processes by state, and of its root the program, the first line of its task,
    the state and why it has that, when it started and when it ended (None: not yet). Of its `processes`,
    `asks` answer asks, one for each call; `counted` of them are counted in `states`, `tokens`, `costs` (by
    currency) and `losses`."""

    tree: str
    program: str | None
    task: str | None
    state: str
    reason: str | None
    exit_code: str | None
    states: dict[str, int]
    programs: tuple[str, ...]
    counted: int
    processes: int
    asks: int
    live: int
    contents: int
    bytes: int
    tokens: int
    costs: dict[str, float]
    losses: int
    created_at: float
    started_at: float | None
    ended_at: float | None
    used_at: float

    def took_s(self, now_s: float) -> float:
        """Return how long its root has run until its end, or until now."""
        started_at = self.created_at if self.started_at is None else self.started_at
        return max(0.0, (now_s if self.ended_at is None else self.ended_at) - started_at)


class TreeNames(msgspec.Struct, frozen=True):
    """The names of trees, the one used last first, and how many there are in all."""

    names: list[str]
    total: int


def recent_names(prefix: str, most: int = MAX_NAMES) -> Operation[TreeNames]:
    """Return the names of the trees used last. One round trip."""
    key = TreeKeys(prefix, "").trees
    entries, total = yield [("ZRANGE", key, 0, most - 1, "REV"), ("ZCARD", key)]
    return TreeNames([text(each) for each in entries if is_root(each)], total)


def recent_names_at(prefix: str, most: int) -> Operation[tuple[list[str], float]]:
    """Return the names of the trees used last, in the order of names, and the Redis time. One round trip."""
    entries, now = yield [("ZRANGE", TreeKeys(prefix, "").trees, 0, most - 1, "REV"), ("TIME",)]
    return sorted(text(each) for each in entries if is_root(each)), seconds_of(now)


def summaries(
    prefix: str, names: list[str], damaged: list[Unreadable] | None = None
) -> Operation[list[TreeSummary]]:
    """Return the summaries of these trees, without those that were just removed; add damaged ones to
    `damaged`. Two round trips if nothing is damaged."""
    damaged = [] if damaged is None else damaged
    trees = [TreeKeys(prefix, name) for name in names]
    replies = yield from replies_of_trees(
        [
            read
            for tree in trees
            for read in (
                ("HMGET", tree.record, *COUNTED),
                ("ZRANGE", tree.processes, 0, MAX_MEMBERS - 1),
            )
        ]
    )
    members = [
        [] if isinstance(ids, DamagedRecord) else [keys for each in ids if (keys := member_of(tree, each))]
        for tree, ids in zip(trees, replies[1::2], strict=True)
    ]
    roots = [keys for of_one in members for keys in of_one[:1]]
    reads: Batch = [_PROCESS.read(keys.record) for of_one in members for keys in of_one]
    reads += [_ROOT.read(keys.record) for keys in roots]
    states = yield from replies_or_damage(reads)
    of_roots = iter(states[len(states) - len(roots) :])
    found, start = [], 0
    for tree, facts, of_one in zip(trees, replies[::2], members, strict=True):
        processes = states[start : start + len(of_one)]
        start += len(of_one)
        root = next(of_roots) if of_one else _NO_ROOT
        if (counts := counts_or_damage(tree.tree, facts, damaged)) is not None:
            found.append(_summary(counts, processes, root))
    return found


def _summary(tree: TreeCounts, processes: list[_Fields], root: _Fields) -> TreeSummary:
    programs: dict[str, None] = {}
    costs: dict[str, float] = {}
    tokens = losses = 0
    root_state, root_program = "unreadable", None
    read = [_PROCESS.decode_readable(reply) for reply in processes]
    shown = count_processes(read)
    for number, each in enumerate(read):
        if each.program:
            programs[each.program] = None
        losses += each.losses
        tokens += each.tokens
        if each.price is not None and each.tokens:
            costs[each.price.currency] = costs.get(each.price.currency, 0.0) + each.price.cost(each)
        if number == 0:
            root_state, root_program = each.state, each.program
    return TreeSummary(
        tree=tree.id,
        program=root_program,
        state=root_state,
        states=shown.states,
        programs=tuple(programs),
        counted=shown.total,
        processes=tree.processes + shown.asks,
        asks=shown.asks,
        live=tree.live,
        contents=tree.fds,
        bytes=tree.bytes,
        tokens=tokens,
        costs=costs,
        losses=losses,
        created_at=tree.created_at,
        used_at=tree.used_at,
        **msgspec.structs.asdict(_ROOT.decode_readable(root)),
    )
