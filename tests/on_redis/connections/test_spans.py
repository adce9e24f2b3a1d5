"""The spans of operations on a store."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from fdstore.client import Store
from fdstore.telemetry import tracing


def test_a_span_says_whether_the_operation_read_or_wrote(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(tracing, "tracer", provider.get_tracer("test"))
    proc = store.process("triage")
    proc.create("one")  # outside any span

    with tracing.span("outer", {}):
        proc.create("two")
        proc.read("fd:2")
        store.trees()

    *operations, outer = exporter.get_finished_spans()
    assert outer.name == "outer"
    assert [each.attributes["db.operation.name"] for each in operations] == ["write", "read", "read"]
    assert all(each.name.startswith("fdstore ") for each in operations)
    provider.shutdown()
