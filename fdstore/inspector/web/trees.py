"""The page of all trees: find, filter and sort them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec

from fdstore.client._async.store import Store
from fdstore.errors import FDStoreError
from fdstore.inspector.web.links import descriptor_url
from fdstore.inspector.web.page import ROWS, PageRequest, SeeOther, WebPage
from fdstore.model.lifecycle import BUSY, PROCESS_MOVES
from fdstore.model.records import Record, Unreadable
from fdstore.setup.settings import OWN_PREFIXES
from fdstore.store.addresses import MODES, Address
from fdstore.store.clock import redis_now
from fdstore.store.contents.locating import locate
from fdstore.store.processes.processes import open_child
from fdstore.store.views.finding import is_glob, matcher
from fdstore.store.views.overview import TreeSummary, recent_names, summaries
from fdstore.store.views.word_search import WordMatch, exact, search
from fdstore.text.quantities import DAY_S, HOUR_S
from fdstore.text.selection import JsonValue, Part

EXAMINED = 500
"""Trees that one request reads, to filter or to sort them."""

AT_ONCE = 50
"""Trees read by one pair of requests, so that other requests have their turn."""

SHOWN_PLACES = 3
"""Places where the words of a search are found, of one tree."""

STATES = ("busy", "lost", *PROCESS_MOVES)
"""What the field "State" selects: `lost` are trees with a process that has lost a worker."""
URGENCY = ("failed", "unreadable", "running", "waiting", "ready", "open", "cancelled", "exited")
"""The states in the order in which people should look at them."""

RANGES = {"1h": HOUR_S, "1d": DAY_S, "7d": 7 * DAY_S, "30d": 30 * DAY_S}
"""The ages of the last use of trees that can be asked for, in seconds."""

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
        if self.state == "lost":
            return tree.losses > 0
        return not self.state or self.state in tree.states


async def _elsewhere(store: Store) -> dict[str, int]:
    """Return how many trees each other prefix of fdstore's own has, such as that of the demo."""
    found = {}
    for prefix in set(OWN_PREFIXES) - {store.prefix}:
        with suppress(FDStoreError):  # as of a user of Redis who may not read these keys
            found[prefix] = (await store.run(recent_names(prefix, 1))).total
    return {prefix: count for prefix, count in found.items() if count}


async def _found_by_words(
    request: PageRequest, query: str, damaged: list[Unreadable]
) -> dict[str, list[WordMatch]]:
    """Return where the words of a query are found, by tree: at most `SHOWN_PLACES` of each. A pattern such as
    `build-*` is for names alone."""
    found: dict[str, list[WordMatch]] = {}
    if query and not is_glob(query):
        for each in await request.store.run(search(request.prefix, query, damaged=damaged)):
            of_tree = found.setdefault(each.process.partition(".")[0], [])
            if len(of_tree) < SHOWN_PLACES:
                of_tree.append(each)
    return found


async def _go_to_exact(request: PageRequest, query: str, names: list[str]) -> None:
    """Raise `SeeOther` if the query is the URL of a content or a process, or the id of a process. The name of
    a tree leads to its page if no other tree is among the `names` that are found. Raise what `locate` raises
    for a value of JSON that is not there."""
    if request.http.url.path != "/" or not query:  # the twins of the page are for programs
        return
    named = await request.store.run(exact(request.prefix, query))
    if isinstance(named, Address):
        if isinstance(named.part, JsonValue):  # a page shows lines and characters
            handle = await request.store.run(open_child(request.prefix, named.process))
            _, span = await request.store.run(locate(handle, named.fd, named.part))
            named = msgspec.structs.replace(named, part=span.part)
        raise SeeOther(_content_url(named))
    if named is not None and "." in named:
        raise SeeOther(f"/process/{named}")
    if named is not None and names in ([], [named]):
        raise SeeOther(f"/tree/{named}")


def _content_url(address: Address) -> str:
    if (part := address.part) is None:
        return descriptor_url(address.process, address.fd)
    assert isinstance(part, Part)
    [name] = (name for name, mode in MODES.items() if mode == part.mode)
    last = part.start + part.count - 1
    numbers = f"{part.start}-{last}" if part.count > 1 else f"{part.start}"
    return descriptor_url(address.process, address.fd, "", **{name: numbers})


async def load(request: PageRequest) -> Trees:
    """Load the trees of a request: `q` is a part of their names, a pattern, or words of their runs. Raises
    `SeeOther`."""
    search, sort = request.query("q"), request.choice("sort", SORTS, "used")
    order = request.choice("order", ("asc", "desc"), "asc" if sort in ASCENDING else "desc")
    within = request.choice("within", tuple(RANGES))
    start = request.number("from", 0)
    store, damaged = request.store, list[Unreadable]()
    now_s = await store.run(redis_now())
    chosen = _Filter(
        request.choice("state", STATES), request.query("program"), now_s - RANGES[within] if within else 0.0
    )
    known = await store.run(recent_names(store.prefix))
    matches = matcher(search)
    words = await _found_by_words(request, search, damaged)
    names = [name for name in known.names if matches(name) or name in words] if search else known.names
    await _go_to_exact(request, search, names)
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


PAGES = [WebPage("/", "trees.html", load, live_s=1.0)]
