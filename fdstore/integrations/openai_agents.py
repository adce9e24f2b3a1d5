"""OpenAI Agents SDK: keep long texts out of what its agents read.

    ours = FdstoreTools(await fdstore.aio.connect())
    agent = Agent("triage", instructions=ours.instructions, tools=ours.wrap([read_log]))
    result = await Runner.run(agent, question, run_config=ours.run_config("chat-7"))

`wrap` returns the tools with their long results stored, so sessions and `to_input_list()` have what the model
saw, and with our own tools. The run configuration does the same for what no tool of the list returned, in
the input of each call of the model alone: messages of the user, results of MCP servers, and of tools that
`wrap` leaves as they are: those with an output schema, and those whose approval depends on their arguments.

The thread is the `group_id` of the run configuration; `run_config()` without one makes one for its runs. A
run without our run configuration has a process of its own, which its agents that run as tools share: to go on
with its items in another run, give a thread.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Annotated, Any, Unpack

from fdstore.errors import InvalidArgument, MissingExtra
from fdstore.integrations.shared.content_parts import convert_blocks
from fdstore.integrations.thread_tools import (
    MAX_CALLS,
    AnyStore,
    ThreadOptions,
    ThreadTools,
    new_thread,
    thread_of_tool,
    within_tool_of,
)
from fdstore.results.content_blocks import picture_in
from fdstore.results.pictures import Picture
from fdstore.results.wrapping import to_text
from fdstore.setup.optional_packages import how_to_install
from fdstore.store.recent import Recent
from fdstore.text.layout import reindent_json

try:
    from agents import (
        FunctionTool,
        RunConfig,
        Tool,
        ToolOutputFileContent,
        ToolOutputImage,
        ToolOutputText,
    )
    from agents.run_config import CallModelData, ModelInputData
    from agents.tool_context import ToolContext
    from agents.usage import Usage
    from pydantic import Field, TypeAdapter
except ImportError as error:
    raise MissingExtra("agents", how_to_install("openai-agents")) from error

STRUCTURED: TypeAdapter[Any] = TypeAdapter(
    Annotated[ToolOutputText | ToolOutputImage | ToolOutputFileContent, Field(discriminator="type")]
)


class FdstoreTools:
    """Tools of agents, with long results stored and our tools that read them.

    store    a connected store; of `fdstore.aio.connect` on the event loop of the runs, or of
             `fdstore.connect`, which is used in threads
    options  see `ThreadOptions`

    Raises `InvalidArgument`.

    >>> from agents import function_tool
    >>> @function_tool
    ... def read_log() -> str:
    ...     return "a line of a log\\n" * 1000
    >>> ours = FdstoreTools(store)
    >>> [tool.name for tool in ours.wrap([read_log])][:3]
    ['read_log', 'read_fd', 'search_fd']
    >>> ours.run_config("chat-7").group_id
    'chat-7'
    """

    def __init__(self, store: AnyStore, **options: Unpack[ThreadOptions]) -> None:
        self._ours = ThreadTools(store, **options)
        self._runs: Recent[int, tuple[Usage, str]] = Recent(MAX_CALLS)
        """The threads of runs that have none, by the identity of their usage, which no other run has."""
        self._wrapped: set[str] = set()
        self._calls: Recent[str, None] = Recent(MAX_CALLS)
        """Calls whose results the model is to see as they are: of wrapped tools, and our own."""
        self._direct: Recent[str, None] = Recent(MAX_CALLS)
        """Calls whose results ended their run, whose caller has them as they were."""

    @property
    def instructions(self) -> str:
        """The section for the instructions of an agent."""
        return self._ours.instructions

    def wrap(self, tools: Sequence[Tool]) -> list[Tool]:
        """Return copies of the tools whose long results are stored, and our own tools. Hosted tools, and the
        others that the module's description names, are returned as they are."""
        return [self._wrap(tool) for tool in tools] + [
            FunctionTool(
                each["name"],
                each["description"],
                each["parameters"],
                self._caller(each["name"]),
                strict_json_schema=False,
            )
            for each in self._ours.definitions_for("openai-responses")
        ]

    def run_config(self, thread: str | None = None, config: RunConfig | None = None) -> RunConfig:
        """Return a run configuration, `config` or a new one, for a thread (default: its `group_id`, else that
        of the agent within whose tool this is called, else a new one). A `call_model_input_filter` that it
        has runs first."""
        config = config or RunConfig()
        thread = thread or config.group_id or thread_of_tool() or new_thread()
        before = config.call_model_input_filter

        async def filtered(data: CallModelData[Any]) -> ModelInputData:
            model_data = data.model_data
            if before is not None:
                found = before(data)
                model_data = await found if isinstance(found, Awaitable) else found
            return replace(model_data, input=await self._input(thread, model_data.input))

        return replace(config, group_id=thread, call_model_input_filter=filtered)

    def _wrap(self, tool: Tool) -> Tool:
        if not isinstance(tool, FunctionTool) or self._ours.is_own(tool.name):
            return tool
        if tool.output_json_schema is not None or callable(tool.needs_approval):
            return tool
        run, name = tool.on_invoke_tool, tool.name

        async def invoke(context: ToolContext[Any], arguments: str) -> Any:
            with within_tool_of(self._thread_of(context)):
                output = await run(context, arguments)
            if _ends_run(context, name):
                self._direct.first(context.tool_call_id, None)
                return output
            return await self._offload(self._thread_of(context), name, output, context.tool_call_id)

        copied = copy.copy(tool)
        copied.on_invoke_tool = invoke
        self._wrapped.add(name)
        return copied

    def _caller(self, name: str) -> Callable[[ToolContext[Any], str], Awaitable[Any]]:
        async def invoke(context: ToolContext[Any], arguments: str) -> Any:
            self._calls.first(context.tool_call_id, None)
            try:
                given = json.loads(arguments or "{}")
            except ValueError as error:
                return f"Invalid JSON for the arguments of {name}: {error}"
            operation = self._ours.call(self._thread_of(context), name, given, context.tool_call_id)
            content = (await self._ours.run_async(operation)).content
            return content if isinstance(content, str) else convert_blocks(content, _text_block, _output)

        return invoke

    def _thread_of(self, context: ToolContext[Any]) -> str:
        """Return the thread of a run: that of its configuration, else that of the agent within whose tool it
        is, else a new one."""
        if context.run_config and context.run_config.group_id:
            return str(context.run_config.group_id)
        if outer := thread_of_tool():
            return outer
        _, thread = self._runs.first(id(context.usage), (context.usage, new_thread()))
        self._ours.see(thread, context.turn_input)
        return thread

    async def _offload(self, thread: str, source: str, output: Any, call_id: str) -> Any:
        """Return an output of a tool as the model is to see it: the same object if nothing changes."""
        self._calls.first(call_id, None)
        items = list(output) if isinstance(output, (list, tuple)) and output else [output]
        blocks = [_structured(item) for item in items]
        is_text = None in blocks
        if is_text:
            blocks = [_text_block(_text_of(output))]
        operation = self._ours.offload_blocks(thread, blocks, _part, _text_block, source, call_id)
        if (found := await self._ours.run_async(operation)) is None:
            return output
        return found[0][0].text if is_text else found[0]

    async def _input(self, thread: str, items: Sequence[Any]) -> list[Any]:
        """Return the input of a call of the model with its long texts as their `fd_result`. The items are
        changed in place, since the SDK knows by their identity what a conversation has sent; if it keeps them
        as they were, each call of the model stores the same texts under the same ids."""
        self._ours.see(thread, items)
        calls = [item for item in items if isinstance(item, dict) and item.get("type") == "function_call"]
        names = {item.get("call_id"): item.get("name") for item in calls}
        for item in items:
            if not isinstance(item, dict):
                continue
            kind, call_id = item.get("type", "message"), item.get("call_id")
            if kind == "message" and item.get("role") == "user":
                item["content"] = await self._input_content(thread, "user_input", item.get("content"))
            elif kind == "function_call_output" and call_id not in self._calls:
                name = names.get(call_id)
                is_shown = call_id not in self._direct and name in self._wrapped
                if not is_shown and not (name and self._ours.is_own(name)):
                    source = name or "tool_result"
                    item["output"] = await self._input_content(thread, source, item.get("output"))
        return list(items)

    async def _input_content(self, thread: str, source: str, content: Any) -> Any:
        blocks = [content] if isinstance(content, str) else content
        if not isinstance(blocks, list):
            return content
        parts = [block if isinstance(block, str) else _text_in(block) for block in blocks]
        if not any(parts):
            return content
        call_id = f"input/{sha256(json.dumps(parts).encode()).hexdigest()}"
        operation = self._ours.offload_parts(thread, parts, source, call_id, is_input=source == "user_input")
        offloaded = await self._ours.run_async(operation)
        if offloaded is None or offloaded.content == parts:
            return content
        if isinstance(content, str):
            return offloaded.content[0]
        return [
            block if text is None else {**block, "text": text}
            for block, part, text in zip(blocks, parts, offloaded.content, strict=True)
            if text != "" or part == ""  # else it was stored with an earlier one
        ]


def _ends_run(context: ToolContext[Any], tool: str) -> bool:
    """Return whether the result of a tool is the final output of the run."""
    behavior = getattr(context.agent, "tool_use_behavior", None)
    if isinstance(behavior, dict):
        return tool in behavior.get("stop_at_tool_names", ())
    return behavior == "stop_on_first_tool"


def _structured(item: Any) -> Any:
    """Return an item of an output as the SDK's own model of a block, or None for another value."""
    try:
        return STRUCTURED.validate_python(item)
    except ValueError:
        return None


def _part(block: Any) -> str | bytes | None:
    if isinstance(block, ToolOutputText):
        return str(block.text)
    picture = picture_in(block)
    return None if picture is None else picture.data


def _text_of(output: Any) -> str:
    """Return a value as a text: indented JSON if it can be, else as the SDK shows it."""
    if isinstance(output, str):
        return output
    try:
        text = to_text(output)
    except InvalidArgument:
        return str(output)
    return reindent_json(text) or text


def _text_in(block: Any) -> str | None:
    text = block.get("text") if isinstance(block, dict) and block.get("type") == "input_text" else None
    return text if isinstance(text, str) else None


def _text_block(text: str) -> ToolOutputText:
    return ToolOutputText(text=text)


def _output(picture: Picture) -> Any:
    url = f"data:{picture.media_type};base64,{picture.base64}"
    if picture.is_image:
        return ToolOutputImage(image_url=url)
    return ToolOutputFileContent(file_data=url, filename="content.pdf")
