"""LlamaIndex: keep long texts out of what its agents read.

    ours = FdstoreTools(await fdstore.aio.connect())
    agent = FunctionAgent(tools=ours.wrap([read_log]), llm=llm, system_prompt=ours.instructions)
    ctx = Context(agent)
    await agent.run("Why did it fail?", ctx=ctx)

`wrap` returns the tools with their long results stored, and our own tools. Images stay, an error stays one,
and the caller gets what a tool with `return_direct` returned.

The thread is kept in the `Context`, also in its dict (`ctx.to_dict()`): a run with the same context goes on
with its descriptors. A run without one has a process of its own, which agents that its tools run share.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Unpack

from fdstore.errors import InvalidArgument, MissingExtra
from fdstore.integrations.shared.content_parts import convert_blocks
from fdstore.integrations.thread_tools import (
    MAX_THREADS,
    AnyStore,
    ThreadOptions,
    ThreadTools,
    new_thread,
    thread_of_tool,
    within_tool_of,
)
from fdstore.results.pictures import Picture
from fdstore.results.wrapping import to_text
from fdstore.setup.optional_packages import how_to_install
from fdstore.store.recent import Recent

try:
    from llama_index.core.async_utils import asyncio_run
    from llama_index.core.base.llms.types import DocumentBlock, ImageBlock, TextBlock
    from llama_index.core.tools import FunctionTool, ToolMetadata, ToolOutput
    from llama_index.core.tools.types import adapt_to_async_tool
except ImportError as error:
    raise MissingExtra("llama_index.core", how_to_install("llama-index")) from error

THREAD = "fdstore_thread"
"""The key of the thread in the store of a context."""


class FdstoreTools:
    """Tools of agents, with long results stored and our tools that read them.

    store    a connected store; of `fdstore.aio.connect` on the event loop of the agents, or of
             `fdstore.connect`, which is used in threads
    options  see `ThreadOptions`

    Raises `InvalidArgument`.

    >>> def read_log() -> str:
    ...     "Return a log."
    ...     return "a line of a log\\n" * 1000
    >>> ours = FdstoreTools(store)
    >>> [tool.metadata.name for tool in ours.wrap([read_log])][:3]
    ['read_log', 'read_fd', 'search_fd']
    """

    def __init__(self, store: AnyStore, **options: Unpack[ThreadOptions]) -> None:
        self._ours = ThreadTools(store, **options)
        self._new: Recent[int, tuple[Any, str]] = Recent(MAX_THREADS)
        """Threads of contexts that have none yet, by the identity of their store: calls run in parallel."""

    @property
    def instructions(self) -> str:
        """The section for the system prompt of an agent."""
        return self._ours.instructions

    def wrap(self, tools: Sequence[Any]) -> list[Any]:
        """Return the tools, functions among them, with their long results stored, and our own tools."""
        given = [tool if hasattr(tool, "metadata") else FunctionTool.from_defaults(tool) for tool in tools]
        ours = self._ours.definitions_for("anthropic")
        return [_Wrapped(self, self._ours, adapt_to_async_tool(tool)) for tool in given] + [
            _Tool(self, self._ours, definition) for definition in ours
        ]

    async def thread_of(self, context: Any) -> str:
        """Return the thread of a run, by its context, or of the agent whose tool started it."""
        if outer := thread_of_tool():
            return outer
        if context is None:
            return new_thread()
        if thread := await context.store.get(THREAD, default=None):
            return str(thread)
        _, thread = self._new.first(id(context.store), (context.store, new_thread()))
        await context.store.set(THREAD, thread)
        if memory := await context.store.get("memory", default=None):
            self._ours.see(thread, await memory.aget_all())
        return thread


class _InContext(FunctionTool):
    """A tool that is given the context of the run that calls it."""

    def __init__(self, tools: FdstoreTools, ours: ThreadTools, metadata: Any) -> None:
        self._tools, self._ours, self._metadata = tools, ours, metadata
        self._real_fn = self._fn = self.call
        self._async_fn = self.acall
        self.requires_context, self.ctx_param_name = True, "fdstore_context"

    def call(self, *args: Any, **arguments: Any) -> Any:
        """`acall`, for a caller that does not await."""
        return asyncio_run(self.acall(*args, **arguments))


class _Wrapped(_InContext):
    """A tool whose long results are stored."""

    def __init__(self, tools: FdstoreTools, ours: ThreadTools, tool: Any) -> None:
        super().__init__(tools, ours, tool.metadata)
        self._tool = tool

    async def acall(self, *args: Any, fdstore_context: Any = None, **arguments: Any) -> Any:
        """Run the tool, and return its output as the model is to see it."""
        thread = await self._tools.thread_of(fdstore_context)
        if getattr(self._tool, "requires_context", False) and fdstore_context is not None:
            arguments[self._tool.ctx_param_name] = fdstore_context
        with within_tool_of(thread):
            output = await self._tool.acall(*args, **arguments)
        if self.metadata.return_direct and not output.is_error:
            return output
        blocks, name = _blocks_of(output), str(self.metadata.name)
        operation = self._ours.offload_blocks(thread, blocks, _part, _text_block, name)
        if (found := await self._ours.run_async(operation)) is None:
            return output
        shown, _ = found
        return ToolOutput(
            tool_name=output.tool_name,
            blocks=shown,
            raw_input=output.raw_input,
            raw_output=getattr(shown[0], "text", None),  # the events of a run do not carry the text
            is_error=output.is_error,
        )


class _Tool(_InContext):
    """One of our tools."""

    def __init__(self, tools: FdstoreTools, ours: ThreadTools, definition: dict[str, Any]) -> None:
        metadata = _Metadata(definition["description"], definition["name"], fn_schema=None)
        super().__init__(tools, ours, metadata)
        self._metadata.schema = definition["input_schema"]

    async def acall(self, *args: Any, fdstore_context: Any = None, **arguments: Any) -> Any:
        """Run the tool."""
        thread, name = await self._tools.thread_of(fdstore_context), str(self.metadata.name)
        result = await self._ours.run_async(self._ours.call(thread, name, arguments))
        blocks = convert_blocks(result.content, _text_block, _picture_block)
        return ToolOutput(
            tool_name=name,
            blocks=blocks,
            raw_input=arguments,
            raw_output=result.text,
            is_error=result.is_error,
        )


class _Metadata(ToolMetadata):
    """The description of one of our tools."""

    schema: dict[str, Any]

    def get_parameters_dict(self) -> dict[str, Any]:
        """Return the schema of the arguments."""
        return self.schema

    @property
    def fn_schema_str(self) -> str:
        """The same as JSON."""
        return json.dumps(self.schema)


def _blocks_of(output: Any) -> list[Any]:
    """Return the blocks of an output. A dict or list, which LlamaIndex formats with `str`, becomes JSON."""
    value = output.raw_output
    if isinstance(value, (dict, list)) and len(output.blocks) == 1 and output.content == str(value):
        try:
            return [_text_block(to_text(value))]
        except InvalidArgument:
            return list(output.blocks)
    return list(output.blocks)


def _part(block: Any) -> str | bytes | None:
    if isinstance(block, TextBlock):
        return str(block.text)
    is_inline = isinstance(block, ImageBlock) and block.image is not None
    return block.resolve_image().read() if is_inline else None


def _text_block(text: str) -> Any:
    return TextBlock(text=text)


def _picture_block(picture: Picture) -> Any:
    if picture.is_image:
        return ImageBlock(image=picture.data, image_mimetype=picture.media_type)
    return DocumentBlock(data=picture.data, document_mimetype=picture.media_type)
