"""Ceilings: the operator's upper bounds for all trees, whatever limits their programs request.

    fdstore:limits      hash    tree_live -> 16     written by `fdstore limits`, read by every client

A tree's hash has the requested limits (`limits_asked`) and the effective ones (`limits`): the lower of each
limit and its ceiling. Scripts check `limits` alone. Setting a ceiling updates existing trees, and a client
that writes reads the ceilings along with a write once a minute. So values set by hand take effect too,
and reads cost nothing. In a Cluster a tree and this hash are on different nodes: no script could read both.

Ceilings have no defaults, except `tree_bytes`: half of maxmemory (see lua/common.lua), evaluated when the
tree is created.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from fdstore.errors import (
    DamagedRecord,
    InvalidArgument,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    UnknownOutcome,
    quoted,
)
from fdstore.model.fields import TreeLimit
from fdstore.model.records import TreeLimits
from fdstore.store.keys import TreeKeys, in_pieces
from fdstore.store.objects.settings import COLD_SETTINGS
from fdstore.store.process_handle import CEILINGS_EVERY_S, ProcessHandle
from fdstore.store.record_format import (
    decode_record,
    decode_total,
    decoding,
    limits_of,
    replies_of_trees,
    replies_or_damage,
)
from fdstore.store.tree_facts import tree_names
from fdstore.store.tree_limits import LIMITS
from fdstore.store.trees.cold_place import put_cold, size_in
from fdstore.text.numbers import BYTE_UNITS, COUNT_UNITS, MAX_INTEGER, parse_number
from fdstore.wire.operation import Alongside, Batch, Command, Operation
from fdstore.wire.scripts import script, though_full

NONE = "none"
"""The value that turns a ceiling off, even one with a default."""

TEXT_OVERHEAD = 1.07
"""Bytes of Redis memory per byte of stored text, at most."""

CEILINGS_AGAIN_S = 5.0
"""The time after which a client that failed to read the ceilings reads them again."""


CEILINGS = {
    "trees": TreeLimit("trees in all"),
    "bytes": TreeLimit("stored text in all", unit="bytes"),
    "export_bytes_per_day": TreeLimit("text that agents write to files, a day", unit="bytes"),
} | LIMITS
"""What is said of each ceiling, in the order in which people read them: of all trees, then of each tree."""


class Ceilings(msgspec.Struct, frozen=True):
    """The ceilings that are set; None means "none"."""

    values: Mapping[str, int | None]

    def get(self, name: str) -> int | None:
        """Return the value of a ceiling, None if there is none."""
        return self.values.get(name)

    def lower(self, limits: TreeLimits) -> TreeLimits:
        """Return the effective limits of a tree that requested `limits`.

        >>> Ceilings({"tree_live": 16, "trees": 5}).lower(TreeLimits(tree_live=64)).tree_live
        16
        """
        lower = {
            name: top
            for name, top in self.values.items()
            if top is not None and is_above(getattr(limits, name, -1), top)
        }
        return msgspec.structs.replace(limits, **lower)


def is_above(limit: int | msgspec.UnsetType, top: int) -> bool:
    """Return whether a limit, which may be none, is above a ceiling."""
    return isinstance(limit, msgspec.UnsetType) or limit > top


def check_name(name: object) -> TreeLimit:
    """Return what is said of the ceiling of this name. Raises `InvalidArgument`, which names all ceilings."""
    if not isinstance(name, str) or name not in CEILINGS:
        known = ", ".join((*CEILINGS, *COLD_SETTINGS))
        raise InvalidArgument("name", f"there is no ceiling {quoted(name)}; there are: {known}")
    return CEILINGS[name]


def parse_value(name: str, value_text: str) -> int | None:
    """Parse the value of a ceiling; None for "none". Raises `InvalidArgument`.

    >>> parse_value("tree_bytes", "1.5GiB"), parse_value("tree_fds", "20k"), parse_value("trees", "none")
    (1610612736, 20000, None)
    """
    ceiling = check_name(name)
    if value_text.lower() == NONE:
        return None
    in_bytes = ceiling.unit == "bytes"
    value = parse_number(value_text, BYTE_UNITS if in_bytes else COUNT_UNITS)
    if value is None or not ceiling.least <= value <= MAX_INTEGER:
        forms = "a number of bytes, as 4GiB or 500MB," if in_bytes else "a whole number, as 64 or 20k,"
        raise InvalidArgument(name, f"{quoted(value_text)} is not {forms} {ceiling.least} or more, or {NONE}")
    return value


def parse(flat: Iterable[bytes]) -> Ceilings:
    """Parse the reply of HGETALL. Unknown names are ignored. Raises `InvalidArgument` for an invalid value:
    a typing error must not lift a ceiling."""
    values: dict[str, int | None] = {}
    for name, value in _texts(flat).items():
        try:
            values[name] = parse_value(name, value)
        except InvalidArgument as error:
            advice = f"the operator of this store can fix it: fdstore limits set {name} VALUE"
            raise InvalidArgument(f"ceiling {name}", f"{error.problem}; {advice}") from error
    return Ceilings(values)


def _texts(flat: Iterable[bytes]) -> dict[str, str]:
    texts = [each.decode("utf-8", "replace") for each in flat]
    entries = zip(texts[::2], texts[1::2], strict=True)
    return {name: value for name, value in entries if name in CEILINGS}


def half_of(maxmemory_bytes: int) -> int:
    """Return how many bytes of text take half of Redis' memory; lua/common.lua computes the same.

    >>> half_of(2 << 30)
    1003497031
    """
    return max(int(maxmemory_bytes / 2 / TEXT_OVERHEAD), 1 << 20)


def read(prefix: str) -> Operation[Ceilings]:
    """Return the ceilings that are set. Raises `InvalidArgument`."""
    [flat] = yield [("HGETALL", TreeKeys(prefix, "").ceilings)]
    return parse(flat)


def written(prefix: str) -> Operation[dict[str, str]]:
    """Return the ceilings that are set, as unparsed texts."""
    [flat] = yield [("HGETALL", TreeKeys(prefix, "").ceilings)]
    return _texts(flat)


def put(prefix: str, name: str, value: str | None) -> Operation[int]:
    """Set a ceiling, or delete it for None, and apply it to all trees. Return how many trees changed. A
    setting of cold contents, which stands in the same hash, changes no tree. Raises `InvalidArgument`."""
    key = TreeKeys(prefix, "").ceilings
    if name in COLD_SETTINGS:
        yield from put_cold(prefix, name, value)
        return 0
    check_name(name)
    command: Command = ("HDEL", key, name)
    if value is not None:
        parsed = parse_value(name, value)
        command = though_full(("HSET", key, name, NONE if parsed is None else parsed))
    yield [command]
    return (yield from apply_to_all(prefix))


def run_with_ceilings(handle: ProcessHandle, batch: Batch) -> Operation[list[Any]]:
    """Run a batch that writes, and return its replies. Once a minute, read the ceilings in the same round
    trip; if they changed, or one applies to the total of all trees, update the tree's limits afterwards.

    If the ceilings cannot be read (their Cluster node is down, their key is damaged), the writes still
    succeed, and the ceilings are read again soon."""
    replies: list[Any]
    if time.monotonic() < handle.ceilings_due_at:
        replies = yield batch
        return replies
    handle.ceilings_due_at = time.monotonic() + CEILINGS_EVERY_S
    tree = handle.keys.tree
    try:
        [flat], (record, *replies) = yield Alongside([("HGETALL", tree.ceilings)], [_record_of(tree), *batch])
    except DamagedRecord:
        # of the ceilings, or of the tree: then this raises it again
        replies = yield batch
        return replies
    if flat is None:
        handle.ceilings_due_at = time.monotonic() + CEILINGS_AGAIN_S
        return replies
    # the batch has succeeded: do not fail it because the limits stay stale for another minute
    with suppress(DamagedRecord, InvalidArgument, StoreFull, StoreReadOnly, StoreUnavailable, UnknownOutcome):
        handle.limits = (yield from _apply(tree, parse(flat), record)) or handle.limits
    return replies


def apply_to_tree(tree: TreeKeys) -> Operation[TreeLimits | None]:
    """Apply the ceilings to one tree now. Return its limits, None if it is gone."""
    flat, record = yield [("HGETALL", tree.ceilings), _record_of(tree)]
    return (yield from _apply(tree, parse(flat), record))


def request(tree: TreeKeys, **limits: int) -> Operation[None]:
    """Replace limits that a tree has requested; the ceilings still apply. Nothing happens if it is gone.
    Raises `InvalidArgument`, `DamagedRecord`."""
    flat, (held, requested, *room) = yield [("HGETALL", tree.ceilings), _record_of(tree)]
    if held is None:
        return
    fields = decode_record(requested or held, dict[str, Any], f"the limits of tree {tree.tree}") | limits
    command, _ = _limits_command(tree, [held, msgspec.json.encode(fields), *room], parse(flat), None)
    if command:
        yield [command]


def _apply(tree: TreeKeys, ceilings: Ceilings, record: list[bytes | None]) -> Operation[TreeLimits | None]:
    """Apply the ceilings to a tree. Return its limits, None if it is gone. The bytes of all trees are summed
    at most once a minute per tree, however many clients write to it."""
    total = None
    if ceilings.get("bytes") is not None and not _is_recent(record[-1]):
        _, total = yield from stored_bytes(tree.prefix, ceilings)
    command, limits = _limits_command(tree, record, ceilings, total)
    if command:
        yield [command]
    return limits


def apply_to_all(prefix: str) -> Operation[int]:
    """Apply the ceilings to every tree now. Return how many trees changed their limits."""
    ceilings = yield from read(prefix)
    names = yield from tree_names(prefix)
    total = None
    if ceilings.get("bytes") is not None:
        total = sum((yield from _bytes_of(prefix, names, ceilings)).values())
    changed = 0
    for piece in in_pieces(names):
        trees = [TreeKeys(prefix, name) for name in piece]
        records = yield from replies_or_damage([_record_of(tree) for tree in trees])
        batch: Batch = []
        for tree, record in zip(trees, records, strict=True):
            if isinstance(record, DamagedRecord):
                continue
            with suppress(DamagedRecord):  # skip damaged trees
                command, limits = _limits_command(tree, record, ceilings, total)
                batch += [command] if command else []
                changed += limits is not None and msgspec.json.encode(limits) != record[0]
        yield from replies_or_damage(batch)
    return changed


def _record_of(tree: TreeKeys) -> Command:
    return ("HMGET", tree.record, "limits", "limits_asked", "bytes", "bytes_room", "bytes_room_at")


def _is_recent(room_at: bytes | None) -> bool:
    """Return whether any client computed the room of a tree within the last minute."""
    try:
        return room_at is not None and abs(time.time() - float(room_at)) < CEILINGS_EVERY_S
    except ValueError:
        return False


def _limits_command(
    tree: TreeKeys, record: list[bytes | None], ceilings: Ceilings, total: int | None
) -> tuple[Command | None, TreeLimits | None]:
    """Return the command that applies the ceilings to a tree (None if nothing changes), and the tree's
    limits (None if it is gone). `total` is the bytes of all trees, None to keep the tree's present room."""
    held, requested, size_bytes, room, room_at = record
    if held is None:
        return None, None
    limits = ceilings.lower(limits_of(tree.tree, requested or held))
    what = f"the limits of tree {tree.tree}"
    with decoding(what):
        fields = decode_record(requested or held, dict[str, Any], what)
        # preserve limits that only a newer version knows
        known = limits.__struct_fields__
        others = {name: value for name, value in fields.items() if name not in known}
        effective = msgspec.json.encode(msgspec.to_builtins(limits) | others)
        is_held = decode_record(held, dict[str, Any], what) == msgspec.json.decode(effective)
        top = ceilings.get("bytes")
        before = (room or b"", room_at or b"")
        if top is None:
            left, at = b"", b""
        elif total is None:
            left, at = before
        else:
            size = decode_total(size_bytes or 0)
            left, at = b"%d" % (size + max(0, top - total)), b"%.3f" % time.time()
    if is_held and (left, at) == before:
        return None, limits
    command = script("set_limits")(
        tree=tree.record,
        limits_before=held,
        asked=requested or held,
        effective=effective,
        bytes_room=left,
        bytes_ceiling="" if top is None else top,
        computed_at=at,
    )
    return command, limits


def _bytes_of(prefix: str, names: list[str], ceilings: Ceilings | None = None) -> Operation[dict[str, int]]:
    """Return the bytes of each tree by its own counter, which takes no more from the others than the ceiling
    of one tree allows."""
    most = MAX_INTEGER if ceilings is None else ceilings.get("tree_bytes") or MAX_INTEGER
    sizes: dict[str, int] = {}
    for piece in in_pieces(names):
        batch: Batch = [("HGET", TreeKeys(prefix, name).record, "bytes") for name in piece]
        found = yield from replies_of_trees(batch)
        sizes |= {name: min(size_in(each), most) for name, each in zip(piece, found, strict=True)}
    return sizes


def stored_bytes(prefix: str, ceilings: Ceilings | None = None) -> Operation[tuple[int, int]]:
    """Return the number of trees, and the bytes of text they hold."""
    names = yield from tree_names(prefix)
    return len(names), sum((yield from _bytes_of(prefix, names, ceilings)).values())
