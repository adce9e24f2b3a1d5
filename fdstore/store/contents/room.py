"""Whether a tree has room for contents that are about to be stored, as far as their number and size are
known.

Each commit checks its own content, so many of them could fail in the middle. This looks first; it promises
nothing, since others may store meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence

from fdstore.errors import QuotaExceeded
from fdstore.model.records import Descriptor
from fdstore.store.contents.naming import look_up
from fdstore.store.keys import in_pieces
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.tree_facts import decode_tree
from fdstore.wire.operation import Operation


def check_room(handle: ProcessHandle, names: Sequence[str], count: int, size_bytes: int) -> Operation[None]:
    """Raise `QuotaExceeded` if `count` contents of so many bytes would pass a limit of the tree. Those that
    these `names` mean now would be replaced. One round trip, with more only for what seems too much."""
    [flat] = yield [("HGETALL", handle.keys.tree.record)]
    tree = decode_tree(handle.keys.tree.tree, flat)
    limits = tree.limits
    if tree.fds + count <= limits.tree_fds and tree.bytes + size_bytes <= limits.tree_bytes:
        return
    for piece in in_pieces(names):
        replaced = yield from look_up(handle, piece)
        count -= len(replaced)
        size_bytes -= sum(each.bytes for each in replaced if isinstance(each, Descriptor))
    if tree.fds + count > limits.tree_fds:
        raise QuotaExceeded("tree_fds", limits.tree_fds, tree.fds, count)
    if tree.bytes + size_bytes > limits.tree_bytes:
        raise QuotaExceeded("tree_bytes", limits.tree_bytes, tree.bytes, size_bytes)
