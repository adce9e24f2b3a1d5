"""Metrics in the text format of Prometheus and OpenMetrics: each family with its type and how many samples.

A text counts as metrics if lines at its beginning declare types (`# TYPE name counter`), and the others there
are samples, comments or blank.
"""

from __future__ import annotations

import re
from collections import Counter

from fdstore.text.previews.sample import (
    JUDGED_LINES,
    Outline,
    Sample,
    excerpt,
    first_and_last,
    part_of,
)
from fdstore.text.quantities import format_count

MIN_TYPES = 2
SHOWN_FAMILIES = 30

_TYPE = re.compile(
    r"# TYPE ([a-zA-Z_:][\w:]*) (counter|gauge|histogram|summary|untyped|unknown|info|stateset)$", re.ASCII
)
_SAMPLE = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{[^\n]*\})? [-+\w.]+(?: |$)", re.ASCII)
_SUFFIX = re.compile(r"_(?:bucket|sum|count|total|created|info)$")


def metrics(sample: Sample) -> Outline | None:
    """Describe metrics."""
    judged = [line for line in sample.first[:JUDGED_LINES] if line.strip()]
    types = sum(1 for line in judged if _TYPE.match(line))
    if types < MIN_TYPES or not all(line.startswith("#") or _SAMPLE.match(line) for line in judged):
        return None
    declared: dict[str, tuple[int, str]] = {}
    samples = Counter[str]()
    for number, line in sample.numbered():
        if found := _TYPE.match(line):
            declared.setdefault(found[1], (number, found[2]))
        elif found := _SAMPLE.match(line):
            name = found[1]
            samples[name if name in declared else _SUFFIX.sub("", name)] += 1
    part = part_of(sample.range_of_lines())
    families = [
        f"{number}:{excerpt(name)} {kind}, {format_count(samples[name], 'sample')}"
        for name, (number, kind) in declared.items()
    ]
    heading = f"{len(families)} metric families are declared{part}; {format_count(samples.total(), 'sample')}"
    if others := len(samples.keys() - declared.keys()):
        heading += f", also of {format_count(others, 'name')} not declared here"
    lines = [heading, *first_and_last(families, SHOWN_FAMILIES, "families")]
    return Outline(kind="metrics", of=sample.range_of_lines(), lines=lines)
