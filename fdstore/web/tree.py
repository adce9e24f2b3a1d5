"""The page of a tree: its processes, its limits, and a timeline."""

from __future__ import annotations

import msgspec

from fdstore.records import ProcessRecord, Record, TokenUsage, TreeRecord
from fdstore.runtime.eligibility import explained
from fdstore.store.clock import redis_now
from fdstore.store.keys import TreeKeys
from fdstore.store.processes.asks import fold_lanes
from fdstore.store.processes.process_records import tree_record
from fdstore.store.trees.limit_usage import LimitStatus, limits_of_tree
from fdstore.text.quantities import format_costs
from fdstore.web.page import Page, View
from fdstore.web.saved import SavedHere, read_saved
from fdstore.web.timeline import Timeline, make_timeline, with_rows
from fdstore.wire.operation import Operation

ROWS = 200
"""Processes on one page."""

MAX_SUMMED = 10_000
"""Processes of a tree that are read for its sums."""


class TreePage(Record, frozen=True, kw_only=True):
    """A tree with some of its processes, in the order of their ids, from the `start`-th on; `next` begins
    the next page. `states`, `tokens`, `cost` and `limits` are of `summed` processes of the tree: of all,
    unless it has more than are read for that. `total` is how many can be listed: the questions of a program
    are one. `saved` is of the processes of the timeline."""

    tree: TreeRecord
    root: ProcessRecord | None
    processes: list[ProcessRecord]
    start: int
    next: int | None
    total: int
    summed: int
    states: dict[str, int]
    tokens: TokenUsage
    cost: str
    limits: list[LimitStatus]
    timeline: Timeline | None
    saved: SavedHere
    now_s: float


def order(process: ProcessRecord) -> tuple[int, ...]:
    """Return the sort key that puts children, by number, after their parent."""
    return tuple(int(number) for number in process.id.split(".")[1:])


class _Whole(msgspec.Struct, frozen=True):
    """A tree, its processes in order, and how many there are; not all, if that is more than `MAX_SUMMED`."""

    tree: TreeRecord
    processes: list[ProcessRecord]
    total: int


def _whole_tree(prefix: str, name: str) -> Operation[_Whole]:
    """Return a tree with its processes. Raises `NotFound`, `NewerFormat`, `DamagedRecord`."""
    tree = yield from tree_record(prefix, name, 0, MAX_SUMMED)
    folded = yield from fold_lanes(prefix, sorted(tree.members, key=order))
    [total] = yield [("ZCARD", TreeKeys(prefix, name).processes)]
    return _Whole(tree, folded, len(folded) if total <= MAX_SUMMED else total)


def _rows(prefix: str, whole: _Whole, start: int) -> Operation[list[ProcessRecord]]:
    """Return the processes of a page; those of a tree that was not read to its end by their creation."""
    if whole.total == len(whole.processes):
        rows = whole.processes[start : start + ROWS]
    else:
        window = yield from tree_record(prefix, whole.tree.id, start, ROWS)
        rows = yield from fold_lanes(prefix, sorted(window.members, key=order))
    return (yield from explained(prefix, rows))


async def load(view: View) -> TreePage:
    """Load a part of a tree. Raises `NotFound`, `NewerFormat`, `DamagedRecord`."""
    store, name = view.store, view.argument("name")
    start = view.number("from", 0, most=1_000_000)
    whole = await store.run(_whole_tree(store.prefix, name))
    processes = await store.run(_rows(store.prefix, whole, start))
    in_rows = with_rows(processes)
    tracks = await store.run(view.inspector.tracks.read(store.prefix, in_rows))
    states: dict[str, int] = {}
    for each in whole.processes:
        states[each.state] = states.get(each.state, 0) + 1
    following = start + ROWS
    return TreePage(
        tree=msgspec.structs.replace(whole.tree, members=()),
        root=next((each for each in whole.processes if each.id == name), None),
        processes=processes,
        start=start,
        next=following if following < whole.total else None,
        total=whole.total,
        summed=len(whole.processes),
        states=states,
        tokens=sum(whole.processes, start=TokenUsage()),
        cost=format_costs(whole.processes),
        limits=limits_of_tree(whole.tree),
        timeline=make_timeline(processes, tracks),
        saved=await store.run(read_saved(store.prefix, in_rows, tracks)),
        now_s=await store.run(redis_now()),
    )


PAGES = [Page("/tree/{name}", "tree.html", load, live_s=1.0)]
