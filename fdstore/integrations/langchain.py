"""LangChain: a middleware that keeps long texts out of an agent's messages.

    agent = create_agent(model, tools=[...], middleware=[FdstoreMiddleware(fdstore.connect())])

Long results of tools and long messages of the user are stored and shown as their `fd_result`. Our tools that
read them are offered, and the system message says how. Images stay; a failed call stays failed. Blocking and
awaited runs both work.

The process of a thread is named by its `thread_id` (see `process_name_of_thread`), with or without a
checkpointer. A run without one has a process of its own, whose name is kept in the agent's state, and which
begins above the ids in its messages, so that none of another run means another text: to go on with those,
give a `thread_id`, or a `process` to the middleware.

A graph of your own takes its two hooks for tools, and offers the model `middleware.tools`:

    ToolNode([*tools, *middleware.tools], wrap_tool_call=middleware.wrap_tool_call,
             awrap_tool_call=middleware.awrap_tool_call)
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Annotated, Any, NotRequired, Unpack

from fdstore.errors import MissingExtra
from fdstore.integrations.shared.content_parts import convert_blocks
from fdstore.integrations.thread_tools import (
    AnyStore,
    TurnOptions,
    TurnTools,
    is_generated,
    new_thread,
    thread_of_tool,
    within_tool_of,
)
from fdstore.results.content_blocks import picture_in, text_block
from fdstore.results.pictures import Picture
from fdstore.setup.optional_packages import how_to_install
from fdstore.wire.operation import Operation

try:
    from langchain.agents.middleware.types import (
        AgentMiddleware,
        AgentState,
        ModelRequest,
        PrivateStateAttr,
        ToolCallRequest,
    )
    from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage
    from langchain_core.tools import StructuredTool, ToolException
    from langgraph.config import get_config
    from langgraph.types import Command
except ImportError as error:
    raise MissingExtra("langchain", how_to_install("langchain")) from error

MARK = "fdstore"
"""Marks a message that was replaced, in its metadata, which no model is sent."""

DIRECT = "direct"
"""The mark of a result that ended its run. The caller got it unchanged; the next run stores it."""


class FdstoreState(AgentState[Any]):
    """State of an agent with the middleware: the thread whose process has its descriptors."""

    fdstore_thread: NotRequired[Annotated[str, PrivateStateAttr]]  # type: ignore[valid-type]


class FdstoreMiddleware(AgentMiddleware[FdstoreState, Any, Any]):
    """Keep long texts out of an agent's messages, and let it read them by reference.

    store    a connected store: of `fdstore.connect` for runs of both kinds, or of `fdstore.aio.connect` for
             awaited ones alone
    options  see `TurnOptions`

    Raises `InvalidArgument`.

    >>> from langchain.agents import create_agent
    >>> from langchain_core.language_models import FakeMessagesListChatModel
    >>> from langchain_core.messages import AIMessage
    >>> class Model(FakeMessagesListChatModel):
    ...     def bind_tools(self, tools, **options):
    ...         return self
    >>> agent = create_agent(Model(responses=[AIMessage("Done.")]), middleware=[FdstoreMiddleware(store)])
    >>> state = agent.invoke({"messages": [("user", "a long line\\n" * 1000)]})
    >>> state["messages"][0].text.partition(" pages")[0]
    '<fd_result fd="fd:1"'
    """

    state_schema = FdstoreState

    def __init__(self, store: AnyStore, **options: Unpack[TurnOptions]) -> None:
        super().__init__()
        self._ours = TurnTools(store, **options)
        self._salt = new_thread()
        self.tools = [_described(definition) for definition in self._ours.definitions_for("anthropic")]

    @property
    def instructions(self) -> str:
        """The section for the system message of a graph of your own; agents get it without."""
        return self._ours.instructions

    def before_agent(self, state: FdstoreState, runtime: Any) -> dict[str, Any] | None:
        """Store the long messages of the user."""
        return self._ours.run(self._begin(state))

    async def abefore_agent(self, state: FdstoreState, runtime: Any) -> dict[str, Any] | None:
        """`before_agent`, awaited."""
        return await self._ours.run_async(self._begin(state))

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[[Any], Any]) -> Any:
        """Offer the model our tools, and tell it about descriptors."""
        return handler(self._offered(request))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[Any], Awaitable[Any]]
    ) -> Any:
        """`wrap_model_call`, awaited."""
        return await handler(self._offered(request))

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> Any:
        """Run a tool, and store its long result."""
        if self._ours.is_own(request.tool_call["name"]):
            return self._ours.run(self._call(request))
        with within_tool_of(self._thread_of(request)):
            result = handler(request)
        return self._ours.run(self._judge(request, result))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:
        """`wrap_tool_call`, awaited."""
        if self._ours.is_own(request.tool_call["name"]):
            return await self._ours.run_async(self._call(request))
        with within_tool_of(self._thread_of(request)):
            result = await handler(request)
        return await self._ours.run_async(self._judge(request, result))

    def _offered(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        """Return a request with our tools and instructions, or with neither before they are needed."""
        if self._ours.offers(_thread_in(request.state) or new_thread(), request.messages):
            return _instructed(request, self._ours.instructions)
        ours = {tool.name for tool in self.tools}
        return request.override(tools=[tool for tool in request.tools if _name_of(tool) not in ours])

    def _begin(self, state: FdstoreState) -> Operation[dict[str, Any] | None]:
        """Return the update of the state: its thread if it is new, and the messages that replace those with
        their ids, unless they were replaced in an earlier run."""
        update: dict[str, Any] = {}
        thread = _thread_in(state)
        if not thread:
            thread = update["fdstore_thread"] = thread_of_tool() or new_thread()
        self._ours.see(thread, state["messages"])
        changed = []
        for message in state["messages"]:
            if isinstance(message, ToolMessage) and message.response_metadata.get(MARK) == DIRECT:
                call_id, metadata = message.tool_call_id, {**message.response_metadata, MARK: True}
                stored = yield from self._store_message(thread, message, str(message.name), call_id)
                changed.append(stored.model_copy(update={"response_metadata": metadata}))
            if isinstance(message, HumanMessage) and MARK not in message.response_metadata:
                before = _blocks(message.content)
                content = yield from self._ours.wrap_input(thread, before)
                if content != before:
                    metadata = {**message.response_metadata, MARK: True}
                    replaced = {"content": content, "response_metadata": metadata}
                    changed.append(message.model_copy(update=replaced))
        if changed:
            update["messages"] = changed
        return update or None

    def _call(self, request: ToolCallRequest) -> Operation[ToolMessage]:
        """Run one of our tools."""
        call = request.tool_call
        result = yield from self._ours.call(self._thread_of(request), call["name"], call["args"], call["id"])
        content: Any = result.content
        if not isinstance(content, str):
            content = convert_blocks(content, text_block, _picture_block)
        status = "error" if result.is_error else "success"
        return ToolMessage(content=content, name=call["name"], tool_call_id=call["id"], status=status)

    def _judge(self, request: ToolCallRequest, result: Any) -> Operation[Any]:
        """Store a handler's long result, or mark it if it ends the run."""
        if isinstance(result, ToolMessage) and _ends_run(request):
            metadata = {**result.response_metadata, MARK: DIRECT}
            return result.model_copy(update={"response_metadata": metadata})
        return (yield from self._store(request, result))

    def _thread_of(self, request: ToolCallRequest) -> str:
        """Return the thread of a run. A graph without our state has one by the messages it began with."""
        thread = request.runtime.config.get("configurable", {}).get("thread_id")
        if not thread and isinstance(request.state, dict):
            thread = request.state.get("fdstore_thread")
        if thread or (thread := thread_of_tool()):
            return str(thread)
        messages = _messages(request)
        found = _process_in(messages) or new_thread(f"{self._salt} {[message.id for message in messages]}")
        self._ours.see(found, messages)
        return found

    def _store(self, request: ToolCallRequest, result: Any) -> Operation[Any]:
        """Return what a handler returned with its long messages replaced."""
        if isinstance(result, ToolMessage):
            call = request.tool_call
            return (
                yield from self._store_message(self._thread_of(request), result, call["name"], call["id"])
            )
        if isinstance(result, list):
            items = []
            for item in result:
                items.append((yield from self._store(request, item)))
            return items
        if isinstance(result, Command) and isinstance(result.update, dict) and "messages" in result.update:
            messages = yield from self._store(request, list(result.update["messages"]))
            return replace(result, update={**result.update, "messages": messages})
        return result

    def _store_message(
        self, thread: str, message: ToolMessage, tool: str, call_id: str | None
    ) -> Operation[ToolMessage]:
        is_text = isinstance(message.content, str)
        blocks = _blocks([message.content] if is_text else message.content)
        found = yield from self._ours.offload_blocks(thread, blocks, _part, text_block, tool, call_id)
        if found is None:
            return message
        shown, fd = found
        update: dict[str, Any] = {"content": shown[0]["text"] if is_text else shown}
        if fd is not None and message.artifact is None:
            update["artifact"] = {"fdstore": {"process": self._ours.process_of(thread), "fd": fd}}
        return message.model_copy(update=update)


def _thread_in(state: Any) -> str | None:
    """Return the thread of the agent that runs: that of its configuration, else that of its state."""
    thread = get_config().get("configurable", {}).get("thread_id") or state.get("fdstore_thread")
    return str(thread) if thread else None


def _messages(request: ToolCallRequest) -> list[Any]:
    """Return the messages of a graph, whose state is a dict, a model, or the list of them."""
    state = request.state
    found = state.get("messages") if isinstance(state, dict) else getattr(state, "messages", state)
    return list(found or ())


def _process_in(messages: list[Any]) -> str | None:
    """Return the process of the last descriptor in the messages of a run without a thread. Only generated
    names count: clients can send messages, but cannot guess such a name."""
    artifacts = (getattr(message, "artifact", None) for message in reversed(messages))
    stored = (artifact.get(MARK) for artifact in artifacts if isinstance(artifact, dict))
    names = (str(each.get("process")) for each in stored if isinstance(each, dict))
    return next((name for name in names if is_generated(name)), None)


def _ends_run(request: ToolCallRequest) -> bool:
    """Return whether the run ends with the results of these calls: all of one tool with `return_direct`."""
    calls = getattr(_messages(request)[-1], "tool_calls", ())
    is_alone = all(call["name"] == request.tool_call["name"] for call in calls)
    return is_alone and bool(getattr(request.tool, "return_direct", False))


def _instructed(request: ModelRequest[Any], instructions: str) -> ModelRequest[Any]:
    before = request.system_message
    said = [] if before is None else _blocks(before.content)
    blocks = [text_block(said)] if isinstance(said, str) else said
    return request.override(system_message=SystemMessage(content=[*blocks, text_block(instructions)]))


def _name_of(tool: Any) -> Any:
    return tool.get("name") if isinstance(tool, dict) else tool.name


def _described(definition: dict[str, Any]) -> StructuredTool:
    """Return one of our tools as the model is to know it. The middleware runs it, which knows the thread."""

    def run(**arguments: Any) -> str:
        raise ToolException("this tool runs in an agent that has the FdstoreMiddleware it comes from")

    return StructuredTool(
        name=definition["name"],
        description=definition["description"],
        args_schema=definition["input_schema"],
        func=run,
    )


def _picture_block(picture: Picture) -> dict[str, Any]:
    """Return a picture as a block of LangChain, which all its models take."""
    kind = "image" if picture.is_image else "file"
    return {"type": kind, "base64": picture.base64, "mime_type": picture.media_type}


def _blocks(content: str | list[Any]) -> Any:
    """Return content without bare texts in its list."""
    if isinstance(content, str):
        return content
    return [text_block(item) if isinstance(item, str) else item for item in content]


def _part(block: dict[str, Any]) -> str | bytes | None:
    if block.get("type") == "text" and isinstance(block.get("text"), str):
        return str(block["text"])
    data = block.get("base64") or (block.get("data") if block.get("source_type") == "base64" else None)
    if isinstance(data, str) and str(block.get("mime_type")).startswith(("image/", "application/pdf")):
        try:
            return base64.b64decode(data, validate=True)
        except binascii.Error:
            return None
    picture = picture_in(block)
    return None if picture is None else picture.data
