"""Trees under another prefix than that of the command: a person who has run the demo looks for what it made.

Only the prefixes that fdstore itself uses are looked at: keys are never scanned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fdstore.errors import FDStoreError

if TYPE_CHECKING:
    from fdstore.client import Store


def where_else(store: Store, process: str | None = None) -> str | None:
    """Return which prefix has trees, or the tree of a process; None if no other has, or the store does not
    say."""
    from fdstore.settings import OWN_PREFIXES
    from fdstore.store.processes.process_records import tree_names

    tree = None if process is None else process.partition(".")[0]
    for prefix in set(OWN_PREFIXES) - {store.prefix}:
        try:
            trees = list(store.run(tree_names(prefix, [])))
        except FDStoreError:  # as a user of Redis who may not read these keys
            continue
        if tree is None and trees:
            return f"the prefix {prefix} has {', '.join(trees[:3])}: --prefix {prefix}"
        if tree in trees:
            return f"the prefix {prefix} has a tree {tree}: --prefix {prefix}"
    return None
