"""The metrics of a program that has set a meter provider of OpenTelemetry."""

from __future__ import annotations

from collections.abc import Iterator

import opentelemetry.metrics._internal
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

import fdstore
from fdstore.client import Store
from fdstore.setup.settings import OtelSettings
from fdstore.store.clock import redis_now
from fdstore.store.processes.process_records import TreeHoldings
from fdstore.store.views.gauges import store_totals
from fdstore.telemetry import counts, otel


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemoryMetricReader]:
    """What a program reads that has set a meter provider, before it connects."""
    counts.turn_off()
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    monkeypatch.setattr(opentelemetry.metrics._internal, "_METER_PROVIDER", provider)
    yield reader
    provider.shutdown()
    counts.turn_off()


def values(reader: InMemoryMetricReader) -> dict[str, list[float]]:
    """Return the values of each metric that is collected now."""
    found = reader.get_metrics_data()
    resources = found.resource_metrics if found else []
    return {
        metric.name: [point.value for point in metric.data.data_points]
        for resource in resources
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }


def test_a_program_with_a_meter_provider_gets_its_counts_and_the_store_s(
    store: Store, reader: InMemoryMetricReader
) -> None:
    holdings = TreeHoldings(live=1, bytes=10, open_streams=3, questions=2, oldest_question=1.0)
    store.run(store_totals(store.prefix, [holdings], store.run(redis_now())))
    with fdstore.connect(store.url, store.prefix) as connected, fdstore.connect(store.url, store.prefix):
        tools = fdstore.Toolset(connected.process("triage"), enabled=["read_fd"])
        tools.wrap("a long line\n" * 5000)
        tools.call("read_fd", {"fd": "fd:1"})

        found = values(reader)

    assert found["fdstore.store.open_streams"] == [3]
    assert found["fdstore.store.open_questions"] == [2]
    assert found["fdstore.queue.length"] == [0]
    assert found["fdstore.tool.result.chars"][0] > 0
    assert found["fdstore.read.chars"][0] > 0
    assert "fdstore.saved.chars" in found


def test_a_store_that_is_gone_has_no_gauges_and_the_counts_remain(
    store: Store, reader: InMemoryMetricReader
) -> None:
    connected = fdstore.connect(store.url, store.prefix)
    assert values(reader)["fdstore.queue.length"] == [0]
    connected.close()
    del connected

    found = values(reader)

    assert "fdstore.queue.length" not in found
    assert "fdstore.saved.chars" in found


def test_a_worker_takes_the_meter_provider_that_is_set_and_makes_no_other(
    reader: InMemoryMetricReader,
) -> None:
    flush = otel.configure(OtelSettings(metrics="console"))
    counts.count("fdstore_process_losses_total")
    flush()

    assert values(reader)["fdstore.process.losses"] == [1]


def test_a_program_without_a_meter_provider_counts_nothing(store: Store) -> None:
    counts.turn_off()

    fdstore.connect(store.url, store.prefix).close()

    assert not counts.is_counting()
