"""Google's Agent Development Kit: a plugin that keeps long texts out of the events of all agents of a runner.

    runner = Runner(agent=agent, plugins=[FdstorePlugin(await fdstore.aio.connect())], ...)

Long texts in results of tools and in messages of the user are stored and shown as their `fd_result`, before
the session keeps them; every agent is offered our tools that read them. Media in results stay. Put it last:
the kit does not run the plugins and callbacks that come after one which changes a result.

The thread is the session: of its app and user. An agent that another one calls as a tool (`AgentTool`) has a
session of its own, and shares the thread.
"""

from __future__ import annotations

import secrets
from typing import Any, Unpack

from fdstore.errors import InvalidArgument, MissingExtra
from fdstore.integrations.shared.content_parts import convert_blocks, texts_in, with_texts
from fdstore.integrations.thread_tools import MAX_CALLS, AnyStore, TurnOptions, TurnTools
from fdstore.results.tool_outcome import ToolResult
from fdstore.results.wrapping import to_text
from fdstore.setup.optional_packages import how_to_install
from fdstore.store.recent import Recent
from fdstore.text.layout import reindent_json
from fdstore.wire.operation import Operation

try:
    from google.adk.plugins.base_plugin import BasePlugin
    from google.adk.tools.agent_tool import AgentTool
    from google.adk.tools.base_tool import BaseTool
    from google.genai import types
except ImportError as error:
    raise MissingExtra("google.adk", how_to_install("google-adk")) from error


SHARED = "fdstore_shared"
"""The key of a random token in the state of a session. An agent called as a tool gets the same token, and
with it the thread. The token is no thread id: clients of ADK's server can set the state of a session."""


class FdstorePlugin(BasePlugin):
    """Keep long texts out of the events of a runner, and let its agents read them by reference.

    store    a connected store; of `fdstore.aio.connect` on the event loop of the runner, or of
             `fdstore.connect`, which is used in threads
    options  see `TurnOptions`

    Raises `InvalidArgument`.

    >>> from google.adk.agents import LlmAgent
    >>> from google.adk.runners import InMemoryRunner
    >>> runner = InMemoryRunner(agent=LlmAgent(name="triage"), plugins=[FdstorePlugin(store)])
    """

    def __init__(self, store: AnyStore, **options: Unpack[TurnOptions]) -> None:
        super().__init__("fdstore")
        self._ours = TurnTools(store, **options)
        self._shared: Recent[str, str] = Recent(MAX_CALLS)
        """The threads of tokens."""
        self._direct: Recent[str, None] = Recent(MAX_CALLS)
        """Calls whose results ended a turn."""
        self._tools = [_Tool(self, self._ours, each) for each in self._ours.definitions_for("anthropic")]

    async def on_user_message_callback(self, *, invocation_context: Any, user_message: Any) -> Any:
        """Store the long texts of the user."""
        parts = list(user_message.parts or ())
        texts = [part.text or None for part in parts]
        session = invocation_context.session
        thread = self.thread_of(session)
        self._ours.see(thread, [*(event.content for event in session.events), texts])
        operation = self._ours.wrap_input_texts(thread, texts)
        shown = await self._ours.run_async(operation)
        if shown == texts:
            return None
        changed = [
            part if new == old else part.model_copy(update={"text": new})
            for part, old, new in zip(parts, texts, shown, strict=True)
            if new != ""  # else it was stored with an earlier one
        ]
        return user_message.model_copy(update={"parts": changed})

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
        """Offer our tools, tell the model about descriptors, and store what an earlier turn ended with."""
        shown = [await self._shown(content, callback_context.session) for content in llm_request.contents]
        llm_request.contents = shown
        if not self._ours.offers(self.thread_of(callback_context.session), shown):
            return
        llm_request.append_instructions([self._ours.instructions])
        llm_request.append_tools(self._tools)

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: Any
    ) -> None:
        """Give an agent that is called as a tool the thread of this session."""
        if isinstance(tool, AgentTool):
            token = secrets.token_hex(16)
            self._shared.put(token, self.thread_of(tool_context.session))
            tool_context.state[SHARED] = token

    async def after_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: Any, result: Any
    ) -> Any:
        """Store the long texts of a result, and the whole if what is left of it is long."""
        thread, call_id = self.thread_of(tool_context.session), tool_context.function_call_id
        if not isinstance(result, (str, dict, list)) or isinstance(tool, _Tool):
            return None
        if tool_context.actions.skip_summarization:  # the turn ends with what the tool returned
            self._direct.first(call_id or "", None)
            return None
        return await self._ours.run_async(self._store(thread, result, tool.name, call_id))

    def thread_of(self, session: Any) -> str:
        """Return the thread of a session: its own, or that of the session in which its agent is a tool."""
        shared = self._shared.get(str(session.state.get(SHARED)))
        return shared or f"{session.app_name}/{session.user_id}/{session.id}"

    async def _shown(self, content: Any, session: Any) -> Any:
        """Return a content as the model is to see it: of a result that ended a turn, the descriptor."""
        parts = []
        for part in content.parts or ():
            found = part.function_response
            if found is not None and found.id in self._direct:
                operation = self._store(self.thread_of(session), found.response, found.name, found.id)
                stored = await self._ours.run_async(operation)
                if stored is not None:
                    part = part.model_copy(
                        update={"function_response": found.model_copy(update={"response": stored})}
                    )
            parts.append(part)
        return content.model_copy(update={"parts": parts}) if content.parts else content

    def _store(self, thread: str, result: Any, tool: str, call_id: str | None) -> Operation[Any]:
        texts = texts_in(result)
        shown = yield from self._ours.offload_parts(thread, texts, tool, call_id, join_short=False)
        if shown is None:
            return None
        changed = None if list(shown.content) == texts else with_texts(result, list(shown.content))
        rest = [text for text, new in zip(texts, shown.content, strict=True) if text == new]
        if changed is not None and not self._ours.is_long("\n".join(rest), tool):
            return changed
        try:
            text = to_text(result if changed is None else changed)
        except InvalidArgument:
            return changed  # it contains media
        whole = reindent_json(text) or text
        found = yield from self._ours.offload(thread, whole, tool, call_id and f"{call_id}/whole")
        return changed if found is None or found.descriptor is None else {"result": found.content}


class _Tool(BaseTool):
    """One of our tools."""

    def __init__(self, plugin: FdstorePlugin, ours: TurnTools, definition: dict[str, Any]) -> None:
        super().__init__(name=definition["name"], description=definition["description"])
        self._plugin, self._ours = plugin, ours
        self._schema = definition["input_schema"]

    def _get_declaration(self) -> Any:
        return types.FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=self._schema
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> Any:
        thread, call_id = self._plugin.thread_of(tool_context.session), tool_context.function_call_id
        return _answer(await self._ours.run_async(self._ours.call(thread, self.name, args, call_id)))


def _answer(result: ToolResult) -> Any:
    """Return a result of one of our tools; the kit moves the media in a list into its own field."""
    if isinstance(result.content, str):
        return {"error" if result.is_error else "result": result.content}
    part = types.Part.from_bytes
    return convert_blocks(result.content, str, lambda each: part(data=each.data, mime_type=each.media_type))
