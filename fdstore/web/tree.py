"""The page of a tree: its processes, its limits, and a timeline."""

from __future__ import annotations

from fdstore.inspection.build_entries import build_entries
from fdstore.records import ProcessRecord, Record, TokenUsage, TreeRecord
from fdstore.runtime.eligibility import explained
from fdstore.store.clock import redis_now
from fdstore.store.processes.asks import fold_lanes
from fdstore.store.processes.journal import read_tails
from fdstore.store.processes.process_records import tree_record
from fdstore.store.trees.limit_usage import LimitStatus, limits_of_tree
from fdstore.text.quantities import format_costs
from fdstore.web.page import Page, View
from fdstore.web.timeline import MAX_ROWS, Timeline, make_timeline

ROWS = 200
"""Processes on one page."""

TAIL_RECORDS = 24
"""Journal records of each process that are looked at for the timeline."""

TAIL_BYTES = 1_000_000


class TreePage(Record, frozen=True, kw_only=True):
    """A tree with some of its processes, in the order of their ids, from the `start`-th by creation on;
    `next` begins the next page. `states`, `tokens` and `cost` count the processes of this
    page."""

    tree: TreeRecord
    root: ProcessRecord | None
    processes: list[ProcessRecord]
    start: int
    next: int | None
    states: dict[str, int]
    tokens: TokenUsage
    cost: str
    limits: list[LimitStatus]
    timeline: Timeline | None
    now_s: float


def order(process: ProcessRecord) -> tuple[int, ...]:
    """Return the sort key that puts children, by number, after their parent."""
    return tuple(int(number) for number in process.id.split(".")[1:])


async def load(view: View) -> TreePage:
    """Load a part of a tree. Raises `NotFound`, `NewerFormat`, `DamagedRecord`."""
    store, name = view.store, view.argument("name")
    start = view.number("from", 0, most=1_000_000)
    tree = await store.run(tree_record(store.prefix, name, start, ROWS))
    folded = await store.run(fold_lanes(store.prefix, sorted(tree.members, key=order)))
    processes = await store.run(explained(store.prefix, folded))
    tails = await store.run(
        read_tails(store.prefix, [each.id for each in processes[:MAX_ROWS]], TAIL_RECORDS, TAIL_BYTES)
    )
    entries = {
        process: build_entries(tail.records, tail.first, max_chars=0) for process, tail in tails.items()
    }
    states: dict[str, int] = {}
    for each in processes:
        states[each.state] = states.get(each.state, 0) + 1
    following = start + ROWS
    return TreePage(
        tree=tree,
        root=next((each for each in processes if each.id == name), None),
        processes=processes,
        start=start,
        next=following if following < tree.processes else None,
        states=states,
        tokens=sum(processes, start=TokenUsage()),
        cost=format_costs(processes),
        limits=limits_of_tree(tree),
        timeline=make_timeline(processes, entries),
        now_s=await store.run(redis_now()),
    )


PAGES = [Page("/tree/{name}", "tree.html", load, live_s=1.0)]
