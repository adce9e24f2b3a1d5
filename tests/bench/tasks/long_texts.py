"""Texts of which every line counts, and what a model that reads a part of one says about it.

What a line means is decided by its sentence, and no word of it tells: a search does not find it. So
`late_reviews` and the other functions stand for a model that understands what it reads. They see the part of
the text that the model was shown, and nothing else.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from functools import cache

from tests.bench.tasks.texts import filler

LATE = (
    "It came when the party was over.",
    "I had bought it in the shop round the corner before the parcel turned up.",
    "Promised for Monday, it was here on the Friday after.",
    "My son's birthday had passed by the time it was at the door.",
)
NOT_LATE = (
    "I am late with this review: it has worked every day for a year.",
    "It came a day before they had said.",
    "The colour is not the one of the picture, but nice.",
    "Nobody could tell me on Monday whether there is a larger one.",
    "The parcel stood at the door on the next morning.",
    "It broke when my son used it for the first time.",
)
KINDS = {
    "billing": ("The invoice names an amount that I never agreed to.", "I paid twice and got nothing back."),
    "login": ("My password is right and it still says no.", "The page asks who I am again and again."),
    "shipping": ("Where is my parcel?", "The address on the label is that of my former flat."),
    "defect": ("The lid does not close any more.", "It makes a noise like a kettle."),
    "praise": ("Thank you, all is well.", "The lady on the phone was very kind."),
    "security": ("I see the orders of another person in my list.", "A stranger used my card in your shop."),
}
_KIND_OF = {sentence: kind for kind, sentences in KINDS.items() for sentence in sentences}
REVIEWS, TICKETS, SECTIONS, REPORTS = 5000, 5000, 60, 300
REGION_CHARS = 9000


@cache
def reviews() -> str:
    """Return 5000 reviews, a line each, 500 KB."""
    chance = random.Random(21)
    lines = []
    for number in range(1, REVIEWS + 1):
        sentence = chance.choice(LATE if chance.random() < 0.15 else NOT_LATE)
        lines.append(f"review {number:04d} | {filler(chance, 6).capitalize()}. {sentence}")
    return "\n".join(lines) + "\n"


def late_reviews(shown: str) -> str:
    """Return how many of the reviews complain that the delivery was late."""
    lines = [line for line in shown.splitlines() if line.startswith("review ")]
    return str(sum(line.endswith(LATE) for line in lines))


@cache
def tickets() -> str:
    """Return 5000 tickets, a line each, 450 KB."""
    chance = random.Random(22)
    lines = []
    for number in range(1, TICKETS + 1):
        kind = "security" if chance.random() < 0.01 else chance.choice(list(KINDS)[:-1])
        text = f"{filler(chance, 5).capitalize()}. {chance.choice(KINDS[kind])}"
        lines.append(f"ticket {number:04d} | {text}")
    return "\n".join(lines) + "\n"


def ticket_kinds(shown: str) -> str:
    """Return how many tickets are of each kind, and the numbers of those about security."""
    found = [
        (line[7:11], _KIND_OF[line.partition(". ")[2]])
        for line in shown.splitlines()
        if line.startswith("ticket ")
    ]
    counts = Counter(kind for _, kind in found)
    numbers = [number for number, kind in found if kind == "security"]
    return "\n".join([*(f"{kind} {counts[kind]}" for kind in KINDS), f"numbers {' '.join(numbers)}"])


def add_kinds(answers: list[str]) -> str:
    """Add up what was said about parts of the tickets."""
    counts, numbers = Counter[str](), list[str]()
    for line in "\n".join(answers).splitlines():
        kind, *rest = line.split()
        if kind == "numbers":
            numbers += rest
        else:
            counts[kind] += int(rest[0])
    return "\n".join([*(f"{kind} {counts[kind]}" for kind in KINDS), f"numbers {' '.join(numbers)}"])


_RULES = (
    "The deposit for {topic} is {euros} EUR.",
    "Whoever takes {topic} leaves {euros} EUR with us until it is back.",
    "{euros} EUR are kept as a security for {topic}.",
)


@cache
def handbook() -> str:
    """Return a handbook of 60 sections, 300 KB, each with one rule. Two sections have different rules about
    the same thing."""
    chance = random.Random(23)
    topics = [f"{filler(chance, 2)} {number}" for number in range(SECTIONS)]
    topics[42] = topics[17]
    lines = []
    for number, topic in enumerate(topics, 1):
        rule = chance.choice(_RULES).format(topic=topic, euros=100 + number)
        paragraphs = [f"{filler(chance, 60).capitalize()}." for _ in range(11)]
        paragraphs.insert(chance.randrange(11), f"{number}.1 {rule}")
        lines += [f"## Section {number}", *paragraphs]
    return "\n\n".join(lines) + "\n"


def _pattern(form: str, **fields: str) -> str:
    """Return the pattern of a sentence, with these patterns in its fields."""
    return re.escape(form).replace(r"\{", "{").replace(r"\}", "}").format(**fields)


def rules(shown: str) -> str:
    """Return the rules, a line each: section, thing, amount."""
    found = []
    for line in shown.splitlines():
        for form in _RULES:
            pattern = (
                re.escape(form).replace(r"\{topic\}", "(?P<topic>.+)").replace(r"\{euros\}", r"(?P<n>\d+)")
            )
            if match := re.fullmatch(rf"(?P<section>\d+)\.1 {pattern}", line):
                found.append(f"{match['section']} | {match['topic']} | {match['n']}")
    return "\n".join(found)


def contradictions(answers: list[str]) -> str:
    """Return the pairs of sections whose rules about one thing differ."""
    by_topic: dict[str, list[tuple[str, str]]] = {}
    for line in "\n".join(answers).splitlines():
        section, topic, euros = line.split(" | ")
        by_topic.setdefault(topic, []).append((section, euros))
    return "\n".join(
        f"sections {' and '.join(section for section, _ in found)}: {topic}"
        for topic, found in by_topic.items()
        if len({euros for _, euros in found}) > 1
    )


_CHANGES = (
    "All in all {region} returned {points} points more than in the year before.",
    "Compared with the year before, {points} points were added to what {region} sends back.",
)


@cache
def region_report(number: int) -> str:
    """Return the report on a region, 9 KB."""
    chance = random.Random(f"report {number}")
    paragraphs = [f"{filler(chance, 80).capitalize()}." for _ in range(REGION_CHARS // 600)]
    change = chance.choice(_CHANGES).format(region=f"region {number}", points=_points(number))
    paragraphs.insert(chance.randrange(len(paragraphs)), change)
    return f"# Region {number}\n\n" + "\n\n".join(paragraphs) + "\n"


def _points(number: int) -> int:
    return random.Random(f"points of {number}").randrange(1, 90)


def changes(shown: str) -> str:
    """Return the rows of the table for the reports that were shown: region, points."""
    patterns = [
        re.escape(form)
        .replace(r"\{region\}", r"region (?P<region>\d+)")
        .replace(r"\{points\}", r"(?P<n>\d+)")
        for form in _CHANGES
    ]
    found = {int(m["region"]): m["n"] for pattern in patterns for m in re.finditer(pattern, shown)}
    return "\n".join(f"{number},{found[number]}" for number in sorted(found))


def sorted_rows(answers: list[str]) -> str:
    """Return the rows of all parts in the order of their regions."""
    return "\n".join(sorted("\n".join(answers).splitlines(), key=lambda row: int(row.partition(",")[0])))


def paid_by_country(shown: str) -> str:
    """Return the cents of paid orders by country, of the rows that were shown."""
    cents = Counter[str]()
    for line in shown.splitlines():
        row = line.split(",")
        if len(row) == 7 and row[4] == "paid":
            cents[row[3]] += int(row[6].replace(".", ""))
    return "\n".join(f"{country} {cents[country]}" for country in sorted(cents))


def add_countries(answers: list[str]) -> str:
    """Add up the cents of all parts."""
    cents = Counter[str]()
    for line in "\n".join(answers).splitlines():
        country, amount = line.split()
        cents[country] += int(amount)
    return "\n".join(f"{country} {cents[country]}" for country in sorted(cents))
