"""Drop a tree together with the numbers that outlive it: the next one of its name begins with fd:1."""

from __future__ import annotations

from fdstore.client import Store
from fdstore.store.keys import TreeKeys
from fdstore.wire.operation import Operation


def drop_with_numbers(store: Store, tree: str, *, kill: bool = False) -> None:
    """Drop a tree, and forget the numbers that it has given."""
    store.drop_tree(tree, kill=kill)
    store.run(_delete(TreeKeys(store.prefix, tree).earlier_numbers))


def _delete(key: str) -> Operation[None]:
    yield [("DEL", key)]
