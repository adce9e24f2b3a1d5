"""The slot map of a Redis Cluster: which node serves a command, as far as the client knows.

A Cluster distributes 16384 slots over its nodes. A key's slot follows from its hash tag, so a whole tree is
on one node, and its batches are sent there unchanged. Keys outside trees (`trees`, `workers`, ...) and
batches about many trees may be on any node: a batch is split into units (a command, or MULTI to EXEC), each
with its slot.

While a slot migrates, its keys are on two nodes. A command on one key is served by the node that has it. A
script derives some of its keys (a table's contents, for example), and would stop half way if one of them had
migrated. So every script gets an additional key, a `guard`, which never exists: in a migrating slot, Redis
answers TRYAGAIN to any command that names several keys of which one is missing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from redis.crc import REDIS_CLUSTER_HASH_SLOTS, key_slot

from fdstore.setup.url_options import Address
from fdstore.wire.operation import Batch, Command, key_of
from fdstore.wire.scripts import text


class Slots:
    """The slot map of a Cluster. Threads may share it: it is updated in place, and a stale entry only costs
    a redirect."""

    def __init__(self, seeds: Iterable[Address]) -> None:
        self._seeds = tuple(seeds)
        self._nodes: list[Address | None] = [None] * REDIS_CLUSTER_HASH_SLOTS
        self._source: Address | None = None
        self.primaries: tuple[Address, ...] = ()

    def node_of(self, slot: int | None) -> Address:
        """Return the node that serves the slot. Without a slot, or if its node is unknown, return the one
        that answered last when the map was asked for: it redirects."""
        return (None if slot is None else self._nodes[slot]) or self._source or self.primaries[0]

    def candidates(self, last: Address | None = None) -> list[Address]:
        """Return all nodes that may know the map, with `last` at the end."""
        known = dict.fromkeys((*self.primaries, *self._seeds))
        return sorted(known, key=lambda address: address == last)

    def moved(self, slot: int, address: Address) -> None:
        """Update one slot after a MOVED reply."""
        self._nodes[slot] = address
        if address not in self.primaries:
            self.primaries = (*self.primaries, address)

    def learn(self, reply: list[Any], source: Address) -> None:
        """Replace the map by the reply of CLUSTER SLOTS from `source`."""
        nodes: list[Address | None] = [None] * REDIS_CLUSTER_HASH_SLOTS
        for first, last, (host, port, *_), *_ in reply:
            # a node that does not know its own host name omits it
            address = (text(host) if host else source[0], int(port))
            nodes[first : last + 1] = [address] * (last + 1 - first)
        self._nodes, self.primaries = nodes, tuple(dict.fromkeys(filter(None, nodes)))
        self._source = source


class Unit:
    """A part of a batch for one node: a command, or MULTI to EXEC. `start` is its index in the batch,
    `ask_at` the node named by an ASK reply."""

    __slots__ = ("ask_at", "commands", "refusal", "size", "slot", "start")

    def __init__(self, start: int, commands: list[Command]) -> None:
        self.start = start
        self.size = len(commands)
        self.commands = [guarded(command) for command in commands]
        self.slot = next((slot for slot in map(slot_of, commands) if slot is not None), None)
        self.ask_at: Address | None = None
        self.refusal: Exception | None = None

    @property
    def request(self) -> Batch:
        return [("ASKING",), *self.commands] if self.ask_at else self.commands


def units_of(batch: Batch) -> list[Unit]:
    """Split a batch into units. A command without a key goes to the node of the batch's first key.

    >>> [unit.size for unit in units_of([("GET", "a"), ("MULTI",), ("SET", "b", 1), ("EXEC",)])]
    [1, 3]
    """
    units = []
    start = 0
    while start < len(batch):
        end = start + 1
        if batch[start][0] == "MULTI":
            end = batch.index(("EXEC",), start) + 1
        units.append(Unit(start, batch[start:end]))
        start = end
    first = next((unit.slot for unit in units if unit.slot is not None), None)
    for unit in units:
        unit.slot = first if unit.slot is None else unit.slot
    return units


def group_by_node(units: list[Unit], slots: Slots, *, in_order: bool) -> list[tuple[Address, list[Unit]]]:
    """Group the units by node: each node once, or with `in_order` one group for each run of units on the
    same node."""
    runs: list[tuple[Address, list[Unit]]] = []
    for unit in units:
        address = unit.ask_at or slots.node_of(unit.slot)
        earlier = runs[-1:] if in_order else runs
        found = next((run for at, run in earlier if at == address), None)
        if found is None:
            runs.append((address, [unit]))
        else:
            found.append(unit)
    return runs


def slot_of(command: Command) -> int | None:
    """Return the slot of a command's first key; None if it has none.

    >>> slot_of(("HGET", "fdstore:{triage}", "used_at")) == slot_of(("GET", "triage"))
    True
    """
    key = key_of(command)
    return None if key is None else key_slot(str(key).encode("utf-8"))


def guarded(command: Command) -> Command:
    """Add the guard key to a script; one outside of trees has a single key and needs none."""
    if command[0] != "EVALSHA" or "}" not in str(command[3]):
        return command
    name, sha, count, first, *rest = command
    more_keys = int(count) - 1
    guard = f"{str(first).partition('}')[0]}}}:guard"
    return (name, sha, more_keys + 2, first, *rest[:more_keys], guard, *rest[more_keys:])
