"""A model whose calls are counted and traced."""

from __future__ import annotations

import msgspec

from fdstore.agents.loop.conversation import Assistant
from fdstore.agents.loop.models.base import Model, ModelFailed, ModelRequest, Retry
from fdstore.telemetry.calls import ModelCallTelemetry
from fdstore.telemetry.counts import count


class ObservedModel:
    """Passes everything on to another model, and reports to `fdstore.telemetry`."""

    def __init__(self, model: Model) -> None:
        self._model = model

    @property
    def takes_deferred_tools(self) -> bool:
        return self._model.takes_deferred_tools

    def close(self) -> None:
        self._model.close()

    def query(self, request: ModelRequest) -> Assistant:
        """Implements `Model.query`."""
        model = request.model

        def note(retry: Retry) -> None:
            count("fdstore_model_retries_total", model)
            if request.report is not None:
                request.report(retry)

        with ModelCallTelemetry(model) as call:
            try:
                answer = self._model.query(msgspec.structs.replace(request, report=note))
            except ModelFailed:
                count("fdstore_model_failures_total", model)
                raise
            call.answered(answer, answer.stop_reason)
            return answer
