"""A tree with all its processes, in order: what its sums, its export and its comparison are made of."""

from __future__ import annotations

from functools import cached_property

import msgspec

from fdstore.inspector.reading.outcome import run_of
from fdstore.model.records import ProcessRecord, TokenUsage, TreeRecord
from fdstore.store.keys import TreeKeys
from fdstore.store.views.shown_processes import ProcessCounts, count_processes, shown_tree
from fdstore.wire.operation import Operation

MAX_SUMMED = 10_000
"""Processes of a tree that are read for its sums."""


def order(process: ProcessRecord) -> tuple[int, ...]:
    """Return the sort key that puts children, by number, after their parent."""
    return tuple(int(number) for number in process.id.split(".")[1:])


class WholeTree(msgspec.Struct, frozen=True, dict=True):
    """A tree, its processes in order, and how many there are; not all, if that is more than `MAX_SUMMED`."""

    tree: TreeRecord
    processes: list[ProcessRecord]
    total: int

    @property
    def root(self) -> ProcessRecord | None:
        return next((each for each in self.processes if each.id == self.tree.id), None)

    @property
    def run(self) -> ProcessRecord | None:
        """The process whose task and answer are those of the run; where a client does the work of the root,
        the root, if a process failed."""
        if (root := self.root) is None:
            return None
        has_failed = any(each.state == "failed" for each in self.processes)
        return run_of(root, self.processes) or (root if has_failed else None)

    @property
    def is_whole(self) -> bool:
        """Whether all processes of the tree were read."""
        return self.total == len(self.processes)

    @cached_property
    def counts(self) -> ProcessCounts:
        """How many of the processes that were read there are, in each state."""
        return count_processes(self.processes)

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
