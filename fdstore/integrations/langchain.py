"""LangChain: a middleware that keeps long texts out of an agent's messages.

    agent = create_agent(model, tools=[...], middleware=[FdstoreMiddleware(fdstore.connect())])

Long results of tools and long messages of the user are stored and shown as their `fd_result`. Our tools that
read them are offered, and the system message says how. Images stay; a failed call stays failed. Blocking and
awaited runs both work.

The process of a thread is named by its `thread_id` (see `process_name_of_thread`), with or without a
checkpointer. A run without one has a process of its own, whose name is kept in the agent's state: to go on
with its messages in another run, give a `thread_id`, or a `process` to the middleware.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from typing import Annotated, Any, NotRequired

from fdstore.errors import MissingExtra
from fdstore.integrations.content_parts import shown_blocks
from fdstore.integrations.thread_tools import AnyStore, ThreadTools, new_thread
from fdstore.optional_packages import how_to_install
from fdstore.tools.config import FDConfig
from fdstore.tools.content_blocks import picture_in
from fdstore.tools.tool_names import READING_TOOLS, ToolName
from fdstore.tools.tool_outcome import Offloaded, ToolResult

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
"""Marks a user's message that was replaced, in its metadata, which no model is sent."""


class FdstoreState(AgentState[Any]):
    """State of an agent with the middleware: the thread whose process has its descriptors."""

    fdstore_thread: NotRequired[Annotated[str, PrivateStateAttr]]  # type: ignore[valid-type]


class FdstoreMiddleware(AgentMiddleware[FdstoreState, Any, Any]):
    """Keep long texts out of an agent's messages, and let it read them by reference.

    store    a connected store: of `fdstore.connect` for runs of both kinds, or of `fdstore.aio.connect` for
             awaited ones alone
    process  name of the process of all threads. None: each thread has its own
    enabled  names of built-in tools that are offered: also write_fd close_fd, and fd_to_file with an
             `export_root`
    config   sizes and switches, and policies for single tools (`FDConfig`)
    meter    name under which `fdstore saved` counts

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

    def __init__(
        self,
        store: AnyStore,
        *,
        process: str | None = None,
        enabled: Sequence[ToolName] = READING_TOOLS,
        config: FDConfig | None = None,
        export_root: str | None = None,
        meter: str | None = None,
    ) -> None:
        super().__init__()
        self._ours = ThreadTools(
            store, process=process, enabled=enabled, config=config, export_root=export_root, meter=meter
        )
        self.tools = [_described(definition) for definition in self._ours.definitions_for("anthropic")]

    def before_agent(self, state: FdstoreState, runtime: Any) -> dict[str, Any] | None:
        """Store the long messages of the user."""
        thread, update = _begin(state)
        inputs = _inputs(state)
        shown = [self._ours.wrap_input(thread, _blocks(message.content)) for message in inputs]
        return _begun(update, inputs, shown)

    async def abefore_agent(self, state: FdstoreState, runtime: Any) -> dict[str, Any] | None:
        """`before_agent`, awaited."""
        thread, update = _begin(state)
        inputs = _inputs(state)
        shown = [await self._ours.wrap_input_async(thread, _blocks(message.content)) for message in inputs]
        return _begun(update, inputs, shown)

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[[Any], Any]) -> Any:
        """Tell the model about descriptors."""
        return handler(_instructed(request, self._ours.instructions))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[Any], Awaitable[Any]]
    ) -> Any:
        """`wrap_model_call`, awaited."""
        return await handler(_instructed(request, self._ours.instructions))

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> Any:
        """Run a tool, and store its long result."""
        call, thread = request.tool_call, _thread_of(request)
        if self._ours.is_own(call["name"]):
            return _answer(call, self._ours.call(thread, call["name"], call["args"], call["id"]))
        result, name = handler(request), call["name"]
        found = [
            (m, self._ours.offload_parts(thread, _parts(m), name, call["id"])) for m in _messages(result)
        ]
        return _replaced(result, found, self._ours.process_of(thread))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:
        """`wrap_tool_call`, awaited."""
        call, thread = request.tool_call, _thread_of(request)
        if self._ours.is_own(call["name"]):
            return _answer(call, await self._ours.call_async(thread, call["name"], call["args"], call["id"]))
        result, name = await handler(request), call["name"]
        found = [
            (m, await self._ours.offload_parts_async(thread, _parts(m), name, call["id"]))
            for m in _messages(result)
        ]
        return _replaced(result, found, self._ours.process_of(thread))


def _begin(state: FdstoreState) -> tuple[str, dict[str, Any]]:
    """Return the thread of a run, and what is to be kept of it in the state."""
    found = get_config().get("configurable", {}).get("thread_id") or state.get("fdstore_thread")
    if found:
        return str(found), {}
    thread = new_thread()
    return thread, {"fdstore_thread": thread}


def _inputs(state: FdstoreState) -> list[HumanMessage]:
    """Return the messages of the user that were not replaced in an earlier run."""
    return [
        message
        for message in state["messages"]
        if isinstance(message, HumanMessage) and MARK not in message.response_metadata
    ]


def _begun(update: dict[str, Any], inputs: list[HumanMessage], shown: list[Any]) -> dict[str, Any] | None:
    """Return the update of the state: messages with an id that is there replace it."""
    changed = [
        message.model_copy(
            update={"content": content, "response_metadata": {**message.response_metadata, MARK: True}}
        )
        for message, content in zip(inputs, shown, strict=True)
        if content != _blocks(message.content)
    ]
    return {**update, **({"messages": changed} if changed else {})} or None


def _thread_of(request: ToolCallRequest) -> str:
    found = request.runtime.config.get("configurable", {}).get("thread_id")
    return str(found or request.state["fdstore_thread"])


def _instructed(request: ModelRequest[Any], instructions: str) -> ModelRequest[Any]:
    before = request.system_message
    said = [] if before is None else _blocks(before.content)
    blocks = [_text_block(said)] if isinstance(said, str) else said
    return request.override(system_message=SystemMessage(content=[*blocks, _text_block(instructions)]))


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


def _answer(call: Any, result: ToolResult) -> ToolMessage:
    content = result.content if isinstance(result.content, str) else [_block(b) for b in result.content]
    status = "error" if result.is_error else "success"
    return ToolMessage(content=content, name=call["name"], tool_call_id=call["id"], status=status)


def _block(block: dict[str, Any]) -> dict[str, Any]:
    """Return a block of the Messages API as LangChain's own, which all its models take."""
    if (picture := picture_in(block)) is None:
        return block
    kind = "image" if picture.media_type.startswith("image/") else "file"
    data = base64.b64encode(picture.data).decode("ascii")
    return {"type": kind, "base64": data, "mime_type": picture.media_type}


def _blocks(content: str | list[Any]) -> Any:
    """Return content without bare texts in its list."""
    if isinstance(content, str):
        return content
    return [_text_block(item) if isinstance(item, str) else item for item in content]


def _messages(result: Any) -> list[ToolMessage]:
    """Return the results in what a tool's handler returned."""
    if isinstance(result, ToolMessage):
        return [result]
    if isinstance(result, Command):
        update = result.update if isinstance(result.update, dict) else {}
        return [message for message in update.get("messages", ()) if isinstance(message, ToolMessage)]
    return [message for item in result for message in _messages(item)] if isinstance(result, list) else []


def _parts(message: ToolMessage) -> list[str | bytes | None]:
    content = _blocks(message.content)
    return [content] if isinstance(content, str) else [_part(block) for block in content]


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


def _replaced(result: Any, found: Iterable[tuple[ToolMessage, Offloaded | None]], process: str) -> Any:
    """Return the result of a handler with the messages that the model is to see."""
    changed = {id(message): _shown(message, new, process) for message, new in found if new is not None}
    return _with(result, changed)


def _with(result: Any, changed: dict[int, ToolMessage]) -> Any:
    if isinstance(result, list):
        return [_with(item, changed) for item in result]
    if isinstance(result, Command) and isinstance(result.update, dict) and "messages" in result.update:
        messages = [changed.get(id(message), message) for message in result.update["messages"]]
        return replace(result, update={**result.update, "messages": messages})
    return changed.get(id(result), result)


def _shown(message: ToolMessage, new: Offloaded, process: str) -> ToolMessage:
    blocks = _blocks(message.content)
    if isinstance(blocks, str):
        update: dict[str, Any] = {"content": new.content[0]}
    else:
        update = {"content": shown_blocks(blocks, _parts(message), new.content, _text_block)}
    if new.descriptor is not None and message.artifact is None:
        update["artifact"] = {"fdstore": {"process": process, "fd": new.descriptor.fd}}
    return message.model_copy(update=update)


def _text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
