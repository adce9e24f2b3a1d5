"""The page that compares two runs side by side: `/compare?a=monday&b=tuesday`."""

from __future__ import annotations

import asyncio

from fdstore.errors import DamagedRecord, NotFound
from fdstore.inspector.reading.conversation import MAX_RECORDS, conversation
from fdstore.inspector.reading.entries import ConversationEntry
from fdstore.inspector.reading.steps import Step
from fdstore.inspector.web.page import ROWS, PageRequest, WebPage
from fdstore.inspector.web.run_comparison import (
    FactPair,
    ProcessPair,
    RunFacts,
    StepBlock,
    align_steps,
    compare_facts,
    facts_of,
    pair_processes,
    steps_of,
)
from fdstore.inspector.web.whole_tree import whole_tree
from fdstore.model.records import Record
from fdstore.store.clock import redis_now
from fdstore.store.views.overview import recent_names_at
from fdstore.wire.operation import Operation

MAX_STEPS = 300
"""Steps of each root that are aligned: the first ones."""

MAX_READ = 2_000
"""Journal records of each root that are read for them."""

MAX_CHARS = 4_000
"""Characters of one text that are compared and shown."""

OTHERS = 30
"""Trees whose names a form offers."""


class Compared(Record, frozen=True, kw_only=True):
    """Two runs. Of `total` pairs of processes, of which `differing` differ, `processes` are those from the
    `start`-th on; `next` begins the next page. `steps` are of the roots; `is_cut`: one of them has more than
    `MAX_STEPS`."""

    a: RunFacts
    b: RunFacts
    facts: list[FactPair]
    processes: list[ProcessPair]
    start: int
    next: int | None
    total: int
    differing: int
    steps: list[StepBlock]
    is_cut: bool


class ComparePage(Record, frozen=True, kw_only=True):
    """The names that were asked for, those of the trees used last, by name, and the comparison; None while a
    name is missing."""

    a: str
    b: str
    others: tuple[str, ...]
    compared: Compared | None
    now_s: float


def _steps(prefix: str, root: str) -> Operation[tuple[list[Step], bool]]:
    """Return the first steps of a root, and whether it has more; none if its journal cannot be read."""
    entries: list[ConversationEntry] = []
    start = 0
    while True:
        try:
            page = yield from conversation(prefix, root, start, MAX_RECORDS, max_chars=MAX_CHARS)
        except (NotFound, DamagedRecord):
            return [], False
        entries += page.entries
        steps = steps_of(entries)
        has_more = not page.is_last and page.next > start
        if not has_more or len(steps) > MAX_STEPS or page.next >= MAX_READ:
            return steps[:MAX_STEPS], has_more or len(steps) > MAX_STEPS
        start = page.next


async def load(request: PageRequest) -> ComparePage:
    """Load the comparison of the trees `a` and `b`. Raises `NotFound`, `InvalidArgument`, `DamagedRecord`."""
    store, prefix = request.store, request.prefix
    a, b = request.query("a"), request.query("b")
    start = request.number("from", 0, most=1_000_000)
    compared = await _compare(request, a, b, start) if a and b else None
    others, now_s = await store.run(recent_names_at(prefix, OTHERS))
    return ComparePage(a=a, b=b, others=tuple(others), compared=compared, now_s=now_s)


async def _compare(request: PageRequest, a: str, b: str, start: int) -> Compared:
    store, prefix = request.store, request.prefix
    one, other = await store.run(whole_tree(prefix, a)), await store.run(whole_tree(prefix, b))
    now_s = await store.run(redis_now())
    facts = facts_of(one, now_s), facts_of(other, now_s)
    pairs = pair_processes(one, other, now_s)
    (steps, is_cut), (other_steps, other_cut) = (
        await store.run(_steps(prefix, a)),
        await store.run(_steps(prefix, b)),
    )
    following = start + ROWS
    return Compared(
        a=facts[0],
        b=facts[1],
        facts=compare_facts(*facts),
        processes=pairs[start:following],
        start=start,
        next=following if following < len(pairs) else None,
        total=len(pairs),
        differing=sum(bool(each.differences) for each in pairs),
        steps=await asyncio.to_thread(align_steps, steps, other_steps, (a, b)),
        is_cut=is_cut or other_cut,
    )


PAGES = [WebPage("/compare", "compare.html", load, timeout_s=10.0)]
