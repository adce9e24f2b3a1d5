"""Which node of a Redis Cluster serves a command, as far as can be told from here.

A Cluster deals its 16384 slots out to its nodes. A key's slot follows from its tag, so all of a tree is
at one node, and its batches go there as they are. What lies outside trees (`trees`, `workers`, ...) and
what asks about many trees at once may be anywhere: a batch is taken apart into units (a command, or
MULTI to EXEC), each with its slot.

While a slot moves, its keys are at two nodes for a time. A command on one key is served at the node that
has it. A script is not so lucky: it makes some of its keys itself (a table's contents, say), and finding
one gone it would stop half way. So every script is handed one key more, a `guard`, which never exists:
for a slot that moves, Redis puts off (TRYAGAIN) all that names several keys of which one is missing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from redis.crc import REDIS_CLUSTER_HASH_SLOTS, key_slot

from fdstore.urls import Address
from fdstore.wire.operation import Batch, Command, Value
from fdstore.wire.scripts import text


class Slots:
    """The map of a Cluster. Threads may share it: it is corrected in place, and a wrong entry costs a
    detour."""

    def __init__(self, seeds: Iterable[Address]) -> None:
        self._seeds = tuple(seeds)
        self._nodes: list[Address | None] = [None] * REDIS_CLUSTER_HASH_SLOTS
        self.primaries: tuple[Address, ...] = ()

    def node_of(self, slot: int | None) -> Address:
        """Who serves the slot; for no slot, or one that nobody serves, any node: it knows better."""
        return (None if slot is None else self._nodes[slot]) or self.primaries[0]

    def everybody(self, last: Address | None = None) -> list[Address]:
        """All nodes that may know the map, `last` at the end."""
        known = dict.fromkeys((*self.primaries, *self._seeds))
        return sorted(known, key=lambda address: address == last)

    def moved(self, slot: int, address: Address) -> None:
        """Takes in what a node said of one slot."""
        self._nodes[slot] = address
        if address not in self.primaries:
            self.primaries = (*self.primaries, address)

    def learn(self, answer: list[Any], asked: Address) -> None:
        """Takes in what CLUSTER SLOTS answered."""
        nodes: list[Address | None] = [None] * REDIS_CLUSTER_HASH_SLOTS
        for first, last, (host, port, *_), *_ in answer:
            # a node that does not know its own name leaves it out
            address = (text(host) if host else asked[0], int(port))
            nodes[first : last + 1] = [address] * (last + 1 - first)
        self._nodes, self.primaries = nodes, tuple(dict.fromkeys(filter(None, nodes)))


class Unit:
    """What one node serves as a whole: a command, or MULTI to EXEC. `start` is its place in the batch,
    `ask_at` the node that is to have its keys, if one said so."""

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
    """The batch, taken apart. A command without a key goes where the first key of the batch is.

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
    """The units by the node that is asked: each node once, or `in_order` as often as it takes to keep
    the order."""
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


def key_of(command: Command) -> Value | None:
    """The first key of a command; None if it has none."""
    match command:
        case ("EVALSHA" | "EVAL", _, count, *rest):
            return rest[0] if count else None
        case ("XREAD", *rest):
            return rest[rest.index("STREAMS") + 1]
        case ("MULTI" | "EXEC" | "PING" | "INFO" | "TIME", *_):
            return None
    return command[1]


def slot_of(command: Command) -> int | None:
    """The slot of a command's first key.

    >>> slot_of(("HGET", "fdstore:{triage}", "used_at")) == slot_of(("GET", "triage"))
    True
    """
    key = key_of(command)
    return None if key is None else key_slot(str(key).encode("utf-8"))


def guarded(command: Command) -> Command:
    """The command, with the guard if it is a script; one outside of trees has a single key and needs none."""
    if command[0] != "EVALSHA" or "}" not in str(command[3]):
        return command
    name, sha, count, first, *rest = command
    place = int(count) - 1
    guard = f"{str(first).partition('}')[0]}}}:guard"
    return (name, sha, place + 2, first, *rest[:place], guard, *rest[place:])
