"""Spans, without a store."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from fdstore.elements.facts import ResultFacts
from fdstore.elements.kinds import FdResult
from fdstore.errors import NotFound
from fdstore.model.records import TokenUsage
from fdstore.results.tool_outcome import ToolResult
from fdstore.setup.settings import OtelSettings, read_otel
from fdstore.telemetry import tracing
from fdstore.telemetry.calls import ModelCallTelemetry, ToolCallTelemetry
from fdstore.tools.observed_call import ObservedCall
from fdstore.wire.operation import Operation


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(tracing, "tracer", provider.get_tracer("test"))
    yield exporter
    provider.shutdown()


def read() -> Operation[None]:
    yield []


def test_off_nothing_is_traced_and_nothing_is_imported() -> None:
    assert tracing.tracer is None
    assert tracing.traceparent() == ""
    with tracing.span("x", {}) as opened:
        assert opened is None
        assert not trace.get_current_span().is_recording()


def test_off_an_operation_needs_no_opentelemetry(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("opentelemetry", "opentelemetry.trace"):
        monkeypatch.setitem(sys.modules, name, None)

    with tracing.operation(read()) as wrote:
        assert wrote is None


def test_a_program_without_a_tracer_provider_is_not_traced() -> None:
    assert "opentelemetry.trace" in sys.modules

    tracing.turn_on_if_provided()

    assert tracing.tracer is None


def test_an_operation_outside_any_span_makes_none(spans: InMemorySpanExporter) -> None:
    with tracing.operation(read()):
        pass

    assert spans.get_finished_spans() == ()


def test_a_failed_operation_names_the_type_of_the_error_and_not_its_text(spans: InMemorySpanExporter) -> None:
    with (
        pytest.raises(NotFound),
        tracing.span("outer", {}),
        tracing.operation(read()),
    ):
        raise NotFound("the secret", ())

    operation, outer = spans.get_finished_spans()
    assert (operation.name, operation.kind) == ("fdstore read", trace.SpanKind.CLIENT)
    assert operation.attributes == {
        "db.system.name": "redis",
        "db.operation.name": "read",
        "error.type": "not_found",
    }
    assert operation.parent.span_id == outer.context.span_id
    assert "secret" not in operation.to_json() + outer.to_json()


def test_a_later_attempt_is_in_the_same_trace_and_linked_to_the_last_one(spans: InMemorySpanExporter) -> None:
    facts = {"losses": 0, "is_pipeline": False, "traceparent": ""}
    with tracing.invoke_agent("triage", "boss", attempt=1, traced="", **facts):
        first = tracing.traceparent()
    with tracing.invoke_agent("triage", "boss", attempt=2, traced=first, **facts):
        pass
    with tracing.invoke_agent("triage", "boss", attempt=3, traced="damaged", **facts):
        pass

    one, two, three = spans.get_finished_spans()
    assert two.context.trace_id == one.context.trace_id
    assert [link.context.span_id for link in two.links] == [one.context.span_id]
    assert three.context.trace_id != one.context.trace_id
    assert three.links == ()


def test_calls_have_the_attributes_of_the_conventions(spans: InMemorySpanExporter) -> None:
    with ModelCallTelemetry("opus") as model_call:
        model_call.answered(TokenUsage(input_tokens=9, output_tokens=2, cache_read_tokens=7), "tool_use")
    with ToolCallTelemetry("triage", "read_fd", "call-1", is_function=False) as tool_call:
        tool_call.ended("ok", 120, ("fdstore://triage/fd:3",), "fd:1#L2")

    chat, tool = spans.get_finished_spans()
    assert chat.attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "opus",
        "gen_ai.usage.input_tokens": 9,
        "gen_ai.usage.output_tokens": 2,
        "gen_ai.usage.cache_read.input_tokens": 7,
        "gen_ai.usage.cache_creation.input_tokens": 0,
        "gen_ai.response.finish_reasons": ("tool_use",),
    }
    assert tool.attributes == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "read_fd",
        "gen_ai.tool.type": "datastore",
        "gen_ai.tool.call.id": "call-1",
        "gen_ai.tool.call.result": "fdstore://triage/fd:3",
        "fdstore.fd": "fd:1#L2",
        "fdstore.result.chars": 120,
        "fdstore.outcome": "ok",
    }


def test_a_call_names_the_contents_that_it_stored_and_no_text_of_others(spans: InMemorySpanExporter) -> None:
    stored = tuple(FdResult(fd=fd) for fd in ("fd:3", "name:a plan"))
    result = ToolResult('<fd_result fd="fd:9">', facts=ResultFacts(stored=stored))

    with ObservedCall("triage", "grep", "call-1", is_function=True) as seen:
        assert seen(result, {"fd": "fd:1"}) is result

    [span] = spans.get_finished_spans()
    uris = "fdstore://triage/fd:3 fdstore://triage/name:a%20plan"
    assert span.attributes["gen_ai.tool.call.result"] == uris


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, OtelSettings()),
        ({"OTEL_TRACES_EXPORTER": "console"}, OtelSettings(traces="console")),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x"}, OtelSettings(traces="otlp")),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            OtelSettings("otlp", "otlp", "grpc"),
        ),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_SDK_DISABLED": "true"}, OtelSettings()),
    ],
)
def test_the_standard_environment_says_what_is_sent(environ: dict[str, str], expected: OtelSettings) -> None:
    assert read_otel(environ) == expected
