"""Tasks with many results: the metrics of 40 services, the reports of ten child agents."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from fdstore.testing import call
from tests.bench.tasks import texts
from tests.bench.tasks.plans import Hand, Plan, first_match
from tests.bench.tasks.task import Task, shows

_P99 = r'quantile="0\.99"'


def _slowest(hand: Hand) -> Plan:
    names = [f"metrics/{service}" for service in texts.SERVICES]
    found = yield from hand.fetch_and_find(names, _P99)
    seconds = [first_match(each, rf"{_P99}\}} ([0-9.]+)") for each in found]
    return max(zip(map(float, seconds), texts.SERVICES, strict=True))[1] if all(seconds) else ""


ORDERS = tuple(range(5200, 5240))
_CARRIER = r'carrier(?:": |: string, e\.g\. )"'
"""In the record, or in the preview of its shape: there is one, so the example is its value."""


def _carriers(hand: Hand) -> Plan:
    found = yield from hand.fetch_and_find([f"orders/{number}" for number in ORDERS], _CARRIER)
    return ", ".join(first_match(each, rf'{_CARRIER}([^"]+)"') for each in found)


def _reports(hand: Hand) -> Plan:
    if hand.has_fds:
        calls = [call("spawn", program_name="reporter", query=region) for region in texts.REGIONS]
        reports = yield from hand.each(calls)
    else:
        reports = yield from hand.fetch(*(f"report/{region}" for region in texts.REGIONS))
    shown = yield from hand.find(reports, "^Conclusion: ")
    return "\n".join(first_match(each, r"^(?:[0-9]+:)?Conclusion: (.+)$") for each in shown)


def _documents(
    prefix: str, names: tuple[str, ...], make: Callable[[str], str]
) -> dict[str, Callable[[], str]]:
    return {f"{prefix}/{name}": partial(make, name) for name in names}


TASKS = (
    Task(
        name="the slowest of 40 services",
        kind="large",
        question=f"Which service has the highest p99? metrics/NAME for {', '.join(texts.SERVICES)}.",
        tools=("fetch",),
        documents=_documents("metrics", texts.SERVICES, texts.metrics),
        plan=_slowest,
        truth=lambda: max(texts.SERVICES, key=lambda service: float(texts.p99_of(service))),
        is_proved=shows(
            *(f'service="{each}",quantile="0.99"}} {texts.p99_of(each)}' for each in texts.SERVICES)
        ),
    ),
    Task(
        name="one field of 40 orders of 12 KB",
        kind="large",
        question="Who are the carriers of the orders 5200 to 5239, in this order? orders/NUMBER.",
        tools=("fetch",),
        documents={f"orders/{number}": partial(texts.order, number) for number in ORDERS},
        plan=_carriers,
        truth=lambda: ", ".join(map(texts.carrier_of, ORDERS)),
        is_proved=shows(*map(texts.carrier_of, ORDERS)),
    ),
    Task(
        name="reports of ten children",
        kind="large",
        question="Have each of the regions 1 to 10 studied, and say each conclusion.",
        tools=("fetch",),
        documents=_documents("report", texts.REGIONS, texts.report),
        reporters=True,
        plan=_reports,
        truth=lambda: "\n".join(map(texts.conclusion, texts.REGIONS)),
        is_proved=shows(*map(texts.conclusion, texts.REGIONS)),
    ),
)
