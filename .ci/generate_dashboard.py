"""Draws the panels of the dashboard, deploy/grafana/fdstore.json, from the metrics: `make generate`.

    python .ci/generate_dashboard.py            writes them
    python .ci/generate_dashboard.py --check    exits with 1 if they are stale, and names the file

The row of a metric says in which panels it is drawn (`Plot`). The panels, in their order, are `NUMBERS` and
`GRAPHS`, then those that a row declares. What the file says beside its panels is written by hand.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from typing import Any

import msgspec
from generated_files import ROOT, update

from fdstore.store.views.gauges import QueueGauges, StoreGauges
from fdstore.telemetry.metric_table import COUNTED, Metric, gauges_of
from fdstore_workers.status_server import WorkerGauges

FILE = "deploy/grafana/fdstore.json"
SOURCE = {"type": "prometheus", "uid": "${datasource}"}


class Panel(msgspec.Struct, frozen=True):
    """A panel: its unit, in Grafana's words, and the colour of a number from each of these values on."""

    title: str
    unit: str = "short"
    about: str = ""
    colours: dict[str, float | None] = {}


UP = {"red": None, "green": 1}

NUMBERS = (
    Panel("Store", about="1: a worker reaches the store.", colours=UP),
    Panel("Ready workers", colours=UP),
    Panel("Live processes"),
    Panel("Trees"),
    Panel("Open streams"),
    Panel("Oldest in the queue", "s", colours={"green": None, "orange": 10, "red": 60}),
    Panel("Sweep lag", "s", colours={"green": None, "orange": 15, "red": 60}),
    Panel("Saved characters", about="Kept out of contexts, less what was read back."),
)

GRAPHS = (
    Panel("Answers", "reqps"),
    Panel("Tokens"),
    Panel("Prompt cache", "percentunit", "The part of all input tokens that was read from the prompt cache."),
    Panel("Time of answers", "s"),
    Panel("Retries and failures of models", "reqps"),
    Panel("Ends of processes", "ops"),
    Panel("Tool calls", "ops"),
    Panel("Time of tool calls, p95", "s"),
    Panel("Calls that did not succeed", "ops"),
    Panel("Characters of results"),
    Panel("Queue"),
    Panel("Questions to people"),
    Panel("Contents in the object store"),
    Panel("Cold contents", "ops"),
    Panel("Cold bytes", "Bps"),
    Panel("Attempts, losses, takeovers", "ops"),
    Panel("Memory of Redis", "bytes"),
    Panel("Workers"),
    Panel("Starts of workers' processes in 15 minutes"),
)


def expressions() -> Iterator[tuple[Metric, str]]:
    """Yield each metric with the expression of a plot that has none of its own. A gauge of the store is the
    same for all workers; it comes before those that are summed over the workers."""
    for metric in COUNTED:
        by = f" by ({', '.join(metric.labels)}) " if metric.labels else ""
        yield metric, f"sum{by}(rate({metric.name}[$__rate_interval]))"
    for kind, over_workers in ((StoreGauges, "max"), (QueueGauges, "max"), (WorkerGauges, "sum")):
        for gauge in gauges_of(kind).values():
            yield gauge, f"{over_workers}({gauge.name})"


def graphs() -> tuple[Panel, ...]:
    """Return the graphs: those above, then those that rows of metrics declare by a unit."""
    known = {panel.title for panel in (*NUMBERS, *GRAPHS)}
    plots = [plot for metric, _ in expressions() for plot in metric.plots]
    new = {
        plot.panel: Panel(plot.panel, plot.unit) for plot in plots if plot.unit and plot.panel not in known
    }
    return (*GRAPHS, *new.values())


def targets() -> dict[str, list[dict[str, Any]]]:
    """Return the plots of each panel, by its title, as Grafana reads them."""
    found: dict[str, list[dict[str, Any]]] = {panel.title: [] for panel in (*NUMBERS, *graphs())}
    for metric, expr in expressions():
        for plot in metric.plots:
            if plot.panel not in found:
                raise SystemExit(
                    f"{metric.name}: no panel {plot.panel!r}; a new one has a unit in its `Plot`"
                )
            of = found[plot.panel]
            of.append(
                {
                    "refId": chr(ord("A") + len(of)),
                    "expr": of_chosen_job(plot.expr or expr),
                    "legendFormat": plot.legend or " ".join(f"{{{{{label}}}}}" for label in metric.labels),
                    "datasource": SOURCE,
                }
            )
    return found


def of_chosen_job(expr: str) -> str:
    """Return an expression over the job that is chosen on the dashboard.

    >>> of_chosen_job('max(fdstore_x) / fdstore_y{type="a"}')
    'max(fdstore_x{job=~"$job"}) / fdstore_y{job=~"$job",type="a"}'
    """
    return re.sub(
        r"\b(fdstore_\w+)(?:\{(.*?)\})?",
        lambda found: f'{found[1]}{{job=~"$job"{"," + found[2] if found[2] else ""}}}',
        expr,
    )


def number(panel: Panel, place: int) -> dict[str, Any]:
    """Return what a panel of the row of numbers has of its own."""
    steps = [{"color": colour, "value": value} for colour, value in panel.colours.items()]
    return {
        "type": "stat",
        "gridPos": {"h": 4, "w": 3, "x": 3 * place, "y": 0},
        "defaults": {"thresholds": {"mode": "absolute", "steps": steps}} if steps else {},
        "options": {
            "reduceOptions": {"calcs": ["lastNotNull"]},
            "colorMode": "background" if steps else "value",
        },
    }


def graph(panel: Panel, place: int) -> dict[str, Any]:
    """Return what a panel of the graphs has of its own, three in a row."""
    return {
        "type": "timeseries",
        "gridPos": {"h": 7, "w": 8, "x": 8 * (place % 3), "y": 4 + 7 * (place // 3)},
        "defaults": {"min": 0, "custom": {"lineWidth": 1, "fillOpacity": 10, "showPoints": "never"}},
        "options": {
            "legend": {"displayMode": "list", "placement": "bottom"},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
    }


def panels() -> Iterator[dict[str, Any]]:
    """Yield all panels, as Grafana reads them."""
    plots = targets()
    drawn = [(panel, number(panel, place)) for place, panel in enumerate(NUMBERS)]
    drawn += [(panel, graph(panel, place)) for place, panel in enumerate(graphs())]
    for ident, (panel, own) in enumerate(drawn, 1):
        yield {
            "id": ident,
            "type": own["type"],
            "title": panel.title,
            "description": panel.about,
            "datasource": SOURCE,
            "gridPos": own["gridPos"],
            "fieldConfig": {"defaults": {"unit": panel.unit, **own["defaults"]}, "overrides": []},
            "targets": plots[panel.title],
            "options": own["options"],
        }


def dashboard() -> str:
    """Return the dashboard with its present panels."""
    written = json.loads((ROOT / FILE).read_text("utf-8"))
    return json.dumps(written | {"panels": list(panels())}, indent=1) + "\n"


if __name__ == "__main__":
    sys.exit(update([(FILE, dashboard())], check="--check" in sys.argv[1:]))
