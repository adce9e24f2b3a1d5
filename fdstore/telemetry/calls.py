"""Counts, spans and logs of one model call and one tool call: `with tool_call(...) as seen:
seen(result)`.

Off, each costs a few comparisons.
"""

from __future__ import annotations

import logging
import time
from types import TracebackType
from typing import Literal, Self

from fdstore.model.records import TokenUsage
from fdstore.setup.logs import facts
from fdstore.telemetry import tracing
from fdstore.telemetry.counts import count, is_counting, observe

log = logging.getLogger("fdstore.tools")

ToolEnd = Literal["ok", "error", "started", "failed"]


class ToolCallTelemetry:
    """One tool call: a context manager. `name` must be one of a bounded set: it is a label."""

    def __init__(self, process: str, name: str, call_id: str | None, *, is_function: bool) -> None:
        self.process, self._name, self._call_id = process, name, call_id
        self._end: ToolEnd = "failed"
        self._reason: str | None = None
        self._chars: int | None = None
        self._started = time.monotonic()
        self._spanning = None
        if tracing.tracer is not None:
            self._spanning = tracing.execute_tool(name, call_id, is_function=is_function)

    def __enter__(self) -> Self:
        self._span = None if self._spanning is None else self._spanning.__enter__()
        return self

    def ended(self, end: ToolEnd, chars: int | None = None, uris: tuple[str, ...] = (), fd: str = "") -> None:
        """Note how it ended, the characters of its result, the URIs of the contents in it, and the
        descriptor that it is about."""
        self._end, self._chars = end, chars
        tracing.add(
            self._span,
            gen__ai_tool_call_result=" ".join(uris) or None,
            fdstore_fd=fd or None,
            fdstore_result_chars=chars,
            fdstore_outcome=end,
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        duration_s = time.monotonic() - self._started
        if error is not None:
            self._end, self._reason = "failed", tracing.type_of(error)
        if self._spanning is not None:
            self._spanning.__exit__(kind, error, trace)
        count("fdstore_tool_calls_total", self._name, self._end)
        observe("fdstore_tool_duration_seconds", duration_s, self._name)
        level = logging.DEBUG if self._end in ("ok", "started") else logging.INFO
        if not log.isEnabledFor(level):
            return
        fields = facts(
            process=self.process,
            tool=self._name,
            call=self._call_id,
            outcome=self._end,
            reason=self._reason,
            duration_s=round(duration_s, 4),
            chars=self._chars,
        )
        log.log(level, "%s: %s %s in %.3f s", self.process, self._name, self._end, duration_s, extra=fields)


class ModelCallTelemetry:
    """One model call: a context manager."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._started = time.monotonic()
        self._spanning = None if tracing.tracer is None else tracing.chat(model)

    def __enter__(self) -> ModelCallTelemetry:
        self._span = None if self._spanning is None else self._spanning.__enter__()
        return self

    def answered(self, usage: TokenUsage, stop_reason: str | None) -> None:
        """Note the answer."""
        count("fdstore_model_turns_total", self._model)
        for kind, tokens in (
            ("input", usage.input_tokens),
            ("output", usage.output_tokens),
            ("cache_read", usage.cache_read_tokens),
            ("cache_write", usage.cache_write_tokens),
        ):
            count("fdstore_model_tokens_total", self._model, kind, by=tokens)
        tracing.add(
            self._span,
            gen__ai_usage_input__tokens=usage.input_tokens,
            gen__ai_usage_output__tokens=usage.output_tokens,
            gen__ai_usage_cache__read_input__tokens=usage.cache_read_tokens,
            gen__ai_usage_cache__creation_input__tokens=usage.cache_write_tokens,
            gen__ai_response_finish__reasons=(stop_reason or "none",),
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._spanning is not None:
            self._spanning.__exit__(kind, error, trace)
        observe("fdstore_model_call_duration_seconds", time.monotonic() - self._started, self._model)


def is_watched() -> bool:
    """Return whether anything of tool calls is counted, traced or logged."""
    return is_counting() or tracing.tracer is not None or log.isEnabledFor(logging.INFO)
