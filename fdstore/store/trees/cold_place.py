"""The operator's settings of cold contents. A directory that is set becomes a place for objects."""

from __future__ import annotations

from functools import partial

from fdstore.errors import DamagedRecord, InvalidArgument
from fdstore.store.keys import TreeKeys, in_pieces
from fdstore.store.objects import object_store
from fdstore.store.objects.object_store import MARKER
from fdstore.store.objects.settings import parse_setting, parse_url
from fdstore.store.record_format import decode_count, replies_or_damage, show_bytes
from fdstore.store.tree_facts import tree_names
from fdstore.wire.operation import Batch, Disk, Operation


def put_cold(prefix: str, name: str, value: str | None) -> Operation[None]:
    """Set a setting of cold contents, or delete it for None. Raises `InvalidArgument`,
    `ObjectStoreUnavailable`, `MissingExtra`."""
    key = TreeKeys(prefix, "").ceilings
    if value is not None:
        parse_setting(name, value)
        if name == "cold":
            yield from _set_up_place(prefix, parse_url(name, value))
        yield [("HSET", key, name, value)]
        return
    if name == "cold":
        contents = (yield from cold_totals(prefix))[0]
        if contents:
            advice = "drop them, or stop moving with: fdstore limits set cold_after none"
            raise InvalidArgument(name, f"{contents} contents are there, and could not be read; {advice}")
    yield [("HDEL", key, name)]


def _set_up_place(prefix: str, url: str) -> Operation[None]:
    """Make a place that is a directory."""
    [before] = yield [("HGET", TreeKeys(prefix, "").ceilings, "cold")]
    is_same = before is not None and show_bytes(before).rstrip("/") == url
    if is_same and (yield Disk(partial(object_store.is_set_up, url))):
        return
    try:
        yield Disk(partial(object_store.set_up, url))
    except OSError as error:
        advice = f"make it for the user of the workers, with an empty file {MARKER} in it, and set it again"
        raise InvalidArgument("cold", f"{url} cannot be made: {error.strerror}; {advice}") from error


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
