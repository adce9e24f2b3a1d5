"""Haystack: keep long texts out of the messages of an agent.

    hook = FdstoreHook(fdstore.connect())
    agent = Agent(
        chat_generator=..., tools=[read_log, *hook.tools], system_prompt=hook.instructions,
        hooks={"before_run": [hook], "after_tool": [hook]},
    )
    agent.run(messages=[...], hook_context={"fdstore_thread": "chat-7"})

The hook shows long results as their `fd_result` and, as `before_run`, long messages of the user too. Images
and files stay. Messages that it changed say so in their `meta`, and are not looked at again.

The thread is `fdstore_thread` of the run's `hook_context`. A run without one has a process of its own: to go
on with its messages in another run, give one, or a `process` to the hook.

`FdstoreResultStore` is for agents that have Haystack's own `ToolResultOffloadHook`: its policies decide what
is stored, and its pointers show the beginning.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import fdstore
from fdstore.client import Process
from fdstore.errors import MissingExtra
from fdstore.integrations.content_parts import shown_blocks
from fdstore.integrations.thread_tools import AnyStore, ThreadTools, new_thread
from fdstore.optional_packages import how_to_install
from fdstore.tools.config import FDConfig
from fdstore.tools.content_blocks import picture_in
from fdstore.tools.tool_names import READING_TOOLS, ToolName
from fdstore.tools.tool_outcome import Offloaded, ToolResult

try:
    from haystack.components.agents.state.state import State
    from haystack.components.agents.state.state_utils import replace_values
    from haystack.core.serialization import default_to_dict
    from haystack.dataclasses import ChatMessage, ChatRole, FileContent, ImageContent, TextContent
    from haystack.hooks.tool_result_offloading import ToolResultStore
    from haystack.tools import Tool
except ImportError as error:
    raise MissingExtra("haystack", how_to_install("haystack")) from error

THREAD = "fdstore_thread"
"""The key of the thread in the `hook_context` of a run."""

META = "fdstore"
"""The key in the `meta` of a message that was looked at: the process, and the descriptor if one was made."""


class FdstoreHook:
    """Keep long texts out of the messages of an agent, and let it read them by reference.

    store    a connected store: of `fdstore.connect` for runs of both kinds, or of `fdstore.aio.connect` for
             `run_async` alone
    process  name of the process of all threads. None: each has its own
    enabled  names of built-in tools that are offered
    config   sizes and switches, and policies for single tools (`FDConfig`)
    meter    name under which `fdstore saved` counts

    Raises `InvalidArgument`.

    >>> from haystack.components.agents import Agent
    >>> from haystack.components.generators.chat import MockChatGenerator
    >>> hook = FdstoreHook(store)
    >>> agent = Agent(
    ...     chat_generator=MockChatGenerator("Done."), tools=hook.tools, hooks={"before_run": [hook]}
    ... )
    >>> result = agent.run(messages=[ChatMessage.from_user("a long line\\n" * 1000)])
    >>> result["messages"][0].text.partition(" pages")[0]
    '<fd_result fd="fd:1"'
    """

    allowed_hook_points = ("before_run", "before_llm", "after_tool")

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
        self._ours = ThreadTools(
            store, process=process, enabled=enabled, config=config, export_root=export_root, meter=meter
        )

    @property
    def instructions(self) -> str:
        """The section for the system prompt."""
        return self._ours.instructions

    @property
    def tools(self) -> list[Tool]:
        """Our tools, for the tools of the agent."""
        return [self._tool(definition) for definition in self._ours.definitions_for("anthropic")]

    def run(self, state: State) -> None:
        """Store the long texts in new messages."""
        thread, messages = self._thread_of(state), list(state.data.get("messages") or ())
        found = [
            offload if offload is None else self._ours.offload_parts(thread, *offload)
            for offload in map(self._offload_of, messages)
        ]
        self._set(state, messages, found)

    async def run_async(self, state: State) -> None:
        """`run`, awaited."""
        thread, messages = self._thread_of(state), list(state.data.get("messages") or ())
        found = [
            offload if offload is None else await self._ours.offload_parts_async(thread, *offload)
            for offload in map(self._offload_of, messages)
        ]
        self._set(state, messages, found)

    def _thread_of(self, state: State) -> str:
        context = state.data.get("hook_context") or {}
        if not context.get(THREAD):
            context = {**context, THREAD: new_thread()}
            state.set("hook_context", context, handler_override=replace_values)
        return str(context[THREAD])

    def _offload_of(self, message: ChatMessage) -> tuple[list[str | bytes | None], str, str | None] | None:
        """Return the parts of a message to offload, their source and the id of the call; None for a message
        that stays as it is."""
        if META in message.meta:
            return None
        if (result := message.tool_call_result) is not None:
            name = str(result.origin.tool_name)
            return None if self._ours.is_own(name) else (_parts(_blocks(message)), name, result.origin.id)
        if message.is_from(ChatRole.USER):
            texts = [part if isinstance(part, str) else None for part in _parts(_blocks(message))]
            return list(texts), "user_input", None
        return None

    def _set(self, state: State, messages: list[ChatMessage], found: list[Offloaded | None]) -> None:
        process = self._ours.process_of(self._thread_of(state))
        shown = [
            self._own(message) if new is None else _shown(message, new, process)
            for message, new in zip(messages, found, strict=True)
        ]
        if any(new is not old for new, old in zip(shown, messages, strict=True)):
            state.set("messages", shown, handler_override=replace_values)

    def _own(self, message: ChatMessage) -> ChatMessage:
        """Return a message; an error of one of our tools, which only returns it, as an error."""
        result = message.tool_call_result
        if result is None or result.error or not self._ours.is_own(str(result.origin.tool_name)):
            return message
        is_error = isinstance(result.result, str) and result.result.startswith("<fd_error ")
        return ChatMessage.from_tool(result.result, result.origin, error=True) if is_error else message

    def _tool(self, definition: dict[str, Any]) -> Tool:
        name = definition["name"]

        def run(agent_state: State, **arguments: Any) -> Any:
            return _answer(self._ours.call(self._thread_of(agent_state), name, arguments))

        async def run_async(agent_state: State, **arguments: Any) -> Any:
            return _answer(await self._ours.call_async(self._thread_of(agent_state), name, arguments))

        return Tool(
            name=name,
            description=definition["description"],
            parameters=definition["input_schema"],
            function=run,
            async_function=run_async,
            outputs_to_string={"raw_result": True},
        )


class FdstoreResultStore(ToolResultStore):
    """Where a `ToolResultOffloadHook` stores results of tools: as descriptors of a process, `fd:1`. Results
    with images stay in the conversation.

    process  a process of `fdstore.connect()`, or the name of one, in the store that the environment names

    Give the agent the tools of a `FdstoreHook` with that process, so that its model can read them.

    >>> results = FdstoreResultStore(proc)
    >>> results.read(results.write(key="1_grep_call_7.txt", content="found"))
    'found'
    """

    supports_binary_content = False

    def __init__(self, process: Process | str) -> None:
        self.process = fdstore.connect().process(process) if isinstance(process, str) else process

    def write(self, *, key: str, content: str | bytes) -> str:
        """Store a result and return its descriptor. Raises `QuotaExceeded`, `StoreUnavailable`."""
        return self.process.create(content, source=key).fd

    def read(self, reference: str) -> str | bytes:
        """Return a stored result. Raises `NotFound`."""
        if self.process.stat(reference).kind == "bytes":
            return self.process.read_bytes(reference)
        return self.process.read(reference, read_all=True).text

    def to_dict(self) -> dict[str, Any]:
        """Return the name of the process; the URL of the store, which may have a password, is not kept."""
        found: dict[str, Any] = default_to_dict(self, process=self.process.id)
        return found


def _blocks(message: ChatMessage) -> list[Any]:
    """Return the content of a message: of a result of a tool, or of the user."""
    result = message.tool_call_result
    if result is None:
        return list(message._content)
    return [TextContent(result.result)] if isinstance(result.result, str) else list(result.result)


def _parts(blocks: Sequence[Any]) -> list[str | bytes | None]:
    return [_part(block) for block in blocks]


def _part(block: Any) -> str | bytes | None:
    if isinstance(block, TextContent):
        return str(block.text)
    data = getattr(block, "base64_image", None) or getattr(block, "base64_data", None)
    source = {"type": "base64", "media_type": getattr(block, "mime_type", None), "data": data}
    picture = picture_in({"source": source})
    return None if picture is None else picture.data


def _shown(message: ChatMessage, new: Offloaded, process: str) -> ChatMessage:
    """Return a message as the model is to see it: the same one if nothing changes."""
    blocks = _blocks(message)
    shown = shown_blocks(blocks, _parts(blocks), new.content, TextContent)
    if shown == blocks:
        return message
    meta = {**message.meta, META: {"process": process, "fd": new.descriptor and new.descriptor.fd}}
    result = message.tool_call_result
    if result is None:
        return replace(message, _content=shown, _meta=meta)
    content = shown[0].text if isinstance(result.result, str) else shown
    return ChatMessage.from_tool(content, result.origin, error=result.error, meta=meta)


def _answer(result: ToolResult) -> Any:
    """Return a result of one of our tools as Haystack takes it: a text, or blocks with images."""
    if isinstance(result.content, str):
        return result.content
    return [_block(block) for block in result.content]


def _block(block: dict[str, Any]) -> Any:
    if (picture := picture_in(block)) is None:
        return TextContent(block["text"])
    data = base64.b64encode(picture.data).decode("ascii")
    if picture.media_type.startswith("image/"):
        return ImageContent(data, mime_type=picture.media_type, validation=False)
    return FileContent(data, mime_type=picture.media_type, validation=False)
