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
from fdstore.text.quantities import plain_count

MIN_TYPES = 2
SHOWN_FAMILIES = 30

_TYPE = re.compile(
    r"# TYPE ([a-zA-Z_:][\w:]*) (counter|gauge|histogram|summary|untyped|unknown|info|stateset)$", re.ASCII
)
_SAMPLE = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{[^\n]*\})? [-+\w.]+(?: |$)", re.ASCII)
_TYPES, _SAMPLES = (re.compile(f"^(?:{each.pattern})", re.ASCII | re.MULTILINE) for each in (_TYPE, _SAMPLE))
_SUFFIX = re.compile(r"_(?:bucket|sum|count|total|created|info)$")


def metrics(sample: Sample) -> Outline | None:
    """Describe metrics."""
    judged = [line for line in sample.first[:JUDGED_LINES] if line.strip()]
    if not any(map(_TYPE.match, judged)) or not all(
        line.startswith("#") or _SAMPLE.match(line) for line in judged
    ):
        return None
    declared: dict[str, tuple[int, str]] = {}
    samples = Counter[str]()
    for span in sample.spans:
        text = span.data.decode("utf-8", "replace")
        number, end = span.first, 0
        name = ""
        for found in _TYPES.finditer(text):
            _count_samples(text[end : found.start()], name, samples)
            number += text.count("\n", end, found.start())
            end, name = found.start(), found[1]
            declared.setdefault(name, (number, found[2]))
        _count_samples(text[end:], name, samples)
    for name in samples.keys() - declared.keys():
        if (family := _SUFFIX.sub("", name)) != name:
            samples[family] += samples.pop(name)
    if len(declared) < MIN_TYPES:
        return None
    part = part_of(sample.range_of_spans())
    families = [
        f"{number}:{excerpt(name)} {kind}, {plain_count(samples[name], 'sample')}"
        for name, (number, kind) in declared.items()
    ]
    heading = f"{len(families)} metric families are declared{part}; {plain_count(samples.total(), 'sample')}"
    if others := len(samples.keys() - declared.keys()):
        heading += f", also of {plain_count(others, 'name')} not declared here"
    lines = [heading, *first_and_last(families, SHOWN_FAMILIES, "families")]
    return Outline(kind="metrics", of=sample.range_of_spans(), lines=lines)


def _count_samples(text: str, name: str, samples: Counter[str]) -> None:
    """Add the samples of a part of a text, by the names before their labels. If all are of `name`, no line is
    looked at by itself."""
    lines = text.count("\n") + 1 - text.endswith("\n")
    others = text.count("\n#") + text.count("\n\n") + text.startswith("#")
    found = text.count(f"\n{name}{{") + text.count(f"\n{name} ") if name else 0
    if found and found + others == lines:
        samples[name] += found
    else:
        samples.update(_SAMPLES.findall(text))
