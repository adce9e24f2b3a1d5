"""Report a tool call to `fdstore.telemetry`, without its content."""

from __future__ import annotations

from typing import TypeVar
from urllib.parse import quote

from fdstore.results.tool_outcome import Started, ToolResult
from fdstore.telemetry.calls import ToolCallTelemetry, is_watched

T = TypeVar("T", bound=ToolResult | Started)

UNKNOWN = "unknown"
"""The name that is reported for tools that do not exist: models make up any number of names."""

MAX_STORED = 10


class ObservedCall(ToolCallTelemetry):
    """Reports the call that runs in its block; call it with the outcome, which it returns."""

    def __call__(self, outcome: T, arguments: object) -> T:
        fd = arguments.get("fd") if isinstance(arguments, dict) else None
        named = fd[:120] if isinstance(fd, str) else ""
        if isinstance(outcome, Started):
            self.ended("started", fd=named)
        else:
            ids = [each.fd for each in outcome.facts.stored[:MAX_STORED]]
            stored = tuple(f"fdstore://{self.process}/{quote(each, safe=':')}" for each in ids)
            self.ended("error" if outcome.is_error else "ok", len(outcome.text), stored, named)
        return outcome


class UnobservedCall:
    """Reports nothing."""

    def __enter__(self) -> UnobservedCall:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __call__(self, outcome: T, arguments: object) -> T:
        return outcome


_UNOBSERVED = UnobservedCall()


def observed_call(
    process: str, name: str, call_id: str | None, *, is_function: bool
) -> ObservedCall | UnobservedCall:
    """Return a context manager that reports the call that runs in its block, if anything is reported."""
    if not is_watched():
        return _UNOBSERVED
    return ObservedCall(process, name, call_id, is_function=is_function)
