"""Spans tell when a person was asked, when there was an answer, and how long that took."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from fdstore.client import Store
from fdstore.results.people_config import PeopleSection
from fdstore.telemetry import tracing
from fdstore.testing import call, say
from tests.on_redis.agents.conftest import AgentsOf


def test_the_wait_for_a_person_is_in_the_spans_of_its_call_without_its_words(
    agents_of: AgentsOf, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(tracing, "tracer", provider.get_tracer("test"))
    agents = agents_of([call("ask_person", question="Which secret?"), say("Done.")])
    agents.launch(tools=("ask_person",), people=PeopleSection(ask=True))

    agents.attempt("solo")
    store.answer("solo", "the secret", by="ann", door="cli")
    agents.attempt("solo")

    events: list[Any] = [each for span in exporter.get_finished_spans() for each in span.events]
    assert [each.name for each in events] == ["fdstore.question.asked", "fdstore.question.answered"]
    asked, answered = (dict(each.attributes) for each in events)
    assert asked == {"fdstore.question": 1}
    waited_s = answered.pop("fdstore.waited_s")
    assert answered == {"fdstore.question": 1, "fdstore.answer": "answer", "fdstore.door": "cli"}
    assert 0 <= waited_s < 600
    assert "secret" not in repr([dict(each.attributes) for each in events])
