"""The tools of one agent: what it is offered, and what becomes of its calls.

Everything is an operation, so the blocking and the awaiting `Toolset`, and the agent loop, share
it. A call ends in one of two ways: a `ToolResult`, or `Started` with the processes whose end is the
result; `finished` makes the result when they have ended.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Sequence
from typing import Any

from fdstore.errors import FDStoreError, InvalidArgument, TooLarge, quoted
from fdstore.render import Rendered, fd_error, process_result
from fdstore.store import processes, reading
from fdstore.store.operation import Disk, Operation
from fdstore.text.references import placeholders
from fdstore.text.selection import selector
from fdstore.tools import close_fd, fd_to_file, list_fds, read_fd, spawn
from fdstore.tools.config import FD_TOOLS, PROCESS_TOOLS
from fdstore.tools.instructions import instructions
from fdstore.tools.python_tool import PythonTool, python_tool, replaced, texts_in
from fdstore.tools.storing import flattened, shown, wrapped
from fdstore.tools.tool import Context, Started, Tool, ToolResult, converted

log = logging.getLogger("fdstore.tools")

BUILT_IN: dict[str, Tool] = {
    module.TOOL.name: module.TOOL for module in (read_fd, list_fds, fd_to_file, close_fd, spawn)
}


def check_enabled(enabled: Sequence[str]) -> frozenset[str]:
    """The names of built-in tools. Raises `InvalidArgument`, naming what there is."""
    for name in enabled:
        if name not in BUILT_IN:
            raise InvalidArgument(
                "enabled", f"there is no tool {quoted(name)}; there are: {', '.join(BUILT_IN)}"
            )
    return frozenset(enabled)


class Toolbox:
    """The tools that one agent has."""

    def __init__(self, context: Context, python: Sequence[Callable[..., Any]] = ()) -> None:
        self.context = context
        offered = [tool for name, tool in BUILT_IN.items() if name in context.enabled]
        if not context.linked:
            offered = [tool for tool in offered if tool.name != "spawn"]
        self._tools = {tool.name: tool for tool in offered}
        self._python: dict[str, PythonTool] = {}
        for function in python:
            made = python_tool(function)
            if made.name in FD_TOOLS | PROCESS_TOOLS or made.name in self._python:
                raise InvalidArgument("python", f"there is a tool {made.name} already; rename the function")
            self._python[made.name] = made

    @property
    def definitions(self) -> list[dict[str, Any]]:
        """Messages-API tool dicts."""
        built_in = [tool.definition(self.context) for tool in self._tools.values()]
        return built_in + [tool.definition() for tool in self._python.values()]

    @property
    def instructions(self) -> str:
        """What the system prompt says about descriptors, for just what is on."""
        return instructions(self.context, frozenset(self._tools))

    def start(
        self, name: object, arguments: object, call: str | None = None
    ) -> Operation[ToolResult | Started]:
        """Runs a call as far as it goes without waiting for other processes."""
        fd = arguments.get("fd") if isinstance(arguments, dict) else None
        try:
            if name in self._python:
                return (yield from self._run_python(self._python[str(name)], arguments, call))
            tool = self._tools.get(name) if isinstance(name, str) else None
            if tool is None:
                names = ", ".join([*self._tools, *self._python]) or "none"
                raise InvalidArgument("", f"there is no tool {quoted(name)}; there are: {names}")
            outcome = yield from tool.run(self.context, converted(tool.arguments, arguments), call)
        except FDStoreError as error:
            if error.type in STOPPING:
                raise
            return ToolResult(fd_error(error, fd[:80] if isinstance(fd, str) else None), is_error=True)
        return outcome if isinstance(outcome, Started) else ToolResult(outcome)

    def finished(self, started: Started) -> Operation[ToolResult]:
        """The result of a call whose processes have ended; one `process_result` each, in order."""
        parts: list[Rendered] = []
        failed = 0
        for process in started.processes:
            ended = yield from processes.answer_of(self.context.prefix, process)
            failed += ended.record.exit_code != 0
            if ended.fd is not None:
                inner = yield from shown(self.context, ended.fd)
                parts.append(process_result(ended.record, result=inner))
            else:
                parts.append(process_result(ended.record, answer=ended.text))
        return ToolResult("\n".join(parts), is_error=failed == len(started.processes))

    def _run_python(self, tool: PythonTool, arguments: object, call: str | None) -> Operation[ToolResult]:
        given = yield from self._expanded(arguments)
        checked = converted(tool.arguments, given)
        values = {name: getattr(checked, name) for name in checked.__struct_fields__}
        text, is_error = yield Disk(lambda: _called(tool, values))
        slot = None if call is None else f"{call}/result"
        return ToolResult((yield from wrapped(self.context, text, tool.name, slot)), is_error)

    def _expanded(self, arguments: object) -> Operation[object]:
        """Arguments with `{{fd:3#L10-20}}` replaced by the text. Raises `TooLarge` before fetching."""
        selectors = {found.selector for text in texts_in(arguments) for found in placeholders(text)}
        if not selectors or not self.context.fds_on:
            return arguments
        limit = self.context.config.max_expand_chars
        texts: dict[str, str] = {}
        for written in sorted(selectors):
            chosen = selector(written)
            part = yield from reading.read(self.context.space, chosen.fd, chosen.part, limit)
            texts[written] = part.text
        total = sum(
            len(texts[found.selector]) for text in texts_in(arguments) for found in placeholders(text)
        )
        if total > limit:
            raise TooLarge("the text that {{...}} stands for", total, limit, "pass a smaller part")
        return replaced(arguments, texts)


STOPPING = frozenset(
    {"fenced", "cancelled", "store_unavailable", "store_readonly", "unsafe_store", "unknown_outcome"}
)
"""Errors that no model can do anything about: they end the call, not the conversation's turn."""


def _called(tool: PythonTool, values: dict[str, Any]) -> tuple[str, bool]:
    """What a user's function returned, or how it failed: its failure is the model's to read."""
    try:
        result = tool.function(**values)
        if inspect.iscoroutine(result):
            # on a thread of its own or of an event loop's pool: never inside a running loop
            result = asyncio.run(result)
        return flattened(result), False
    except FDStoreError as error:
        return fd_error(error), True
    except Exception as error:
        log.error("the tool %s failed", tool.name, exc_info=True)
        return f"{type(error).__name__}: {error}", True
