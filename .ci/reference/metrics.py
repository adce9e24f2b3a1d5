"""The tables of the metrics, from their rows."""

from __future__ import annotations

from fdstore.store.views.gauges import QueueGauges, StoreGauges
from fdstore.telemetry.metric_table import COUNTED, SAVED_CHARS, gauges_of
from fdstore_workers.status_server import GAUGES
from reference import markdown


def served() -> str:
    """Return the table of what workers serve."""
    rows = [[_code(each.name), each.kind, _code(*each.labels), each.help] for each in (*COUNTED, *GAUGES)]
    return markdown.table(["metric", "kind", "labels", "meaning"], rows)


def sent() -> str:
    """Return the table of what OpenTelemetry gets: of the process, then of each store."""
    stores = [*gauges_of(StoreGauges).values(), *gauges_of(QueueGauges).values()]
    shown = [(each, each.labels) for each in (*COUNTED, SAVED_CHARS)]
    shown += [(each, ("prefix",)) for each in stores]
    rows = [[*map(_code, each.otel), _code(*labels), _code(each.name)] for each, labels in shown if each.otel]
    return markdown.table(["metric", "unit", "attributes", "the same as"], rows)


def _code(*names: str) -> str:
    return ", ".join(f"`{name}`" for name in names)
