"""Microsoft Agent Framework: keep long texts out of the messages of an agent.

    agent = Agent(client, tools=[read_log], context_providers=[FdstoreProvider(await fdstore.aio.connect())])

The provider adds to each run a middleware that shows long results of functions as their `fd_result`, our own
tools that read them, and the instructions; long messages of the user are stored before the history keeps
them. Images stay, and an error that a function raises stays one.

The thread is the session: `agent.run(text, session=agent.create_session(session_id="chat-7"))`. A run without
a session has a process of its own, unless a tool of another agent runs it: then it shares that one's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Unpack

from fdstore.errors import MissingExtra
from fdstore.integrations.shared.content_parts import convert_blocks
from fdstore.integrations.thread_tools import (
    AnyStore,
    TurnOptions,
    TurnTools,
    thread_of_tool,
    within_tool_of,
)
from fdstore.results.content_blocks import picture_in
from fdstore.setup.optional_packages import how_to_install

try:
    from agent_framework import (
        ChatContext,
        ChatMiddleware,
        Content,
        ContextProvider,
        FunctionInvocationContext,
        FunctionMiddleware,
        FunctionTool,
        Message,
        merge_chat_options,
    )
except ImportError as error:
    raise MissingExtra("agent_framework", how_to_install("agent-framework")) from error


class FdstoreProvider(ContextProvider):
    """Keep long texts out of the messages of an agent, and let it read them by reference.

    store    a connected store; of `fdstore.aio.connect` on the event loop of the agent, or of
             `fdstore.connect`, which is used in threads
    options  see `TurnOptions`

    Raises `InvalidArgument`.

    >>> provider = FdstoreProvider(store, process="triage")
    >>> provider.source_id
    'fdstore'
    """

    def __init__(self, store: AnyStore, **options: Unpack[TurnOptions]) -> None:
        super().__init__("fdstore")
        self._ours = TurnTools(store, **options)

    async def before_run(self, *, agent: Any, session: Any, context: Any, state: dict[str, Any]) -> None:
        """Store the long messages of the user, and add our tools, instructions and middleware."""
        thread = thread_of_tool() or str(session.session_id)
        self._ours.see(thread, [message.to_dict() for message in context.input_messages])
        messages = [await self._input(thread, message) for message in context.input_messages]
        context.input_messages[:] = messages
        context.extend_tools(
            self.source_id, [_tool(each) for each in self._ours.definitions_for("anthropic")]
        )
        # what a service keeps of a conversation is not in its requests
        is_known = not (context.service_session_id or context.options.get("conversation_id"))
        if self._ours.holds_back and is_known:
            context.extend_middleware(self.source_id, [_Offering(self._ours, thread)])
        else:
            context.extend_instructions(self.source_id, self._ours.instructions)
        context.extend_middleware(self.source_id, [_Middleware(self._ours, thread)])

    async def _input(self, thread: str, message: Message) -> Message:
        if message.role != "user":
            return message
        operation = self._ours.offload_blocks(
            thread, message.contents, _part, Content.from_text, "user_input", is_input=True
        )
        if (found := await self._ours.run_async(operation)) is None:
            return message
        changed = Message.from_dict(message.to_dict())
        changed.contents, _ = found
        return changed


class _Offering(ChatMiddleware):
    """Adds the instructions to each request that needs our tools, and takes the tools out of the others."""

    def __init__(self, ours: TurnTools, thread: str) -> None:
        self._ours = ours
        self._thread = thread

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        options = dict(context.options or {})
        told = [each.to_dict() for each in context.messages if each.role != "system"]
        if self._ours.offers(self._thread, told):
            options = merge_chat_options(options, {"instructions": self._ours.instructions})
        else:
            tools = options.get("tools") or ()
            options["tools"] = [each for each in tools if not self._ours.is_own(getattr(each, "name", ""))]
        context.options = options
        await call_next()


class _Middleware(FunctionMiddleware):
    """Stores the long results of the functions of a run, and runs our own tools."""

    def __init__(self, ours: TurnTools, thread: str) -> None:
        self._ours = ours
        self._thread = thread

    async def process(
        self, context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]
    ) -> None:
        name, call_id = context.function.name, context.metadata.get("call_id")
        if self._ours.is_own(name):
            operation = self._ours.call(self._thread, name, dict(context.arguments), call_id)
            result = await self._ours.run_async(operation)
            context.result = convert_blocks(
                result.content, Content.from_text, lambda each: Content.from_data(each.data, each.media_type)
            )
            return
        with within_tool_of(self._thread):
            await call_next()
        given = context.result
        contents = [Content.from_text(given)] if isinstance(given, str) else given
        if not isinstance(contents, list) or not all(isinstance(each, Content) for each in contents):
            return
        offload = self._ours.offload_blocks(self._thread, contents, _part, Content.from_text, name, call_id)
        if (found := await self._ours.run_async(offload)) is not None:
            context.result, _ = found


def _tool(definition: dict[str, Any]) -> FunctionTool:
    """Return one of our tools as the model is to know it. The middleware runs it, which knows the thread."""

    def run(**arguments: Any) -> str:
        raise RuntimeError("this tool runs in an agent that has the FdstoreProvider it comes from")

    return FunctionTool(
        name=definition["name"],
        description=definition["description"],
        input_model=definition["input_schema"],
        func=run,
        approval_mode="never_require",
    )


def _part(content: Content) -> str | bytes | None:
    if content.type == "text":
        return str(content.text)
    picture = picture_in({"image_url": content.uri}) if content.type == "data" else None
    return None if picture is None else picture.data
