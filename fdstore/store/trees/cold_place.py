"""The operator's settings of cold contents: where they go is looked at before it is set.

A place that is set while contents are cold must have their objects: a typing mistake would make all of them
lost data. So one of them is looked for there first.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial

from fdstore.errors import DamagedRecord, InvalidArgument, ObjectStoreUnavailable
from fdstore.store.keys import TreeKeys, content_keys, in_pieces, is_content, is_root
from fdstore.store.objects import object_store
from fdstore.store.objects.object_store import MARKER
from fdstore.store.objects.records import COLD, content_of, path_of
from fdstore.store.objects.settings import parse_setting, parse_url, written_settings
from fdstore.store.outcomes import outcome
from fdstore.store.record_format import decode_count, replies_or_damage, show_bytes
from fdstore.store.tree_facts import tree_names
from fdstore.wire.operation import Batch, Disk, Operation
from fdstore.wire.scripts import script, text, though_full

SAMPLES = 3
"""Contents whose objects are looked for: the first one may be lost."""


def put_cold(prefix: str, name: str, value: str | None) -> Operation[None]:
    """Set a setting of cold contents, or delete it for None. Raises `InvalidArgument`,
    `ObjectStoreUnavailable`, `MissingExtra`."""
    key = TreeKeys(prefix, "").ceilings
    if value is not None:
        parse_setting(name, value)
        if name == "cold":
            yield from _set_up_place(prefix, parse_url(name, value))
        yield [though_full(("HSET", key, name, value))]
        return
    if name == "cold":
        contents = (yield from cold_totals(prefix))[0]
        if contents:
            advice = "drop them, or stop moving with: fdstore limits set cold_after none"
            raise InvalidArgument(name, f"{contents} contents are there, and could not be read; {advice}")
        yield from _delete_listed(prefix)
    yield [("HDEL", key, name)]


def _delete_listed(prefix: str) -> Operation[None]:
    """Delete the unneeded objects of the current place: after a change of the place they could not be found.
    No content is cold now. Raises `ObjectStoreUnavailable`."""
    before = (yield from written_settings(prefix)).get("cold")
    [names] = yield [("SMEMBERS", TreeKeys(prefix, "").cold_trees)]
    if before is None or not names:
        return
    url = parse_url("cold", before)
    for tree in (TreeKeys(prefix, text(name)) for name in names if is_root(name)):
        [listed] = yield from replies_or_damage([("ZRANGE", tree.unneeded, 0, -1)])
        if isinstance(listed, DamagedRecord) or not listed:
            continue
        # from then on none can become the object of a content
        yield [though_full(("ZADD", tree.unneeded, "XX", 0, where)) for where in listed]
        [reply] = yield [script("cold_list")(tree=tree.record, most=len(listed))]
        _, due = outcome(reply, tree.tree)
        for where in (each.decode("ascii", "replace") for each in due):
            if content_of(tree, where) is not None:
                yield Disk(partial(object_store.delete, url, path_of(tree, where)))


def _set_up_place(prefix: str, url: str) -> Operation[None]:
    """Check that a place has the objects of contents that are cold, and make it if it is a directory."""
    [before] = yield [("HGET", TreeKeys(prefix, "").ceilings, "cold")]
    is_same = before is not None and show_bytes(before).rstrip("/") == url
    if is_same and (yield Disk(partial(object_store.is_set_up, url))):
        return
    if before is not None and not is_same and not (yield from cold_totals(prefix))[0]:
        with suppress(InvalidArgument, ObjectStoreUnavailable):  # it may be left because it is away
            yield from _delete_listed(prefix)
    yield from _look_for_objects(prefix, url)
    try:
        yield Disk(partial(object_store.set_up, url))
    except OSError as error:
        advice = f"make it for the user of the workers, with an empty file {MARKER} in it, and set it again"
        raise InvalidArgument("cold", f"{url} cannot be made: {error.strerror}; {advice}") from error


def _look_for_objects(prefix: str, url: str) -> Operation[None]:
    """Raise `InvalidArgument` if contents are cold and a place has no object of the first ones."""
    missing = ""
    for tree, content, where in (yield from _some_cold(prefix)):
        path = path_of(tree, where)
        if (yield Disk(partial(object_store.has, url, path))):
            return
        missing = missing or f"{content} is cold, and its object {path} is not in {url}"
    if missing:
        advice = "copy all objects there first, or correct the URL"
        if object_store.directory_of(url):
            advice = f"mount it, {advice}"
        raise InvalidArgument("cold", f"{missing}: {advice}")


def _some_cold(prefix: str) -> Operation[list[tuple[TreeKeys, str, str]]]:
    """Return some cold contents of any trees, each with the name of its object."""
    found: list[tuple[TreeKeys, str, str]] = []
    for names in in_pieces((yield from tree_names(prefix))):
        trees = [TreeKeys(prefix, name) for name in names]
        counts = yield from replies_or_damage([("HGET", tree.record, "cold_fds") for tree in trees])
        for tree, count in zip(trees, counts, strict=True):
            if size_in(count) and len(found) < SAMPLES:
                found += yield from _cold_of(tree, SAMPLES - len(found))
    return found


def _cold_of(tree: TreeKeys, most: int) -> Operation[list[tuple[TreeKeys, str, str]]]:
    found: list[tuple[TreeKeys, str, str]] = []
    [members] = yield from replies_or_damage([("SMEMBERS", tree.contents)])
    if isinstance(members, DamagedRecord):
        return []
    for piece in in_pieces(sorted(text(each) for each in members if is_content(tree, each))):
        reads: Batch = [("HMGET", content_keys(tree, content).record, "tier", "where") for content in piece]
        for content, reply in zip(piece, (yield from replies_or_damage(reads)), strict=True):
            if isinstance(reply, DamagedRecord):
                continue
            tier, where = (show_bytes(each or b"") for each in reply)
            if tier == COLD and content_of(tree, where) == content:
                found.append((tree, content, where))
                if len(found) == most:
                    return found
    return found


def cold_totals(prefix: str) -> Operation[tuple[int, int]]:
    """Return how many contents of all trees are cold, and their bytes, by the counters of the trees."""
    contents = size_bytes = 0
    for piece in in_pieces((yield from tree_names(prefix))):
        reads: Batch = [("HMGET", TreeKeys(prefix, name).record, "cold_fds", "cold_bytes") for name in piece]
        for reply in (yield from replies_or_damage(reads)):
            if not isinstance(reply, DamagedRecord):
                contents, size_bytes = contents + size_in(reply[0]), size_bytes + size_in(reply[1])
    return contents, size_bytes


def size_in(reply: bytes | DamagedRecord | None) -> int:
    """Return a counter of a tree; 0 if it cannot be read."""
    if reply is None or isinstance(reply, DamagedRecord):
        return 0
    try:
        return decode_count(reply)
    except ValueError:
        return 0
