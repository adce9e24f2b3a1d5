"""List the trees of a store, and decode the record of one: its times, its counts, its limits.

The commands that list trees read the counts, `COUNTED`; what is about one tree reads the whole hash.
"""

from __future__ import annotations

from collections.abc import Sequence

from fdstore.errors import DamagedRecord, TreeOutOfReach
from fdstore.model.records import TreeCounts, TreeRecord, Unreadable
from fdstore.store.hashes import Hash, pairs
from fdstore.store.keys import TreeKeys, is_root
from fdstore.store.record_format import (
    check_format,
    decoding,
    limits_of,
    replies_of_trees,
    required,
    show_bytes,
    skipping,
)
from fdstore.wire.operation import Operation
from fdstore.wire.scripts import text

TREE = Hash(TreeRecord, "id", "members", "unreadable")

_COUNTS = Hash(TreeCounts, "id")

COUNTED = ("format", *_COUNTS.names)
"""The fields that `decode_counts` takes."""


def decode_counts(tree: str, values: Sequence[bytes | str | None]) -> TreeCounts:
    """Decode the fields `COUNTED` of a tree. Raises `DamagedRecord`, `NewerFormat`."""
    stored = {name: value for name, value in zip(COUNTED, values, strict=True) if value is not None}
    check_format(tree, stored.get("format"))
    with decoding(f"the record of tree {tree}"):
        fields = {name: text(value) for name, value in stored.items()}
        return _COUNTS.decode(fields, id=tree)


def tree_names(prefix: str, damaged: list[Unreadable] | None = None) -> Operation[list[str]]:
    """Return the names of all trees; add invalid entries to `damaged`."""
    key = TreeKeys(prefix, "").trees
    [entries] = yield [("ZRANGE", key, 0, -1)]
    names = []
    for entry in entries:
        if is_root(entry):
            names.append(text(entry))
        elif damaged is not None:
            damaged.append(Unreadable(what=key, problem=f"{show_bytes(entry)} is not a tree"))
    return sorted(names)


def within_reach(
    trees: list[TreeKeys], unreached: list[TreeOutOfReach] | None = None
) -> Operation[list[TreeKeys]]:
    """Return the trees whose nodes answer, and add an error for each other one to `unreached`. Whatever works
    on one tree after another asks this first, so that it does not wait for a lost node of a Cluster. One
    round trip."""
    replies = yield from replies_of_trees([("EXISTS", tree.record) for tree in trees])
    if unreached is not None:
        unreached += [reply for reply in replies if isinstance(reply, TreeOutOfReach)]
    return [tree for tree, reply in zip(trees, replies, strict=True) if not isinstance(reply, TreeOutOfReach)]


def read_counts(trees: list[TreeKeys], damaged: list[Unreadable]) -> Operation[list[TreeCounts]]:
    """Return the counts of those of these trees that exist; add damaged ones to `damaged`. One round trip."""
    replies = yield from replies_of_trees([("HMGET", tree.record, *COUNTED) for tree in trees])
    found = (counts_or_damage(tree.tree, reply, damaged) for tree, reply in zip(trees, replies, strict=True))
    return [counts for counts in found if counts is not None]


def counts_or_damage(
    tree: str, reply: Sequence[bytes | None] | DamagedRecord, damaged: list[Unreadable]
) -> TreeCounts | None:
    """Decode the reply to an HMGET of `COUNTED`. None for a tree that was just removed or is not created yet,
    and for a damaged one, which is added to `damaged`."""
    with skipping(damaged):
        values = required(reply)
        return decode_counts(tree, values) if any(values) else None
    return None


def decode_tree(tree: str, flat: list[bytes]) -> TreeRecord:
    """Decode the whole hash of a tree, without its processes. Raises as `decode_counts`."""
    with decoding(f"the record of tree {tree}"):
        fields = pairs(flat)
        check_format(tree, fields.get("format"))
        limits = limits_of(tree, fields.get("limits"))
        return TREE.decode(fields, id=tree, limits=limits, members=(), unreadable=())
