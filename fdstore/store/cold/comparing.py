"""Compare both sides: which objects of this store no content needs.

Such garbage is left where Redis lost the end of its log, or a backup of it was restored: else the lists of
`unneeded` have it. An object belongs to this store if its name has the store's id; those of other stores that
share the place are never looked at.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import msgspec

from fdstore.store.cold.unneeded import Runs, give_up_upload
from fdstore.store.keys import TreeKeys, content_keys, is_root
from fdstore.store.objects import object_store
from fdstore.store.objects.object_store import StoredObject
from fdstore.store.objects.records import content_of, folder_of, is_of_store, store_id_or_none
from fdstore.store.objects.settings import read_settings
from fdstore.store.record_format import replies_or_damage
from fdstore.wire.operation import Batch, Operation

KEPT_S = 3600.0
"""An object that is younger is not looked at: it may belong to a content of which Redis knows soon."""


class Garbage(msgspec.Struct, frozen=True):
    """An object of this store that no content needs."""

    tree: TreeKeys
    where: str
    object: StoredObject


def find_garbage(store: Runs, *, older_s: float = KEPT_S) -> Iterator[Garbage]:
    """Yield the objects of this store that no content needs and no list has. Raises
    `ObjectStoreUnavailable`, `InvalidArgument` (the settings)."""
    settings = store.run(read_settings(store.prefix))
    own = store.run(store_id_or_none(store.prefix))
    if settings.url is None or own is None:
        return
    folder = folder_of(store.prefix)
    for some in object_store.list_below(settings.url, folder):
        ours = []
        for each in some:
            _, tree_name, where = ("", *each.path.split("/"))[-3:]
            if not is_root(tree_name.encode()) or each.written_at > time.time() - older_s:
                continue
            tree = TreeKeys(store.prefix, tree_name)
            if is_of_store(where, own) and content_of(tree, where) is not None:
                ours.append(Garbage(tree, where, each))
        for tree in {each.tree for each in ours}:
            yield from store.run(_unknown(tree, [each for each in ours if each.tree == tree]))


def _unknown(tree: TreeKeys, objects: list[Garbage]) -> Operation[list[Garbage]]:
    """Return those of these objects of a tree that no record names and that are not listed."""
    reads: Batch = []
    for each in objects:
        keys = content_keys(tree, content_of(tree, each.where) or "")
        reads += [("HGET", keys.record, "where"), ("ZSCORE", tree.unneeded, each.where)]
    replies = yield from replies_or_damage(reads)
    return [
        each
        for each, named, listed in zip(objects, replies[::2], replies[1::2], strict=True)
        if (named is None or isinstance(named, bytes)) and named != each.where.encode() and listed is None
    ]


def list_garbage(garbage: Garbage) -> Operation[None]:
    """List an object for deletion by the next turn of `delete_unneeded`."""
    yield from give_up_upload(garbage.tree, garbage.where)
