"""The metrics of a worker and of a program, by the conventions of Prometheus: a metric is one row.

The rows make `/metrics`, the metrics of OpenTelemetry, their page of the reference and the dashboard.
Those of counters and histograms are `COUNTED`. That of a gauge annotates the field that holds its value, in a
Struct that each layer declares for its own state; `gauges_of` finds it there.
"""

from __future__ import annotations

from functools import cache
from typing import Literal, get_args, get_type_hints

import msgspec

CALL_BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Upper bounds: from a page read to a command that takes minutes."""

ANSWER_BUCKETS_S = (0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 60.0, 120.0, 300.0, 600.0)


class Plot(msgspec.Struct, frozen=True):
    """A line, or a number, on the dashboard.

    panel   the title of its panel, one of .ci/generate_dashboard.py
    legend  what it is called there; "": the values of its labels
    expr    its PromQL; "": the rate of a counter, by all labels, or the value of a gauge
    unit    of a panel that is not there, in Grafana's words: it is drawn after the others
    """

    panel: str
    legend: str = ""
    expr: str = ""
    unit: str = ""


class Metric(msgspec.Struct, frozen=True):
    """A histogram if it has upper bounds (`buckets`), a counter if its name ends with `_total`, else a gauge.
    A gauge with a label shows its value there, and is 1.

    plots  where the dashboard shows it
    otel   its name and unit in OpenTelemetry, if it is sent there
    """

    name: str
    help: str
    labels: tuple[str, ...] = ()
    plots: tuple[Plot, ...] = ()
    buckets: tuple[float, ...] = ()
    otel: tuple[str, str] | None = None

    @property
    def kind(self) -> Literal["counter", "histogram", "gauge"]:
        if self.buckets:
            return "histogram"
        return "counter" if self.name.endswith("_total") else "gauge"

    @property
    def size(self) -> int:
        """Return how many numbers it has: those in each bucket, those above, and the sum; or the count."""
        return len(self.buckets) + 2 if self.buckets else 1


COUNTED = (
    Metric(
        "fdstore_model_turns_total",
        "Answers of models.",
        ("model",),
        (Plot("Answers"),),
        otel=("fdstore.model.turns", "{answer}"),
    ),
    Metric(
        "fdstore_model_tokens_total",
        "Tokens, as the provider counts them. Type: input (all that was sent), cache_read and "
        "cache_write (the parts of it that were read from its prompt cache, or written to it), output.",
        ("model", "type"),
        (
            Plot("Tokens", "{{type}}", "sum by (type) (rate(fdstore_model_tokens_total[$__rate_interval]))"),
            Plot(
                "Prompt cache",
                "read from the cache",
                'sum(rate(fdstore_model_tokens_total{type="cache_read"}[$__rate_interval]))'
                ' / sum(rate(fdstore_model_tokens_total{type="input"}[$__rate_interval]))',
            ),
        ),
        otel=("fdstore.model.tokens", "{token}"),
    ),
    Metric(
        "fdstore_model_call_duration_seconds",
        "Time until an answer was complete, with retries and their pauses.",
        ("model",),
        tuple(
            Plot(
                "Time of answers",
                f"p{100 * part:g}",
                f"histogram_quantile({part:g}, sum by (le) "
                "(rate(fdstore_model_call_duration_seconds_bucket[$__rate_interval])))",
            )
            for part in (0.5, 0.95)
        ),
        ANSWER_BUCKETS_S,
    ),
    Metric(
        "fdstore_model_retries_total",
        "Requests to models that failed and were repeated.",
        ("model",),
        (Plot("Retries and failures of models", "retries {{model}}"),),
    ),
    Metric(
        "fdstore_model_failures_total",
        "Model calls that were given up.",
        ("model",),
        (Plot("Retries and failures of models", "given up {{model}}"),),
    ),
    Metric(
        "fdstore_tool_calls_total",
        "Tool calls. Outcome: ok, error (its result has is_error), started (it waits for processes, and "
        "counts again when its agent goes on), failed (the store failed).",
        ("tool", "outcome"),
        (
            Plot(
                "Tool calls",
                "{{tool}}",
                "sum by (tool) (rate(fdstore_tool_calls_total[$__rate_interval]))",
            ),
            Plot(
                "Calls that did not succeed",
                "{{tool}} {{outcome}}",
                "sum by (tool, outcome) "
                '(rate(fdstore_tool_calls_total{outcome=~"error|failed"}[$__rate_interval]))',
            ),
        ),
    ),
    Metric(
        "fdstore_tool_duration_seconds",
        "Time of tool calls, without waiting for the processes that they start.",
        ("tool",),
        (
            Plot(
                "Time of tool calls, p95",
                "{{tool}}",
                "histogram_quantile(0.95, sum by (le, tool) "
                "(rate(fdstore_tool_duration_seconds_bucket[$__rate_interval])))",
            ),
        ),
        CALL_BUCKETS_S,
    ),
    Metric(
        "fdstore_result_chars_total",
        "Characters of results of tools.",
        ("offloaded",),
        (Plot("Characters of results", "offloaded: {{offloaded}}"),),
        otel=("fdstore.tool.result.chars", "{char}"),
    ),
    Metric(
        "fdstore_kept_out_chars_total",
        "Characters of texts that were stored instead of being sent to a model, less what it saw instead.",
        plots=(Plot("Characters of results", "kept out"),),
        otel=("fdstore.kept_out.chars", "{char}"),
    ),
    Metric(
        "fdstore_read_chars_total",
        "Characters of stored texts that were shown to models by fdstore's tools.",
        plots=(Plot("Characters of results", "read back"),),
        otel=("fdstore.read.chars", "{char}"),
    ),
    Metric(
        "fdstore_process_attempts_total",
        "Attempts at processes. Ending: ended, waiting (until children end), given_back, lost, failed.",
        ("ending",),
        (Plot("Attempts, losses, takeovers"),),
    ),
    Metric(
        "fdstore_process_ends_total",
        "Processes that ended here, by their state.",
        ("state",),
        (Plot("Ends of processes"),),
    ),
    Metric(
        "fdstore_process_losses_total",
        "Processes whose worker was lost, as this worker found out.",
        plots=(Plot("Attempts, losses, takeovers", "losses"),),
        otel=("fdstore.process.losses", "{process}"),
    ),
    Metric(
        "fdstore_process_takeovers_total",
        "Processes that this worker continued after another was lost.",
        plots=(Plot("Attempts, losses, takeovers", "takeovers"),),
        otel=("fdstore.process.takeovers", "{process}"),
    ),
    Metric(
        "fdstore_worker_starts_total",
        "Starts of the process that works; more than 1: it died before.",
        plots=(
            Plot(
                "Starts of workers' processes in 15 minutes",
                "{{instance}}",
                "increase(fdstore_worker_starts_total[15m])",
            ),
        ),
    ),
    Metric(
        "fdstore_worker_lost_calls_total",
        "Calls that did not end within a minute after they were lost, so that their process was replaced.",
        plots=(
            Plot(
                "Starts of workers' processes in 15 minutes",
                "{{instance}}: lost calls",
                "increase(fdstore_worker_lost_calls_total[15m])",
            ),
        ),
    ),
    Metric(
        "fdstore_cold_contents_out_total",
        "Contents that moved to the object store.",
        (),
        (Plot("Cold contents", "moved out"),),
    ),
    Metric(
        "fdstore_cold_bytes_out_total",
        "Their bytes.",
        (),
        (Plot("Cold bytes", "moved out"),),
    ),
    Metric(
        "fdstore_cold_contents_back_total",
        "Cold contents that came back to Redis, because they were read again and again.",
        (),
        (Plot("Cold contents", "came back"),),
    ),
    Metric(
        "fdstore_cold_reads_total",
        "Reads of cold contents.",
        (),
        (Plot("Cold contents", "reads"),),
    ),
    Metric(
        "fdstore_cold_objects_deleted_total",
        "Objects that no content needed any more and that were deleted.",
        (),
        (Plot("Cold contents", "objects deleted"),),
    ),
    Metric(
        "fdstore_cold_failures_total",
        "Turns of the mover that the object store ended: it is out of reach, or refuses.",
        (),
        (Plot("Cold contents", "failures"),),
    ),
)

METRICS = {metric.name: metric for metric in COUNTED}

SAVED_CHARS = Metric(
    "fdstore_saved_chars",
    "Characters kept out of contexts less those read back, since the start.",
    plots=(Plot("Saved characters"),),
    otel=("fdstore.saved.chars", "{char}"),
)
"""The gauge that is made of two of the counters."""


@cache
def gauges_of(kind: type[msgspec.Struct]) -> dict[str, Metric]:
    """Return the gauges of a Struct by the names of their fields, in its order. One whose field is None is
    absent."""
    return {
        field: each
        for field, hint in get_type_hints(kind, include_extras=True).items()
        for each in get_args(hint)
        if isinstance(each, Metric)
    }
