"""Tasks on data: count the rows of a table, find one item of a JSON answer."""

from __future__ import annotations

import re

from tests.bench.tasks import texts
from tests.bench.tasks.plans import Hand, Plan, first_match
from tests.bench.tasks.task import Task, shows_count

REFUNDED = r",NO,refunded,"


def refunded() -> list[str]:
    """Return the rows that the question counts."""
    return [row for row in texts.orders().splitlines() if re.search(REFUNDED, row)]


def mention_is_shown(seen: str) -> bool:
    """Return whether a line was seen that mentions it and has the number of its issue, or is the line of that
    number by its position, 138."""
    lines = [line for line in seen.splitlines() if texts.MENTIONED in line]
    by_position = any(line.startswith("138:") for line in lines) and '"number": 4137' in seen
    return by_position or any('"number": 4137' in line for line in lines)


def _count(hand: Hand) -> Plan:
    [table] = yield from hand.fetch("exports/orders.csv")
    return (yield from hand.count(table, REFUNDED))


def _shelf(hand: Hand) -> Plan:
    answer = yield from hand.fetch("api/inventory")
    [found] = yield from hand.find(answer, texts.SKU)
    return first_match(found, f'"sku":"{texts.SKU}","location":"([^"]+)"')


def _mentions(hand: Hand) -> Plan:
    hits = yield from hand.fetch("tracker/search?q=queue")
    [found] = yield from hand.find(hits, texts.MENTIONED)
    line = first_match(found, rf"^([0-9{{].*{texts.MENTIONED}.*)$")
    number = first_match(line, r'"number": ([0-9]+)')
    if line and not number:
        position = first_match(line, r"^([0-9]+):")
        shown = yield from hand.lines(hits[0], int(position), 1)
        number = first_match(shown, r'"number": ([0-9]+)')
    return number


TASKS = (
    Task(
        name="count rows of a CSV",
        kind="large",
        question="How many orders of exports/orders.csv from Norway (NO) were refunded?",
        tools=("fetch",),
        documents={"exports/orders.csv": texts.orders},
        plan=_count,
        truth=lambda: str(len(refunded())),
        is_proved=shows_count(lambda: len(refunded()), refunded),
    ),
    Task(
        name="one item of a 3 MB JSON",
        kind="large",
        question=f"Where is {texts.SKU} stored? Ask api/inventory.",
        tools=("fetch",),
        documents={"api/inventory": texts.inventory},
        plan=_shelf,
        truth=lambda: texts.SHELF,
        is_proved=lambda seen: f'"sku":"{texts.SKU}","location":"{texts.SHELF}"' in seen,
    ),
    Task(
        name="which of 200 results mentions it",
        kind="large",
        question=f"Which issue mentions {texts.MENTIONED}? See tracker/search?q=queue.",
        tools=("fetch",),
        documents={"tracker/search?q=queue": texts.issues},
        plan=_mentions,
        truth=lambda: "4137",
        is_proved=mention_is_shown,
    ),
)
