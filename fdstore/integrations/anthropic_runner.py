"""The tool runner of the anthropic SDK: keep long results of its tools out of the messages.

    ours = FdstoreRunner(fdstore.connect(), "chat-7")
    runner = client.beta.messages.tool_runner(
        model=..., max_tokens=..., system=ours.instructions, tools=ours.wrap([read_log, memory, *mcp_tools]),
        messages=ours.messages([{"role": "user", "content": question}]),
    )

`wrap` takes every tool that the runner runs: functions of `beta_tool`, tools of MCP servers (`mcp_tool`),
memory tools, subclasses of the SDK's. Toolsets of the SDK, and definitions that the runner does not run, are
returned as they are. The runner tells a tool no id of its call, so the result of a repeated call is stored
again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from fdstore.errors import MissingExtra
from fdstore.integrations.thread_tools import AnyStore, ThreadTools, new_thread
from fdstore.optional_packages import how_to_install
from fdstore.tools.config import FDConfig
from fdstore.tools.tool_names import READING_TOOLS, ToolName
from fdstore.tools.tool_outcome import Offloaded

try:
    from anthropic.lib.tools import (
        BetaAsyncBuiltinFunctionTool,
        BetaAsyncFunctionTool,
        BetaBuiltinFunctionTool,
        BetaFunctionTool,
        ToolError,
    )
except ImportError as error:
    raise MissingExtra("anthropic", how_to_install("anthropic-runner")) from error


class FdstoreRunner:
    """The tools of a conversation that a tool runner runs, with long results stored, and our own.

    store    a connected store: of `fdstore.connect` for both runners, or of `fdstore.aio.connect` for that of
             `AsyncAnthropic` alone
    thread   id of the conversation, which has a process of its own. None: a new one
    process  name of the process, instead
    enabled  names of built-in tools that are offered
    config   sizes and switches, and policies for single tools (`FDConfig`)
    meter    name under which `fdstore saved` counts

    Raises `InvalidArgument`.

    >>> from anthropic import beta_tool
    >>> @beta_tool
    ... def read_log() -> str:
    ...     return "a line of a log\\n" * 1000
    >>> ours = FdstoreRunner(store, "chat-7")
    >>> [tool.name for tool in ours.wrap([read_log])]
    ['read_log', 'read_fd', 'search_fd', 'list_fds']
    >>> [message] = ours.messages([{"role": "user", "content": "a long line\\n" * 1000}])
    >>> message["content"].partition(" pages")[0]
    '<fd_result fd="fd:1"'
    """

    def __init__(
        self,
        store: AnyStore,
        thread: str | None = None,
        *,
        process: str | None = None,
        enabled: Sequence[ToolName] = READING_TOOLS,
        config: FDConfig | None = None,
        export_root: str | None = None,
        meter: str | None = None,
    ) -> None:
        self._ours = ThreadTools(
            store, process=process, enabled=enabled, config=config, export_root=export_root, meter=meter
        )
        self._thread = thread or new_thread()

    @property
    def instructions(self) -> str:
        """The section for the system prompt."""
        return self._ours.instructions

    def wrap(self, tools: Sequence[Any]) -> list[Any]:
        """Return the tools with their long results stored, and our own, for the runner of `Anthropic`."""
        definitions = self._ours.definitions_for("anthropic")
        return [self._wrap(tool) for tool in tools] + [
            _Tool(definition, self._caller(definition["name"])) for definition in definitions
        ]

    def wrap_async(self, tools: Sequence[Any]) -> list[Any]:
        """Return the same as `wrap` for the runner of `AsyncAnthropic`."""
        definitions = self._ours.definitions_for("anthropic")
        return [self._wrap_async(tool) for tool in tools] + [
            _AsyncTool(definition, self._async_caller(definition["name"])) for definition in definitions
        ]

    def messages(self, messages: Sequence[Mapping[str, Any]]) -> list[Any]:
        """Return messages with the long texts of the user stored."""
        return [
            {**message, "content": self._ours.wrap_input(self._thread, message["content"])}
            if message["role"] == "user"
            else message
            for message in messages
        ]

    async def messages_async(self, messages: Sequence[Mapping[str, Any]]) -> list[Any]:
        """`messages`, awaited."""
        return [
            {**message, "content": await self._ours.wrap_input_async(self._thread, message["content"])}
            if message["role"] == "user"
            else message
            for message in messages
        ]

    def _wrap(self, tool: Any) -> Any:
        if not isinstance(tool, (BetaFunctionTool, BetaBuiltinFunctionTool)):
            return tool

        def call(given: object) -> Any:
            try:
                output = tool.call(given)
            except ToolError as error:
                shown = self._ours.offload(self._thread, _plain(error.content), tool.name)
                raise _error(error, shown) from error
            output = _plain(output)
            shown = self._ours.offload(self._thread, output, tool.name)
            return output if shown is None else shown.content

        return _Tool(tool.to_dict(), call)

    def _wrap_async(self, tool: Any) -> Any:
        if not isinstance(tool, (BetaAsyncFunctionTool, BetaAsyncBuiltinFunctionTool)):
            return tool

        async def call(given: object) -> Any:
            try:
                output = await tool.call(given)
            except ToolError as error:
                shown = await self._ours.offload_async(self._thread, _plain(error.content), tool.name)
                raise _error(error, shown) from error
            output = _plain(output)
            shown = await self._ours.offload_async(self._thread, output, tool.name)
            return output if shown is None else shown.content

        return _AsyncTool(tool.to_dict(), call)

    def _caller(self, name: str) -> Callable[[Any], Any]:
        def call(given: Any) -> Any:
            result = self._ours.call(self._thread, name, given)
            if result.is_error:
                raise ToolError(result.content)
            return result.content

        return call

    def _async_caller(self, name: str) -> Callable[[Any], Awaitable[Any]]:
        async def call(given: Any) -> Any:
            result = await self._ours.call_async(self._thread, name, given)
            if result.is_error:
                raise ToolError(result.content)
            return result.content

        return call


class _Tool(BetaBuiltinFunctionTool):
    """A tool with its definition and the function that runs it."""

    def __init__(self, definition: Any, run: Callable[[Any], Any]) -> None:
        self._definition = definition
        self._run = run

    def to_dict(self) -> Any:
        return self._definition

    def call(self, input: object) -> Any:
        return self._run(input)


class _AsyncTool(BetaAsyncBuiltinFunctionTool):
    def __init__(self, definition: Any, run: Callable[[Any], Awaitable[Any]]) -> None:
        self._definition = definition
        self._run = run

    def to_dict(self) -> Any:
        return self._definition

    async def call(self, input: object) -> Any:
        return await self._run(input)


def _plain(output: Any) -> Any:
    """Return what a tool returned as `offload` takes it: the SDK allows any iterable of blocks."""
    return output if output is None or isinstance(output, (str, dict)) else list(output)


def _error(error: ToolError, shown: Offloaded | None) -> ToolError:
    return error if shown is None else ToolError(shown.content)
