"""Drop a whole tree on request, whatever its retention.

One atomic step removes the tree and its processes (the youngest processes of a large tree are removed before
it, in batches); its contents follow in batches, so that Redis is not blocked for long. Every step begins
with a removal, which a full Redis allows. An interrupted removal is finished by the next drop, by the
collector, or by the creation of a tree of that name.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from fdstore.errors import DamagedRecord, NotFound
from fdstore.model.flags import check_flag
from fdstore.model.records import DroppedTree
from fdstore.store.keys import TreeKeys, check_root, in_pieces
from fdstore.store.outcomes import outcome
from fdstore.store.processes.processes import cancel
from fdstore.store.record_format import FORMAT, check_format, replies_or_damage, show_bytes
from fdstore.store.trees.collect_trees import PIECE, drop_entry, look_again_at
from fdstore.wire.operation import Operation
from fdstore.wire.scripts import script, text

REASON = "dropped"
"""The reason of processes that are cancelled because their tree is dropped with `kill`."""


def drop_tree(
    prefix: str, name: str, *, kill: bool = False, progress: Callable[[int], None] | None = None
) -> Operation[DroppedTree]:
    """Remove a tree with everything in it. `progress` is called with the number of contents removed so far.

    Raises `TreeInUse` while one of its agents or pipelines is ready, running or waiting, unless `kill` is
    true; `NotFound`, `NewerFormat`.
    """
    tree = TreeKeys(prefix, check_root(name))
    cancelled: tuple[str, ...] = ()
    if check_flag("kill", kill):
        yield from _check_format(tree)
        with suppress(NotFound):  # the tree may be damaged or half removed
            cancelled = (yield from cancel(prefix, name, REASON)).cancelled
    contents = 0
    what = ""
    while what != "gone":
        # once begun, go on whatever is created in the tree in between
        how = "rest" if what == "rest" else "1" if kill or what else "0"
        [reply] = yield [script("drop")(tree=tree.record, how=how, most=PIECE, known_format=FORMAT)]
        if reply[0] == b"gone":
            break
        began, (what, removed) = not what, map(text, outcome(reply, name))
        if began and what != "gone":
            yield from look_again_at(tree, "0")  # if this is interrupted, the collector finishes it
        contents += int(removed)
        if progress:
            progress(contents)
    yield from _drop_staged(tree)
    was_listed = yield from drop_entry(tree)
    if not what and not was_listed:
        [trees] = yield [("ZRANGE", tree.trees, 0, 50)]
        raise NotFound(f"tree {name}", tuple(map(show_bytes, trees)))
    return DroppedTree(tree=name, contents=contents, cancelled=cancelled)


def is_left(prefix: str, name: str) -> Operation[bool]:
    """Return whether any part of a tree exists, even one left by an interrupted removal."""
    tree = TreeKeys(prefix, check_root(name))
    keys, listed = yield [
        ("EXISTS", tree.record, tree.processes, tree.contents, tree.collecting),
        ("ZSCORE", tree.trees, name),
    ]
    return keys > 0 or listed is not None


def _check_format(tree: TreeKeys) -> Operation[None]:
    with suppress(DamagedRecord):  # such a tree can be removed
        [form] = yield [("HGET", tree.record, "format")]
        check_format(tree.tree, form)


def _drop_staged(tree: TreeKeys) -> Operation[None]:
    """Remove the contents being stored. They would expire, but hold memory until then."""
    [ops] = yield from replies_or_damage([("HKEYS", tree.staged)])
    if not isinstance(ops, list) or not ops:
        return
    for piece in in_pieces(key for op in ops for key in tree.staging(show_bytes(op))):
        yield [("UNLINK", *piece)]
    yield [("UNLINK", tree.staged)]
