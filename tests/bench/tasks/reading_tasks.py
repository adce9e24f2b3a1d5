"""Tasks that need every line of long texts: see `reading`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec

from tests.bench.tasks import long_texts, texts


class ReadingTask(msgspec.Struct, frozen=True, kw_only=True):
    """One task: what `fetch` returns by name, what a model says about a part of it, the answer from all that
    was said, the program, and the true answer."""

    name: str
    question: str
    documents: dict[str, Callable[[], str]]
    read: Callable[[str], str]
    merge: Callable[[list[str]], str]
    code: str
    truth: Callable[[], str]


def _asking(question: str, merged: str) -> str:
    return (
        f'question = """{question}"""\nparts = fd(1).split(chars=50_000)\n'
        f"answers = await asyncio.gather(*[ask(question, part) for part in parts])\n{merged}"
    )


_KINDS = ", ".join(long_texts.KINDS)
_ADDED_KINDS = """\
counts, numbers = collections.Counter(), []
for line in "\\n".join(answers).splitlines():
    kind, *rest = line.split()
    if kind == "numbers":
        numbers += rest
    else:
        counts[kind] += int(rest[0])
for kind, count in counts.items():
    print(kind, count)
print("numbers", *numbers)
"""
_CONTRADICTIONS = """\
by_topic = {}
for line in "\\n".join(answers).splitlines():
    if " | " not in line:
        continue
    section, topic, euros = line.split(" | ")
    by_topic.setdefault(topic, []).append((section, euros))
for topic, found in by_topic.items():
    if len({euros for _, euros in found}) > 1:
        print(f"sections {' and '.join(section for section, _ in found)}: {topic}")
"""
_REPORTS_CODE = """\
async def row(number):
    report = await fetch(name=f"report {number}")
    return await ask("By how many points did returns grow? Answer as: region,points", report)
print("\\n".join(await asyncio.gather(*[row(number) for number in range(1, 301)])))
"""
_ORDERS_CODE = """\
cents = collections.Counter()
orders = fd(1)
for first in range(1, orders.total_lines + 1, 5000):
    for line in orders.lines(first, min(first + 4999, orders.total_lines)).splitlines():
        row = line.split(",")
        if row[4] == "paid":
            cents[row[3]] += int(row[6].replace(".", ""))
for country in sorted(cents):
    print(country, cents[country])
"""
_REPORT_NAMES = tuple(f"report {number}" for number in range(1, long_texts.REPORTS + 1))

READING_TASKS: dict[str, ReadingTask] = {
    task.name: task
    for task in (
        ReadingTask(
            name="count 5000 reviews by meaning",
            question="How many reviews of the text reviews complain that the delivery was late?",
            documents={"reviews": long_texts.reviews},
            read=long_texts.late_reviews,
            merge=lambda answers: str(sum(map(int, answers))),
            code=_asking(
                "How many of these reviews complain that the delivery was late? Answer with the number.",
                "print(sum(int(answer) for answer in answers))",
            ),
            truth=lambda: long_texts.late_reviews(long_texts.reviews()),
        ),
        ReadingTask(
            name="classify 5000 tickets",
            question=f"How many tickets of the text tickets are of each kind ({_KINDS})? Say the numbers of "
            "those about security.",
            documents={"tickets": long_texts.tickets},
            read=long_texts.ticket_kinds,
            merge=long_texts.add_kinds,
            code=_asking(
                f"How many of these tickets are of each kind ({_KINDS})? A line for each kind: kind count. "
                "Then a line: numbers, and the numbers of those about security.",
                _ADDED_KINDS,
            ),
            truth=lambda: long_texts.ticket_kinds(long_texts.tickets()),
        ),
        ReadingTask(
            name="compare all pairs of 60 sections",
            question="Which two sections of the text handbook have different rules about the same thing?",
            documents={"handbook": long_texts.handbook},
            read=long_texts.rules,
            merge=long_texts.contradictions,
            code=_asking(
                "Which amounts do these sections ask for, and for what? A line each: section | what | amount",
                _CONTRADICTIONS,
            ),
            truth=lambda: long_texts.contradictions([long_texts.rules(long_texts.handbook())]),
        ),
        ReadingTask(
            name="a table out of 300 reports",
            question="By how many points did returns grow in each region, by the texts report 1 to report "
            "300? A line each: region,points",
            documents={
                name: partial(long_texts.region_report, number)
                for number, name in enumerate(_REPORT_NAMES, 1)
            },
            read=long_texts.changes,
            merge=long_texts.sorted_rows,
            code=_REPORTS_CODE,
            truth=lambda: "\n".join(
                long_texts.changes(long_texts.region_report(number))
                for number in range(1, long_texts.REPORTS + 1)
            ),
        ),
        ReadingTask(
            name="sums of a CSV of 2.4 MB, by code",
            question="What is the total in cents of the paid orders of each country, by exports/orders.csv?",
            documents={"exports/orders.csv": texts.orders},
            read=long_texts.paid_by_country,
            merge=long_texts.add_countries,
            code=_ORDERS_CODE,
            truth=lambda: long_texts.paid_by_country(texts.orders()),
        ),
    )
}
