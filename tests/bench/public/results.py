"""The sums of groups of tasks, and their table: each way as a ratio to everything inline.

Sums are divided, not averages: a long conversation counts as much as it costs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Literal

from fdstore.model.records import Record
from tests.bench.public.measuring import LONG_CHARS, Cost, Group, Measured
from tests.bench.public.ways import WAYS, Way

Unit = Literal["characters", "tokens"]
KINDS = ("SENT", "CACHED", "READ", "READ, CACHED")
"""The names of the fields of `Cost`."""

GROUPS: dict[Group, str] = {
    "all": "all {}",
    "long": f"{{}} with a result over {LONG_CHARS}",
    "short": "other {}",
}
WAY_NAMES: dict[Way, str] = {
    "plain": "all inline",
    "always": "always offered",
    "appearing": "from the first descriptor on",
    "deferred": "deferred",
}
UNITS: tuple[Unit, ...] = ("characters", "tokens")


class Row(Record, frozen=True, kw_only=True):
    """The tasks of a group in one way: how many they are, how many results were stored, and the sums of all
    requests. `plain` has no threshold."""

    group: Group
    tasks: int
    threshold: int | None
    way: Way
    stored: int
    characters: Cost
    tokens: Cost


def rows_of(measured: Iterable[Measured], groups: Collection[Group]) -> list[Row]:
    """Return the rows of these groups, `plain` first in each."""
    found: dict[tuple[Group, int | None, Way], list[Measured]] = {}
    for each in measured:
        for group in ("all", each.group):
            found.setdefault((group, each.threshold, each.way), []).append(each)
    order = sorted(found, key=_place)
    return [_row(*key, found[key]) for key in order if key[0] in groups]


def _place(key: tuple[Group, int | None, Way]) -> tuple[int, int, int]:
    group, threshold, way = key
    return list(GROUPS).index(group), threshold or 0, WAYS.index(way) if way in WAYS else 0


def _row(group: Group, threshold: int | None, way: Way, measured: Sequence[Measured]) -> Row:
    return Row(
        group=group,
        tasks=len(measured),
        threshold=threshold,
        way=way,
        stored=sum(each.stored for each in measured),
        characters=_sum(each.characters for each in measured),
        tokens=_sum(each.tokens for each in measured),
    )


def _sum(costs: Iterable[Cost]) -> Cost:
    return Cost(*map(sum, zip(*costs, strict=True)))


def header(unit: Unit) -> list[str]:
    """Return the header of the table in one unit."""
    return [unit.upper(), "THRESHOLD", "OUR TOOLS", "STORED", *KINDS]


RIGHT = ["THRESHOLD", "STORED", *KINDS]


def cells(rows: Iterable[Row], unit: Unit) -> list[list[str]]:
    """Return the cells of the table in one unit: of `plain` what it costs, of others the ratio to it."""
    made = []
    plain = Cost(0, 0, 0, 0)
    for row in rows:
        cost: Cost = getattr(row, unit)
        if row.way == "plain":
            plain = cost
            # with nothing stored, there is nothing to read
            numbers = [*(f"{number / 1e6:.2f} M" for number in cost[:2]), "", ""]
        else:
            numbers = [f"{ours / theirs:.3f}" for ours, theirs in zip(cost, plain, strict=True)]
        tasks = GROUPS[row.group].format(row.tasks) if row.way == "plain" else ""
        made.append([tasks, str(row.threshold or ""), WAY_NAMES[row.way], str(row.stored or ""), *numbers])
    return made


def markdown(rows: Iterable[Row], unit: Unit) -> str:
    """Return the table in one unit for the documentation."""
    names = header(unit)
    marks = ["---:" if name in RIGHT else "---" for name in names]
    lines = [[name.lower() for name in names], marks, *cells(rows, unit)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
