"""Trees under another prefix than that of the command: a person who has run the demo looks for what it made.

Only the prefixes that fdstore itself uses are looked at: keys are never scanned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fdstore.errors import FDStoreError

if TYPE_CHECKING:
    from fdstore.client import Store


def trees_elsewhere(store: Store) -> dict[str, list[str]]:
    """Return the trees under each other prefix that has some; none of a store that does not say."""
    from fdstore.settings import OWN_PREFIXES
    from fdstore.store.tree_facts import tree_names

    found = {}
    for prefix in set(OWN_PREFIXES) - {store.prefix}:
        try:
            found[prefix] = list(store.run(tree_names(prefix, [])))
        except FDStoreError:  # as a user of Redis who may not read these keys
            continue
    return {prefix: trees for prefix, trees in found.items() if trees}


def where_else(store: Store, process: str | None = None) -> str | None:
    """Return which prefix has trees, or the tree of a process; None if no other has."""
    tree = None if process is None else process.partition(".")[0]
    for prefix, trees in trees_elsewhere(store).items():
        if tree is None:
            return f"the prefix {prefix} has {', '.join(trees[:3])}: --prefix {prefix}"
        if tree in trees:
            return f"the prefix {prefix} has a tree {tree}: --prefix {prefix}"
    return None
