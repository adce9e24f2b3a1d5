"""Summaries of many trees: what the inspector shows on its first page.

The index of all trees (`trees`) orders them by the earliest time of their collection, so the end of it
are those used last. Each request reads a bounded number of names, trees and processes, in a few round
trips.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

from fdstore.errors import DamagedRecord
from fdstore.records import Record, TreeCounts, Unreadable
from fdstore.store.keys import TreeKeys, is_root, member_of
from fdstore.store.record_format import replies_or_damage, show_bytes
from fdstore.store.tree_facts import COUNTED, counts_or_damage
from fdstore.wire.operation import Operation
from fdstore.wire.scripts import text

MAX_NAMES = 20_000
"""Trees whose names one request looks at: those used last."""

MAX_MEMBERS = 1_000
"""Processes of one tree that are counted by state."""

_PROCESS_FIELDS = ("state", "program", "input_tokens", "output_tokens", "losses")


class TreeSummary(Record, frozen=True, kw_only=True):
    """One tree: its root's program and state, its size, and its processes by state. `counted` is how
    many of its processes are counted in `states`, `tokens` and `losses`."""

    tree: str
    program: str | None
    state: str
    states: dict[str, int]
    programs: tuple[str, ...]
    counted: int
    processes: int
    live: int
    contents: int
    bytes: int
    tokens: int
    losses: int
    created_at: float
    used_at: float


class TreeNames(msgspec.Struct, frozen=True):
    """The names of trees, the one used last first, and how many there are in all."""

    names: list[str]
    total: int


def recent_names(prefix: str, most: int = MAX_NAMES) -> Operation[TreeNames]:
    """Return the names of the trees used last. One round trip."""
    key = TreeKeys(prefix, "").trees
    entries, total = yield [("ZRANGE", key, 0, most - 1, "REV"), ("ZCARD", key)]
    return TreeNames([text(each) for each in entries if is_root(each)], total)


def summaries(
    prefix: str, names: list[str], damaged: list[Unreadable] | None = None
) -> Operation[list[TreeSummary]]:
    """Return the summaries of these trees, without those that were just removed; add damaged ones to
    `damaged`. Two round trips if nothing is damaged."""
    damaged = [] if damaged is None else damaged
    trees = [TreeKeys(prefix, name) for name in names]
    replies = yield from replies_or_damage(
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
    states = yield from replies_or_damage(
        [("HMGET", keys.record, *_PROCESS_FIELDS) for of_one in members for keys in of_one]
    )
    found, start = [], 0
    for tree, facts, of_one in zip(trees, replies[::2], members, strict=True):
        processes = states[start : start + len(of_one)]
        start += len(of_one)
        if (counts := counts_or_damage(tree.tree, facts, damaged)) is not None:
            found.append(_summary(counts, processes))
    return found


def _summary(tree: TreeCounts, processes: list[list[bytes | None] | DamagedRecord]) -> TreeSummary:
    states: dict[str, int] = {}
    programs: dict[str, None] = {}
    tokens = losses = 0
    root_state, root_program = "unreadable", None
    for number, each in enumerate(processes):
        # a damaged process is counted as such; the page of its tree names it
        fields = [None] * len(_PROCESS_FIELDS) if isinstance(each, DamagedRecord) else each
        state = "unreadable" if fields[0] is None else _shown(fields[0])
        program = _shown(fields[1]) if fields[1] else None
        states[state] = states.get(state, 0) + 1
        if program:
            programs[program] = None
        tokens += _count(fields[2]) + _count(fields[3])
        losses += _count(fields[4])
        if number == 0:
            root_state, root_program = state, program
    return TreeSummary(
        tree=tree.id,
        program=root_program,
        state=root_state,
        states=states,
        programs=tuple(programs),
        counted=len(processes),
        processes=tree.processes,
        live=tree.live,
        contents=tree.fds,
        bytes=tree.bytes,
        tokens=tokens,
        losses=losses,
        created_at=tree.created_at,
        used_at=tree.used_at,
    )


def _count(value: bytes | None) -> int:
    """Return a count; 0 for a damaged one. There are thousands, so this must be fast."""
    return int(value) if value and len(value) < 17 and value.isdigit() else 0


@lru_cache(maxsize=1024)
def _shown(value: bytes) -> str:
    """Return a name as printable text; the same few names are in all processes."""
    return show_bytes(value)
