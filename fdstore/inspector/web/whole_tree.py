"""A tree with all its processes, in order: what its sums, its export and its comparison are made of."""

from __future__ import annotations

from collections import Counter

import msgspec

from fdstore.model.records import ProcessRecord, TokenUsage, TreeRecord
from fdstore.store.keys import TreeKeys
from fdstore.store.views.shown_processes import shown_tree
from fdstore.wire.operation import Operation

MAX_SUMMED = 10_000
"""Processes of a tree that are read for its sums."""


def order(process: ProcessRecord) -> tuple[int, ...]:
    """Return the sort key that puts children, by number, after their parent."""
    return tuple(int(number) for number in process.id.split(".")[1:])


class WholeTree(msgspec.Struct, frozen=True):
    """A tree, its processes in order, and how many there are; not all, if that is more than `MAX_SUMMED`."""

    tree: TreeRecord
    processes: list[ProcessRecord]
    total: int

    @property
    def root(self) -> ProcessRecord | None:
        return next((each for each in self.processes if each.id == self.tree.id), None)

    @property
    def states(self) -> dict[str, int]:
        """The number of processes in each state."""
        return dict(Counter(each.state for each in self.processes))

    @property
    def tokens(self) -> TokenUsage:
        return sum(self.processes, start=TokenUsage())


def whole_tree(prefix: str, name: str) -> Operation[WholeTree]:
    """Return a tree with its processes, as people see them. Raises `NotFound`, `NewerFormat`,
    `DamagedRecord`."""
    tree = yield from shown_tree(prefix, name, 0, MAX_SUMMED)
    processes = sorted(tree.members, key=order)
    [total] = yield [("ZCARD", TreeKeys(prefix, name).processes)]
    return WholeTree(tree, processes, len(processes) if total <= MAX_SUMMED else total)
