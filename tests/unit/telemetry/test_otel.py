"""The counts as metrics of OpenTelemetry."""

from __future__ import annotations

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from fdstore.telemetry import counts, otel


def test_opentelemetry_gets_the_counts_that_prometheus_gets() -> None:
    counts.turn_off()
    counts.turn_on()
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    otel.observe(provider.get_meter("test"))
    counts.count("fdstore_result_chars_total", "true", by=5000)
    counts.count("fdstore_result_chars_total", "false", by=30)
    counts.count("fdstore_kept_out_chars_total", by=4000)
    counts.count("fdstore_read_chars_total", by=1000)

    [resource] = reader.get_metrics_data().resource_metrics
    found = {
        (metric.name, *point.attributes.values()): point.value
        for metric in resource.scope_metrics[0].metrics
        for point in metric.data.data_points
    }
    provider.shutdown()
    counts.turn_off()

    assert found == {
        ("fdstore.tool.result.chars", "true"): 5000,
        ("fdstore.tool.result.chars", "false"): 30,
        ("fdstore.kept_out.chars",): 4000,
        ("fdstore.read.chars",): 1000,
        ("fdstore.saved.chars",): 3000,
    }
