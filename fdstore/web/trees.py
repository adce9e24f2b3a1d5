"""The page of all trees: find, filter and sort them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec

from fdstore.client._async.store import Store
from fdstore.errors import FDStoreError
from fdstore.lifecycle import BUSY, PROCESS_MOVES
from fdstore.records import Record, Unreadable
from fdstore.settings import OWN_PREFIXES
from fdstore.store.clock import redis_now
from fdstore.store.views.finding import matcher
from fdstore.store.views.overview import TreeSummary, recent_names, summaries
from fdstore.store.views.word_search import WordMatch
from fdstore.web.page import Page, View
from fdstore.web.run_search import found_by_words, go_to_exact

ROWS = 200
"""Trees on one page."""

EXAMINED = 500
"""Trees that one request reads, to filter or to sort them."""

AT_ONCE = 50
"""Trees read by one pair of requests, so that other requests have their turn."""

STATES = ("busy", *PROCESS_MOVES)
URGENCY = ("failed", "unreadable", "running", "waiting", "ready", "open", "cancelled", "exited")
"""The states in the order in which people should look at them."""

DAY_S = 86_400.0
RANGES = {"1h": 3600.0, "1d": DAY_S, "7d": 7 * DAY_S, "30d": 30 * DAY_S}
"""How long ago trees were used at most, in seconds."""

_Key = Callable[[TreeSummary, float], Any]
_KEYS: dict[str, _Key] = {
    "state": lambda each, now_s: URGENCY.index(each.state) if each.state in URGENCY else len(URGENCY),
    "created": lambda each, now_s: each.created_at,
    "took": lambda each, now_s: each.took_s(now_s),
    "processes": lambda each, now_s: each.processes,
    "bytes": lambda each, now_s: each.bytes,
    "tokens": lambda each, now_s: each.tokens,
    "cost": lambda each, now_s: sum(each.costs.values()),
}
SORTS = ("used", "name", *_KEYS)
ASCENDING = ("name", "state")
"""Orders that begin with the least; the others with the most, or the latest."""


class Trees(Record, frozen=True, kw_only=True):
    """The trees that match, in order. `total` is how many exist, `named` how many of those match
    by name or by words, `examined` how many of these were read; `next` begins the next page (None: no more).
    `counts` are of the shown trees' processes, by state; `words` says where words of `search` are found, by
    tree. `elsewhere` counts the trees under other prefixes, if there is none under this one. `order` is asc
    or desc."""

    trees: list[TreeSummary]
    total: int
    named: int
    examined: int
    start: int
    next: int | None
    counts: dict[str, int]
    programs: list[str]
    search: str
    words: dict[str, list[WordMatch]]
    state: str
    program: str
    within: str
    sort: str
    order: str
    elsewhere: dict[str, int]
    unreadable: list[Unreadable]
    now_s: float


class _Filter(msgspec.Struct, frozen=True):
    state: str
    program: str
    since_s: float

    def selects(self, tree: TreeSummary) -> bool:
        if tree.used_at < self.since_s:
            return False
        if self.program and self.program not in tree.programs:
            return False
        if self.state == "busy":
            return any(state in BUSY for state in tree.states)
        return not self.state or self.state in tree.states


async def _elsewhere(store: Store) -> dict[str, int]:
    """Return how many trees each other prefix of fdstore's own has, such as that of the demo."""
    found = {}
    for prefix in set(OWN_PREFIXES) - {store.prefix}:
        with suppress(FDStoreError):  # as of a user of Redis who may not read these keys
            found[prefix] = (await store.run(recent_names(prefix, 1))).total
    return {prefix: count for prefix, count in found.items() if count}


async def load(view: View) -> Trees:
    """Load the trees of a request: `q` is a part of their names, a pattern, or words of their runs. Raises
    `SeeOther`."""
    search, sort = view.query("q"), view.choice("sort", SORTS, "used")
    order = view.choice("order", ("asc", "desc"), "asc" if sort in ASCENDING else "desc")
    within = view.choice("within", tuple(RANGES))
    start = view.number("from", 0)
    store, damaged = view.store, list[Unreadable]()
    now_s = await store.run(redis_now())
    chosen = _Filter(
        view.choice("state", STATES), view.query("program"), now_s - RANGES[within] if within else 0.0
    )
    known = await store.run(recent_names(store.prefix))
    matches = matcher(search)
    words = await found_by_words(view, search, damaged)
    names = [name for name in known.names if matches(name) or name in words] if search else known.names
    await go_to_exact(view, search, names)
    if sort == "name":
        names = sorted(names, reverse=order == "desc")
    elif sort == "used" and order == "asc":
        names = names[::-1]

    async def read(first: int, last: int) -> list[TreeSummary]:
        found = []
        for at in range(first, last, AT_ONCE):
            found += await store.run(summaries(store.prefix, names[at : min(at + AT_ONCE, last)], damaged))
        return [each for each in found if chosen.selects(each)]

    if sort in _KEYS:  # all of them are read, then sorted, then cut
        key, examined = _KEYS[sort], min(len(names), EXAMINED)
        found = sorted(await read(0, examined), key=lambda each: each.tree)
        found.sort(key=lambda each: key(each, now_s), reverse=order == "desc")
        following = start + ROWS if start + ROWS < len(found) else None
        rows = found[start : start + ROWS]
    else:  # read on from the cursor, until there are enough
        rows, at = [], start
        while at < min(len(names), start + EXAMINED) and len(rows) < ROWS:
            upto = min(at + AT_ONCE, len(names))
            rows += await read(at, upto)
            at = upto
        following = at if at < len(names) else None
        examined = max(0, at - start)
    counts: dict[str, int] = {}
    for each in rows:
        for state, count in each.states.items():
            counts[state] = counts.get(state, 0) + count
    return Trees(
        trees=rows,
        total=known.total,
        named=len(names),
        examined=examined,
        start=start,
        next=following,
        counts=counts,
        programs=sorted({name for each in rows for name in each.programs} | ({chosen.program} - {""})),
        search=search,
        words={each.tree: words[each.tree] for each in rows if each.tree in words},
        state=chosen.state,
        program=chosen.program,
        within=within,
        sort=sort,
        order=order,
        elsewhere={} if known.total else await _elsewhere(store),
        unreadable=damaged,
        now_s=now_s,
    )


PAGES = [Page("/", "trees.html", load, live_s=1.0)]
