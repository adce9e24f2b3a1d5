"""A model whose calls are counted and traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fdstore.agent.conversation import Assistant
from fdstore.agent.models.base import Model, ModelFailed, Retry
from fdstore.telemetry.calls import ModelCallTelemetry
from fdstore.telemetry.counts import count


class ObservedModel:
    """Passes everything on to another model, and reports to `fdstore.telemetry`."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def close(self) -> None:
        self._model.close()

    def query(
        self, *, model: str, report: Callable[[Retry], None] | None = None, **request: Any
    ) -> Assistant:
        """Implements `Model.query`."""

        def note(retry: Retry) -> None:
            count("fdstore_model_retries_total", model)
            if report is not None:
                report(retry)

        with ModelCallTelemetry(model) as call:
            try:
                answer = self._model.query(model=model, report=note, **request)
            except ModelFailed:
                count("fdstore_model_failures_total", model)
                raise
            call.answered(answer, answer.stop_reason)
            return answer
