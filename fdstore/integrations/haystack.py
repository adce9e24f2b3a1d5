"""Haystack: keep long texts out of the messages of an agent.

    hook = FdstoreHook(fdstore.connect())
    agent = Agent(
        chat_generator=..., tools=[read_log, *hook.tools], system_prompt=hook.instructions,
        hooks={"before_run": [hook], "after_tool": [hook]},
    )
    agent.run(messages=[...], hook_context={"fdstore_thread": "chat-7"})

The hook shows long results as their `fd_result` and, as `before_run`, long messages of the user too. Images
and files stay. Messages that it changed say so in their `meta`, and are not looked at again. As `after_run`,
which Haystack has since 3.4, it gives back the results with which a tool ended the run (`exit_conditions`):
they are for the caller, who is no model.

The thread is `fdstore_thread` of the run's `hook_context`. A run without one has a process of its own: to go
on with its messages in another run, give one, or a `process` to the hook. An agent as a tool shares it with
`ComponentTool(inner, ..., inputs_from_state={"hook_context": "hook_context"})`.

`FdstoreResultStore` is for agents that have Haystack's own `ToolResultOffloadHook`: its policies decide what
is stored, and its pointers show the beginning.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Unpack

import fdstore
from fdstore.client import Process
from fdstore.elements.parse import parse_facts
from fdstore.errors import MissingExtra, QuotaExceeded
from fdstore.integrations.shared.close_oldest import FULL, KEEP_S, close_oldest
from fdstore.integrations.shared.content_parts import convert_blocks
from fdstore.integrations.thread_tools import AnyStore, ThreadOptions, ThreadTools, new_thread
from fdstore.results.content_blocks import picture_in
from fdstore.results.pictures import Picture
from fdstore.setup.optional_packages import how_to_install
from fdstore.store.recent import Recent
from fdstore.wire.operation import Operation

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


MAX_LAST = 64
"""Threads of which the results of the last step are kept as their tools returned them."""

_Replaced = list[tuple[ChatMessage, ChatMessage]]
"""Messages as they are shown, and as they were."""


class FdstoreHook:
    """Keep long texts out of the messages of an agent, and let it read them by reference.

    store    a connected store: of `fdstore.connect` for runs of both kinds, or of `fdstore.aio.connect` for
             `run_async` alone
    options  see `ThreadOptions`

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

    allowed_hook_points = ("before_run", "before_llm", "after_tool", "after_run")

    def __init__(self, store: AnyStore, **options: Unpack[ThreadOptions]) -> None:
        self._ours = ThreadTools(store, **options)
        self._last: Recent[str, _Replaced] = Recent(MAX_LAST)
        """What was replaced after the last step of a thread."""

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
        self._ours.run(self._store(state))

    async def run_async(self, state: State) -> None:
        """`run`, awaited."""
        await self._ours.run_async(self._store(state))

    def _thread_of(self, state: State) -> str:
        context = state.data.get("hook_context") or {}
        if not context.get(THREAD):
            context = {**context, THREAD: new_thread()}
            state.set("hook_context", context, handler_override=replace_values)
        return str(context[THREAD])

    def _store(self, state: State) -> Operation[None]:
        thread, messages, shown = self._thread_of(state), list(state.data.get("messages") or ()), []
        if state.data.get("exit_reason") and (given := self._as_returned(thread, messages)) is not None:
            state.set("messages", given, handler_override=replace_values)
            return
        self._ours.see(thread, [each for each in messages if not each.is_from(ChatRole.SYSTEM)])
        for message in messages:
            shown.append((yield from self._store_message(thread, message)))
        replaced = [(new, old) for new, old in zip(shown, messages, strict=True) if new is not old]
        if replaced:
            state.set("messages", shown, handler_override=replace_values)
        self._last.put(thread, replaced)

    def _as_returned(self, thread: str, messages: list[ChatMessage]) -> list[ChatMessage] | None:
        """Return the messages of a run that its last step has ended, with the results of that step as its
        tools returned them; None if none was replaced."""
        replaced, given, is_last = self._last.get(thread) or [], list(messages), True
        for number in reversed(range(len(messages))):
            is_last = is_last and messages[number].tool_call_result is not None
            for shown, returned in replaced if is_last else []:
                if messages[number] == shown:
                    given[number] = returned
        return given if any(new is not old for new, old in zip(given, messages, strict=True)) else None

    def _store_message(self, thread: str, message: ChatMessage) -> Operation[ChatMessage]:
        """Return a message as the model is to see it: the same one if nothing changes."""
        result = message.tool_call_result
        if META in message.meta or (result is None and not message.is_from(ChatRole.USER)):
            return message
        source, call_id = "user_input", None
        if result is not None:
            source, call_id = str(result.origin.tool_name), result.origin.id
        if result is not None and self._ours.is_own(source):
            # our tools return errors as other results, and the framework keeps only their text
            if result.error or parse_facts(str(result.result)).error is None:
                return message
            return ChatMessage.from_tool(result.result, result.origin, error=True)
        blocks = _blocks(message)
        found = yield from self._ours.offload_blocks(
            thread, blocks, _part, TextContent, source, call_id, is_input=result is None
        )
        if found is None:
            return message
        shown, fd = found
        meta = {**message.meta, META: {"process": self._ours.process_of(thread), "fd": fd}}
        if result is None:
            return replace(message, _content=shown, _meta=meta)
        content = shown[0].text if isinstance(result.result, str) else shown
        return ChatMessage.from_tool(content, result.origin, error=result.error, meta=meta)

    def _call(self, state: State, name: str, arguments: dict[str, Any]) -> Operation[Any]:
        """Run one of our tools."""
        content = (yield from self._ours.call(self._thread_of(state), name, arguments)).content
        return content if isinstance(content, str) else convert_blocks(content, TextContent, _picture_block)

    def _tool(self, definition: dict[str, Any]) -> Tool:
        name = definition["name"]

        def run(agent_state: State, **arguments: Any) -> Any:
            return self._ours.run(self._call(agent_state, name, arguments))

        async def run_async(agent_state: State, **arguments: Any) -> Any:
            return await self._ours.run_async(self._call(agent_state, name, arguments))

        return Tool(
            name=name,
            description=definition["description"],
            parameters=definition["input_schema"],
            function=run,
            async_function=run_async,
            outputs_to_string={"raw_result": True},
        )


class FdstoreResultStore(ToolResultStore):
    """A store of results of tools for a `ToolResultOffloadHook`: as descriptors of a process, `fd:1`. Results
    with images stay in the conversation.

    process  a process of `fdstore.connect()`, or the name of one, in the store that the environment names
    keep_s   where its tree is full, results older than this are closed, the oldest first, in seconds

    Give the agent the tools of a `FdstoreHook` with that process, so that its model can read them.

    >>> results = FdstoreResultStore(proc)
    >>> results.read(results.write(key="1_grep_call_7.txt", content="found"))
    'found'
    """

    supports_binary_content = False

    def __init__(self, process: Process | str, keep_s: float = KEEP_S) -> None:
        self.process = fdstore.connect().process(process) if isinstance(process, str) else process
        self.keep_s = keep_s

    def write(self, *, key: str, content: str | bytes) -> str:
        """Store a result and return its descriptor. Raises `QuotaExceeded`, `StoreUnavailable`."""
        while True:
            try:
                return self.process.create(content, source=key).fd
            except QuotaExceeded as error:
                room = close_oldest(self.process.handle, self.keep_s)
                if error.limit not in FULL or not self.process.store.run(room):
                    raise

    def read(self, reference: str) -> str | bytes:
        """Return a stored result. Raises `NotFound`."""
        if self.process.stat(reference).kind == "bytes":
            return self.process.read_bytes(reference)
        return self.process.read(reference, read_all=True).text

    def to_dict(self) -> dict[str, Any]:
        """Return the name of the process; the URL of the store, which may have a password, is not kept."""
        found: dict[str, Any] = default_to_dict(self, process=self.process.id, keep_s=self.keep_s)
        return found


def _blocks(message: ChatMessage) -> list[Any]:
    """Return the content of a message: of a result of a tool, or of the user."""
    result = message.tool_call_result
    if result is None:
        return list(message._content)
    return [TextContent(result.result)] if isinstance(result.result, str) else list(result.result)


def _part(block: Any) -> str | bytes | None:
    if isinstance(block, TextContent):
        return str(block.text)
    data = getattr(block, "base64_image", None) or getattr(block, "base64_data", None)
    source = {"type": "base64", "media_type": getattr(block, "mime_type", None), "data": data}
    picture = picture_in({"source": source})
    return None if picture is None else picture.data


def _picture_block(picture: Picture) -> Any:
    block = ImageContent if picture.is_image else FileContent
    return block(picture.base64, mime_type=picture.media_type, validation=False)
