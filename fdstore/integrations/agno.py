"""Agno: keep long texts out of what agents and teams read.

    ours = FdstoreTools(fdstore.connect())
    agent = Agent(tools=[read_log, ours], tool_hooks=[ours.store_result], pre_hooks=[ours.store_input])
    agent.run("Why did it fail?", session_id="chat-7", user_id="ann")

The toolkit has our tools and their instructions. The tool hook stores long results of all tools, also those
of MCP servers and the answers of a team's members; the pre-hook stores long inputs. Images stay, an error
stays one, and the caller gets what a tool with `show_result` or `stop_after_tool_call` returned.

The thread is the session of a user. An agent that is given no `session_id` gets one of Agno for all its runs:
unless a `db` keeps their history, each of these runs has a process of its own. Agents that a tool runs, and
members of a team that has the hook, share the process of the run.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from inspect import isasyncgen, isawaitable, isgenerator
from typing import Any, Unpack
from uuid import UUID

from fdstore.client import Store
from fdstore.errors import InvalidArgument, MissingExtra
from fdstore.integrations.thread_tools import (
    AnyStore,
    ThreadOptions,
    ThreadTools,
    new_thread,
    thread_of_tool,
    within_tool_of,
)
from fdstore.results.content_blocks import picture_in
from fdstore.results.tool_outcome import ToolResult as OurResult
from fdstore.results.wrapping import to_text
from fdstore.setup.optional_packages import how_to_install
from fdstore.wire.operation import Operation

try:
    from agno.media import File, Image
    from agno.run.base import BaseRunOutputEvent
    from agno.tools import Function, Toolkit
    from agno.tools.function import ToolResult
except ImportError as error:
    raise MissingExtra("agno", how_to_install("agno")) from error


class FdstoreTools(Toolkit):
    """A toolkit with our tools, and the hooks that store long results and inputs.

    store    a connected store: of `fdstore.connect`, or of `fdstore.aio.connect`, which serves `arun` in its
             event loop alone; then Agno runs tools that do not await in the event loop too
    options  see `ThreadOptions`

    Raises `InvalidArgument`.

    >>> from agno.agent import Agent
    >>> ours = FdstoreTools(store)
    >>> agent = Agent(tools=[ours], tool_hooks=[ours.store_result], pre_hooks=[ours.store_input])
    >>> list(ours.functions)[:2]
    ['read_fd', 'search_fd']
    """

    def __init__(self, store: AnyStore, **options: Unpack[ThreadOptions]) -> None:
        self._ours = ThreadTools(store, **options)
        super().__init__("fdstore", instructions=self._ours.instructions, add_instructions=True)
        blocking = isinstance(store, Store)
        functions = self.functions if blocking else self.async_functions
        for each in self._ours.definitions_for("anthropic"):
            functions[each["name"]] = self._function(each, blocking)
        # Agno skips hooks that await in `run`, and runs all tools in the event loop if there is one in `arun`
        self.store_result = self._store_result if blocking else self._store_result_async
        self.store_input = self._store_input if blocking else self._store_input_async

    def __deepcopy__(self, memo: dict[int, Any]) -> FdstoreTools:
        return self  # copies of an agent share the connection of its store

    def _store_result(
        self,
        run_context: Any,
        function_name: str,
        function_call: Callable[..., Any],
        arguments: dict[str, Any],
        agent: Any = None,
        team: Any = None,
    ) -> Any:
        """Run a tool, and return its result as the model is to see it: the tool hook."""
        if self._ours.is_own(function_name):
            return function_call(**arguments)
        call = self._call(run_context, function_name, agent, team)
        with within_tool_of(call.thread):
            value = function_call(**arguments)
        if isawaitable(value):
            return call.shown_async(value)
        if isgenerator(value):
            return call.items(value)
        return self._ours.run(call.shown(value))

    async def _store_result_async(
        self,
        run_context: Any,
        function_name: str,
        function_call: Callable[..., Awaitable[Any]],
        arguments: dict[str, Any],
        agent: Any = None,
        team: Any = None,
    ) -> Any:
        """`_store_result`, for a store of asyncio."""
        if self._ours.is_own(function_name):
            return await function_call(**arguments)
        call = self._call(run_context, function_name, agent, team)
        return await call.shown_async(function_call(**arguments))

    def _store_input(
        self, run_input: Any, run_context: Any, session: Any, agent: Any = None, team: Any = None
    ) -> None:
        """Store the long input of a run: the pre-hook."""
        if operation := self._input_operation(run_input, run_context, session, agent, team):
            run_input.input_content = self._ours.run(operation)

    async def _store_input_async(
        self, run_input: Any, run_context: Any, session: Any, agent: Any = None, team: Any = None
    ) -> None:
        """`_store_input`, for a store of asyncio."""
        if operation := self._input_operation(run_input, run_context, session, agent, team):
            run_input.input_content = await self._ours.run_async(operation)

    def _input_operation(
        self, run_input: Any, run_context: Any, session: Any, agent: Any, team: Any
    ) -> Operation[Any] | None:
        if not isinstance(run_input.input_content, str):
            return None
        thread = self._thread_of(run_context, agent, team)
        for run in session.runs or []:
            self._see(thread, getattr(run, "messages", None))
        return self._ours.wrap_input(thread, run_input.input_content)

    def _call(self, run_context: Any, name: str, agent: Any, team: Any) -> _Call:
        tools = run_context.tools or (agent or team).tools
        known = [*(tools if isinstance(tools, list) else []), *(run_context.client_tools or [])]
        is_direct = any(_is_direct(tool, name) for tool in known)
        return _Call(self._ours, self._thread_of(run_context, agent, team), name, is_direct)

    def _thread_of(self, run_context: Any, agent: Any, team: Any) -> str:
        """Return the thread of a run, or of the agent whose tool started it."""
        if outer := thread_of_tool():
            return outer
        session, user = str(run_context.session_id), run_context.user_id
        if any(_made_session(owner, session) for owner in (agent, team)):
            thread = new_thread(f"{session}/{run_context.run_id}")
        else:
            thread = json.dumps([session, user]) if user else session
        self._see(thread, run_context.messages)
        return thread

    def _see(self, thread: str, messages: Any) -> None:
        told = [each for each in messages or [] if each.role not in ("system", "developer")]
        self._ours.see(thread, [(each.content, each.tool_calls) for each in told])  # and no images

    def _function(self, definition: dict[str, Any], blocking: bool) -> Function:
        """Return one of our tools."""
        name = definition["name"]

        def operation(
            run_context: Any, agent: Any, team: Any, arguments: dict[str, Any]
        ) -> Operation[OurResult]:
            return self._ours.call(self._thread_of(run_context, agent, team), name, arguments)

        def run(
            _agno_run_context: Any, _agno_agent: Any = None, _agno_team: Any = None, **arguments: Any
        ) -> Any:
            return _result(self._ours.run(operation(_agno_run_context, _agno_agent, _agno_team, arguments)))

        async def run_async(
            _agno_run_context: Any, _agno_agent: Any = None, _agno_team: Any = None, **arguments: Any
        ) -> Any:
            called = operation(_agno_run_context, _agno_agent, _agno_team, arguments)
            return _result(await self._ours.run_async(called))

        return Function(
            name=name,
            description=definition["description"],
            parameters=definition["input_schema"],
            entrypoint=run if blocking else run_async,
            skip_entrypoint_processing=True,
        )


class _Call:
    """A call of a tool, whose long result is stored."""

    def __init__(self, ours: ThreadTools, thread: str, name: str, is_direct: bool) -> None:
        self._ours, self.thread, self._name, self._is_direct = ours, thread, name, is_direct

    def shown(self, value: Any) -> Operation[Any]:
        """Return a result as the model is to see it: the same object if nothing changes."""
        if self._is_direct:
            return value
        blocks = [value.content, *(value.images or [])] if isinstance(value, ToolResult) else [value]
        found = yield from self._ours.offload_blocks(self.thread, blocks, self._part, str, self._name)
        if found is None:
            return value
        shown, _ = found
        text = "\n".join(each for each in shown if isinstance(each, str))
        return value.model_copy(update={"content": text}) if isinstance(value, ToolResult) else text

    async def shown_async(self, value: Awaitable[Any]) -> Any:
        """Await a result, and return it as the model is to see it."""
        with within_tool_of(self.thread):
            found = await value
        if isasyncgen(found):
            return self.items_async(found)
        if isgenerator(found):
            return self.items(found)
        return await self._ours.run_async(self.shown(found))

    def items(self, given: Iterator[Any]) -> Iterator[Any]:
        """Yield what a generator yields: events of the agents that it runs at once, its texts at the end as
        one, which the model sees."""
        texts = []
        while True:
            with within_tool_of(self.thread):  # and not while the reader of an event runs
                try:
                    item = next(given)
                except StopIteration:
                    break
            if self._is_direct or isinstance(item, BaseRunOutputEvent):
                yield item
            else:
                texts.append(str(item))
        if texts:
            yield self._ours.run(self.shown("".join(texts)))

    async def items_async(self, given: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """`items`, awaited."""
        texts = []
        while True:
            with within_tool_of(self.thread):
                try:
                    item = await anext(given)
                except StopAsyncIteration:
                    break
            if self._is_direct or isinstance(item, BaseRunOutputEvent):
                yield item
            else:
                texts.append(str(item))
        if texts:
            yield await self._ours.run_async(self.shown("".join(texts)))

    def _part(self, value: Any) -> str | bytes | None:
        """Return a value as Agno shows it, or a long one as JSON if it can be; of an image its bytes."""
        if isinstance(value, Image):
            return value.content if isinstance(value.content, bytes) else None
        text = str(value)
        if isinstance(value, str) or not self._ours.is_long(text, self._name):
            return text
        try:
            return to_text(value)
        except InvalidArgument:
            return text


def _made_session(owner: Any, session: str) -> bool:
    """Return whether Agno made the id of a session of which an agent or team keeps nothing."""
    if owner is None or owner.session_id != session or owner.db is not None or owner.cache_session:
        return False
    try:
        return UUID(session).version == 4
    except ValueError:
        return False


def _is_direct(tool: Any, name: str) -> bool:
    """Return whether the caller gets the result of a tool as it is."""
    if isinstance(tool, Toolkit):
        return any(_is_direct(each.get(name), name) for each in (tool.functions, tool.async_functions))
    if not isinstance(tool, Function) or tool.name != name:
        return False
    return bool(tool.show_result or tool.stop_after_tool_call)


def _result(result: OurResult) -> Any:
    """Return a result of our tools as one of Agno."""
    blocks = result.content if isinstance(result.content, list) else []
    found = [picture for each in blocks if (picture := picture_in(each)) is not None]
    if not found:
        return result.text
    images = [Image(content=each.data, mime_type=each.media_type) for each in found if each.is_image]
    files = [File(content=each.data, mime_type=each.media_type) for each in found if not each.is_image]
    return ToolResult(content=result.text, images=images or None, files=files or None)
