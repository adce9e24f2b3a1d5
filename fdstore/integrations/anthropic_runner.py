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

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Unpack

from fdstore.errors import MissingExtra
from fdstore.integrations.thread_tools import (
    AnyStore,
    ThreadOptions,
    ThreadTools,
    new_thread,
    thread_of_tool,
    within_tool_of,
)
from fdstore.setup.optional_packages import how_to_install
from fdstore.wire.operation import Operation

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
    thread   id of the conversation, which has a process of its own. None: that of the conversation within
             whose tool this is called, else a new one
    options  see `ThreadOptions`

    Raises `InvalidArgument`.

    >>> from anthropic import beta_tool
    >>> @beta_tool
    ... def read_log() -> str:
    ...     return "a line of a log\\n" * 1000
    >>> ours = FdstoreRunner(store, "chat-7")
    >>> [tool.name for tool in ours.wrap([read_log])][:3]
    ['read_log', 'read_fd', 'search_fd']
    >>> [message] = ours.messages([{"role": "user", "content": "a long line\\n" * 1000}])
    >>> message["content"].partition(" pages")[0]
    '<fd_result fd="fd:1"'
    """

    def __init__(self, store: AnyStore, thread: str | None = None, **options: Unpack[ThreadOptions]) -> None:
        self._ours = ThreadTools(store, **options)
        self._thread = thread or thread_of_tool() or new_thread()

    @property
    def instructions(self) -> str:
        """The section for the system prompt."""
        return self._ours.instructions

    def wrap(self, tools: Sequence[Any]) -> list[Any]:
        """Return the tools with their long results stored, and our own, for the runner of `Anthropic`."""
        return self._with_ours(map(self._wrap, tools), _Tool, self._ours.run)

    def wrap_async(self, tools: Sequence[Any]) -> list[Any]:
        """Return the same as `wrap` for the runner of `AsyncAnthropic`."""
        return self._with_ours(map(self._wrap_async, tools), _AsyncTool, self._ours.run_async)

    def messages(self, messages: Sequence[Mapping[str, Any]]) -> list[Any]:
        """Return messages with the long texts of the user stored."""
        return self._ours.run(self._store_input(messages))

    async def messages_async(self, messages: Sequence[Mapping[str, Any]]) -> list[Any]:
        """`messages`, awaited."""
        return await self._ours.run_async(self._store_input(messages))

    def _with_ours(
        self, tools: Iterable[Any], kind: type[_Definition], run: Callable[[Any], Any]
    ) -> list[Any]:
        def ours(definition: Any) -> Any:
            return kind(definition, lambda given: run(self._call(definition["name"], given)))

        return [*tools, *map(ours, self._ours.definitions_for("anthropic"))]

    def _wrap(self, tool: Any) -> Any:
        if not isinstance(tool, (BetaFunctionTool, BetaBuiltinFunctionTool)):
            return tool

        def call(given: object) -> Any:
            try:
                with within_tool_of(self._thread):
                    output = tool.call(given)
            except ToolError as error:
                raise self._ours.run(self._store_error(tool.name, error)) from error
            return self._ours.run(self._store(tool.name, output))

        return _Tool(tool.to_dict(), call)

    def _wrap_async(self, tool: Any) -> Any:
        if not isinstance(tool, (BetaAsyncFunctionTool, BetaAsyncBuiltinFunctionTool)):
            return tool

        async def call(given: object) -> Any:
            try:
                with within_tool_of(self._thread):
                    output = await tool.call(given)
            except ToolError as error:
                raise await self._ours.run_async(self._store_error(tool.name, error)) from error
            return await self._ours.run_async(self._store(tool.name, output))

        return _AsyncTool(tool.to_dict(), call)

    def _store_input(self, messages: Sequence[Mapping[str, Any]]) -> Operation[list[Any]]:
        shown = []
        self._ours.see(self._thread, messages)
        for message in messages:
            if message["role"] == "user":
                content = yield from self._ours.wrap_input(self._thread, message["content"])
                message = {**message, "content": content}
            shown.append(message)
        return shown

    def _store(self, tool: str, output: Any) -> Operation[Any]:
        if not (output is None or isinstance(output, (str, dict))):
            output = list(output)  # the SDK allows any iterable of blocks
        shown = yield from self._ours.offload(self._thread, output, tool)
        return output if shown is None else shown.content

    def _store_error(self, tool: str, error: ToolError) -> Operation[ToolError]:
        shown = yield from self._store(tool, error.content)
        return ToolError(shown if isinstance(shown, str) else _texts(shown))

    def _call(self, name: str, given: Any) -> Operation[Any]:
        """Run one of our tools."""
        result = yield from self._ours.call(self._thread, name, given)
        if result.is_error:
            raise ToolError(result.content)
        return result.content


def _texts(content: Sequence[Any]) -> list[Any]:
    """Return the texts of a failed call, for an API that takes nothing else in an error: it would refuse the
    whole request. What is left out is named."""
    others = [str(block["type"]) for block in content if block["type"] != "text"]
    note = {"type": "text", "text": f"(An error can only be text; left out: {', '.join(others)}.)"}
    return [*(block for block in content if block["type"] == "text"), *([note] if others else [])]


class _Definition:
    """The definition of a tool, and the function that runs it or returns what to await."""

    def __init__(self, definition: Any, run: Callable[[Any], Any]) -> None:
        self._definition = definition
        self._run = run

    def to_dict(self) -> Any:
        return self._definition

    def call(self, input: object) -> Any:
        return self._run(input)


class _Tool(_Definition, BetaBuiltinFunctionTool):
    pass


class _AsyncTool(_Definition, BetaAsyncBuiltinFunctionTool):
    pass
