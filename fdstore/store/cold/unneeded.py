"""Delete objects that no content needs any more.

    fdstore:{triage}:cold:objects    zset    triage-3-5f0c... -> when to delete it
    fdstore:cold:trees               set     trees that may have objects

The step that lets a cold content go lists its object there, and so does an upload before it begins, for the
time after which it counts as lost; the step that makes the content cold takes it off. So no object is
forgotten, whenever a process dies, and one that cannot be deleted stays listed.

A tree that was removed has such a list still, so trees with objects are listed in a key of their own. A tree
is entered there after its first object is listed, and before that is uploaded.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

import msgspec

from fdstore.errors import DamagedRecord, FDStoreError, ObjectStoreUnavailable, TreeOutOfReach
from fdstore.model.records import Unreadable
from fdstore.store.clock import redis_now
from fdstore.store.keys import TreeKeys, is_root
from fdstore.store.objects import object_store
from fdstore.store.objects.records import content_of, path_of
from fdstore.store.outcomes import outcome
from fdstore.store.record_format import replies_of_trees, unreadable
from fdstore.store.tree_facts import within_reach
from fdstore.telemetry.counts import count
from fdstore.wire.operation import Command, Operation
from fdstore.wire.scripts import script, text, though_full

AT_ONCE = 200
"""Objects of a tree that are deleted in one turn."""

MAX_COUNTED = 100_000

T = TypeVar("T")


class Runs(Protocol):
    """A blocking store: it runs operations."""

    @property
    def prefix(self) -> str: ...

    def run(self, operation: Operation[T]) -> T: ...


class Deleted(msgspec.Struct):
    """How many objects were deleted, and why others could not be (None if all were)."""

    objects: int = 0
    error: FDStoreError | None = None


def list_upload(tree: TreeKeys, where: str, lost_after_s: float) -> Operation[None]:
    """List an object before its upload: it is deleted after so many seconds, unless a content has it then.
    Three round trips."""
    now_s = yield from redis_now()
    yield [though_full(("ZADD", tree.unneeded, f"{now_s + lost_after_s:.6f}", where))]
    yield [_enter(tree)]


def give_up_upload(tree: TreeKeys, where: str) -> Operation[None]:
    """Have an object deleted whose content did not become cold, even if it was taken off as lost before its
    upload was complete. Two round trips."""
    yield [though_full(("ZADD", tree.unneeded, 0, where))]
    yield [_enter(tree)]


def _enter(tree: TreeKeys) -> Command:
    return though_full(("SADD", tree.cold_trees, tree.tree))


def trees_with_objects(prefix: str) -> Operation[list[TreeKeys]]:
    """Return the trees that may have objects, removed ones too. One round trip."""
    [names] = yield [("SMEMBERS", TreeKeys(prefix, "").cold_trees)]
    return [TreeKeys(prefix, text(name)) for name in sorted(names) if is_root(name)]


def due_objects(tree: TreeKeys) -> Operation[tuple[list[bytes], bool]]:
    """Return the members of a tree's list whose objects are to be deleted now, as they are stored, and
    whether it has others. One round trip."""
    [reply] = yield [script("cold_list")(tree=tree.record, most=AT_ONCE)]
    left, due = outcome(reply, tree.tree)
    return due, left == b"1"


def count_due(prefix: str, damaged: list[Unreadable] | None = None) -> Operation[int]:
    """Return how many objects of all trees are to be deleted now, up to `MAX_COUNTED` of each. Lists that
    cannot be read are left out, and added to `damaged`."""
    trees = yield from trees_with_objects(prefix)
    now_s = yield from redis_now()
    due = ("-inf", f"{now_s:.6f}", "LIMIT", 0, MAX_COUNTED)
    found = yield from replies_of_trees([("ZRANGEBYSCORE", tree.unneeded, *due) for tree in trees])
    if damaged is not None:
        damaged += [unreadable(each) for each in found if isinstance(each, DamagedRecord)]
    return sum(len(each) for each in found if not isinstance(each, DamagedRecord))


def take_off(tree: TreeKeys, deleted: list[bytes], *, has_others: bool) -> Operation[None]:
    """Take objects off the list that were deleted, and the tree off its list if it has no others."""
    if deleted:
        yield [("ZREM", tree.unneeded, *deleted)]
    if has_others:
        return
    yield [("SREM", tree.cold_trees, tree.tree)]
    listed, cold = yield [("EXISTS", tree.unneeded), ("HGET", tree.record, "cold_fds")]
    if listed or cold not in (None, b"0"):  # an upload began meanwhile
        yield [_enter(tree)]


def delete_unneeded(store: Runs, url: str) -> Deleted:
    """Delete the objects that are due, of all trees. What cannot be deleted is tried again by the next
    call."""
    unreached: list[TreeOutOfReach] = []
    trees = store.run(within_reach(store.run(trees_with_objects(store.prefix)), unreached))
    done = Deleted(error=next(iter(unreached), None))
    for tree in trees:
        try:
            _delete_of(store, url, tree, done)
        except DamagedRecord as error:
            done.error = done.error or error
        except ObjectStoreUnavailable as error:
            done.error = error
            return done
    return done


def _delete_of(store: Runs, url: str, tree: TreeKeys, done: Deleted) -> None:
    while True:
        due, has_others = store.run(due_objects(tree))
        deleted = []
        try:
            for where in due:
                name = where.decode("ascii", "replace")
                if content_of(tree, name) is not None:  # else nothing that this program wrote
                    object_store.delete(url, path_of(tree, name))
                deleted.append(where)
        finally:
            done.objects += len(deleted)
            count("fdstore_cold_objects_deleted_total", by=len(deleted))
            store.run(take_off(tree, deleted, has_others=has_others or len(deleted) < len(due)))
        if len(due) < AT_ONCE:
            return
