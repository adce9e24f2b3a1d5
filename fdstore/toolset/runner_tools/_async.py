"""Tools for the runner of `anthropic.AsyncAnthropic`."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from anthropic.lib.tools import BetaAsyncBuiltinFunctionTool, ToolError

from fdstore.results.tool_outcome import ToolResult

Call = Callable[[str, Any], Coroutine[Any, Any, ToolResult]]


class RunnerTool(BetaAsyncBuiltinFunctionTool):
    """One tool of a toolset, with its definition; `run` calls a tool of it by name."""

    def __init__(self, definition: dict[str, Any], run: Call) -> None:
        self._definition = definition
        self._run = run

    def to_dict(self) -> Any:
        """Return the Messages API tool dict."""
        return self._definition

    async def call(self, input: object) -> Any:
        """Run a call. Raises the SDK's `ToolError` for a result with `is_error`, which the runner passes on
        to the model as such."""
        result = await self._run(self._definition["name"], input)
        if result.is_error:
            raise ToolError(result.content)
        return result.content


def runner_tools(definitions: Sequence[dict[str, Any]], run: Call) -> list[RunnerTool]:
    """Return a tool for each definition."""
    return [RunnerTool(definition, run) for definition in definitions]
