"""The page of a tree: its processes, its limits, and a timeline."""

from __future__ import annotations

import msgspec

from fdstore.agents.runtime.eligibility import explained
from fdstore.inspector.reading.outcome import Outcome, outcome_of
from fdstore.inspector.web.compare import OTHERS
from fdstore.inspector.web.page import ROWS, PageRequest, WebPage
from fdstore.inspector.web.question_card import OpenCards, waiting_of_tree
from fdstore.inspector.web.saved import SavedHere, read_saved
from fdstore.inspector.web.timeline import Timeline, Window, make_timeline, with_rows
from fdstore.inspector.web.whole_tree import WholeTree, order, whole_tree
from fdstore.model.records import ProcessRecord, Record, TokenUsage, TreeRecord
from fdstore.store.trees.limit_usage import LimitStatus, limits_of_tree
from fdstore.store.views.overview import recent_names_at
from fdstore.store.views.shown_processes import shown_tree
from fdstore.text.quantities import format_costs
from fdstore.wire.operation import Operation


class TreePage(Record, frozen=True, kw_only=True):
    """A tree with some of its processes, in the order of their ids, from the `start`-th on; `next` begins the
    next page. `states`, `tokens`, `cost` and `limits` are of `summed` processes of the tree: of all, unless
    it has more than are read for that. `total` is how many can be listed: the questions of a call of a
    program are one, and `asks` is how many of these there are; `live` have not ended. `others` are the trees
    used last, `saved` is of the processes of the timeline, of which the page shows the part `window`, and
    `waiting` are the questions to a person."""

    tree: TreeRecord
    root: ProcessRecord | None
    outcome: Outcome | None
    processes: list[ProcessRecord]
    start: int
    next: int | None
    total: int
    summed: int
    live: int
    asks: int
    states: dict[str, int]
    tokens: TokenUsage
    cost: str
    limits: list[LimitStatus]
    timeline: Timeline | None
    window: Window
    others: tuple[str, ...]
    saved: SavedHere
    waiting: OpenCards
    now_s: float


def _rows(prefix: str, whole: WholeTree, start: int) -> Operation[list[ProcessRecord]]:
    """Return the processes of a page; those of a tree that was not read to its end by their creation."""
    if whole.is_whole:
        rows = whole.processes[start : start + ROWS]
    else:
        window = yield from shown_tree(prefix, whole.tree.id, start, ROWS)
        rows = sorted(window.members, key=order)
    return (yield from explained(prefix, rows))


async def load(request: PageRequest) -> TreePage:
    """Load a part of a tree. Raises `NotFound`, `NewerFormat`, `DamagedRecord`."""
    store, name = request.store, request.argument("name")
    start = request.number("from", 0, most=1_000_000)
    window = Window(since=request.seconds("since"), until=request.seconds("until"))
    whole = await store.run(whole_tree(store.prefix, name))
    processes = await store.run(_rows(store.prefix, whole, start))
    in_rows = with_rows(processes)
    tracks = await store.run(request.inspector.tracks.read(store.prefix, in_rows))
    asks = await store.run(request.inspector.ask_tracks.read(store.prefix, in_rows))
    following = start + ROWS
    others, now_s = await store.run(recent_names_at(store.prefix, OTHERS))
    outcome = None
    if (run := whole.run) is not None:
        run = next((each for each in processes if each.id == run.id), run)  # it says what it waits for
        outcome = await store.run(outcome_of(store.prefix, run, whole.processes, now_s))
    return TreePage(
        tree=msgspec.structs.replace(whole.tree, members=()),
        root=whole.root,
        outcome=outcome,
        processes=processes,
        start=start,
        next=following if following < whole.total else None,
        total=whole.total,
        summed=len(whole.processes),
        live=whole.counts.live if whole.is_whole else whole.tree.live,
        asks=whole.counts.asks,
        states=whole.counts.states,
        tokens=whole.tokens,
        cost=format_costs(whole.processes),
        limits=limits_of_tree(whole.tree),
        timeline=make_timeline(processes, {**tracks, **asks}, whole.total),
        window=window,
        others=tuple(others),
        saved=await store.run(read_saved(store.prefix, in_rows, tracks)),
        waiting=await waiting_of_tree(request, name),
        now_s=now_s,
    )


PAGES = [WebPage("/tree/{name}", "tree.html", load, live_s=1.0)]
