"""docs/reference/metrics.md lists every metric, as the table in the code says."""

from __future__ import annotations

import re
from pathlib import Path

from fdstore.store.views.store_meter import OPEN_STREAMS, QUEUE_LENGTH
from fdstore.telemetry import otel
from fdstore.telemetry.metric_table import COUNTED, GAUGES

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "metrics.md").read_text("utf-8")


def test_every_metric_is_documented_with_its_kind_labels_and_meaning() -> None:
    rows = re.findall(r"(?m)^\| `(\w+)` \| (\w+) \| ([^|]*) \| (.*) \|$", PAGE)

    assert rows == [
        (metric.name, metric.kind, ", ".join(f"`{label}`" for label in metric.labels), metric.help)
        for metric in (*COUNTED, *GAUGES)
    ]


def test_the_names_in_opentelemetry_are_documented() -> None:
    assert {*otel.NAMES, "fdstore.saved.chars", OPEN_STREAMS, QUEUE_LENGTH} == set(
        re.findall(r"`(fdstore\.[\w.]+)`", PAGE)
    )
