"""Pydantic AI: a capability that keeps long texts out of an agent's history, and a store for its own one.

    agent = Agent(model, capabilities=[FdstoreCapability(fdstore.connect())])

Long results of tools and long prompts are stored and shown as their `fd_result`, structured results as
indented JSON. Our tools that read them are offered with their instructions. Images stay. `ModelRetry`,
`ToolFailed` and other errors of tools pass as they are: they never reach the hook of a capability.

The process is that of the conversation, named by its `conversation_id` (see `process_name_of_thread`).
Pydantic AI keeps that id in the message history, so a run with the history of another one reads what that one
stored.

With the harness, `ToolOutputLimits(store=FdstoreOverflowStore(store))` keeps its spilled results in fdstore.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from typing import Any, Unpack

from fdstore.errors import FDStoreError, InvalidArgument, MissingExtra, NotFound
from fdstore.integrations.shared.close_oldest import KEEP_S, close_oldest
from fdstore.integrations.shared.content_parts import convert_blocks, shown_blocks
from fdstore.integrations.shared.named_process import NamedProcess
from fdstore.integrations.thread_tools import (
    AnyStore,
    TurnOptions,
    TurnTools,
    thread_of_tool,
    within_tool_of,
)
from fdstore.model.records import TreeLimits
from fdstore.setup.optional_packages import how_to_install
from fdstore.store.contents.byte_reading import read_bytes
from fdstore.store.contents.contents import create
from fdstore.text.names import MAX_KEY_BYTES, name_id
from fdstore.text.utf8 import is_utf8

try:
    from pydantic_ai.agent import UserPromptNode
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.exceptions import ToolFailed
    from pydantic_ai.messages import (
        MULTI_MODAL_CONTENT_TYPES,
        BinaryContent,
        LoadCapabilityReturnPart,
        TextContent,
        ToolReturn,
        ToolSearchReturnPart,
    )
    from pydantic_ai.tools import RunContext, ToolDefinition
    from pydantic_ai.toolsets import AbstractToolset
    from pydantic_ai.toolsets.abstract import ToolsetTool
    from pydantic_core import SchemaValidator, core_schema, to_json
except ImportError as error:
    raise MissingExtra("pydantic-ai-slim", how_to_install("pydantic-ai")) from error

NAME = "fdstore"
"""The id of the capability and its toolset, and the key in the metadata of tools and results."""

ANY_ARGUMENTS = SchemaValidator(core_schema.any_schema())
"""Our tools check their arguments themselves."""

KEPT_KINDS = frozenset({LoadCapabilityReturnPart.tool_kind, ToolSearchReturnPart.tool_kind})
"""Tools of the framework whose structured results it reads again from the history."""


class FdstoreCapability(AbstractCapability[Any]):
    r"""Keep long texts out of an agent's history, and let it read them by reference.

    store    a connected store: of `fdstore.connect`, whose calls run in threads, or of `fdstore.aio.connect`
             if all runs are in one event loop
    options  see `TurnOptions`

    Raises `InvalidArgument`.

    >>> from pydantic_ai import Agent
    >>> from pydantic_ai.models.test import TestModel
    >>> agent = Agent(TestModel(call_tools=[]), capabilities=[FdstoreCapability(store)])
    >>> result = agent.run_sync("a long line\n" * 1000)
    >>> result.all_messages()[0].parts[0].content.partition(" pages")[0]
    '<fd_result fd="fd:1"'
    """

    id = NAME

    def __init__(self, store: AnyStore, **options: Unpack[TurnOptions]) -> None:
        self._ours = TurnTools(store, **options)
        self._toolset = _ReadingToolset(self._ours)

    def get_instructions(self) -> str | Callable[[RunContext[Any]], str | None]:
        """Return the section of the system prompt about descriptors, or what returns it for a request."""
        if not self._ours.holds_back:
            return self._ours.instructions
        return lambda ctx: self._ours.instructions if _is_offering(self._ours, ctx) else None

    def get_toolset(self) -> AbstractToolset[Any]:
        """Return our tools."""
        return self._toolset

    async def before_node_run(self, ctx: RunContext[Any], *, node: Any) -> Any:
        """Store a long prompt of the user."""
        if not isinstance(node, UserPromptNode) or node.user_prompt is None:
            return node
        given = [node.user_prompt] if isinstance(node.user_prompt, str) else list(node.user_prompt)
        texts = [_input_text(item) for item in given]
        self._ours.see(_thread(ctx), [*(message.parts for message in ctx.messages), texts])
        shown = await self._ours.run_async(self._ours.wrap_input_texts(_thread(ctx), texts))
        if shown == texts:
            return node
        prompt = [
            _with_text(item, new)
            for item, old, new in zip(given, texts, shown, strict=True)
            if new or not old  # else it was stored with an earlier one
        ]
        return replace(node, user_prompt=prompt[0] if isinstance(node.user_prompt, str) else prompt)

    async def wrap_tool_execute(
        self, ctx: RunContext[Any], *, call: Any, tool_def: ToolDefinition, args: dict[str, Any], handler: Any
    ) -> Any:
        """Let agents that a tool runs share the process of this one."""
        with within_tool_of(_thread(ctx)):
            return await handler(args)

    async def after_tool_execute(
        self, ctx: RunContext[Any], *, call: Any, tool_def: ToolDefinition, args: dict[str, Any], result: Any
    ) -> Any:
        """Store a long result, and with it what a tool adds to it in a message of the user."""
        value = result.return_value if isinstance(result, ToolReturn) else result
        if _is_kept(tool_def) or value is None or isinstance(value, BaseException):
            return result
        added = _added(result)
        items = [*(value if _is_content(value) else [value]), *added]
        of_value = len(items) - len(added)
        parts = [_part(item) for item in items[:of_value]] + [_user_part(item) for item in added]
        thread = _thread(ctx)
        operation = self._ours.offload_parts(thread, parts, call.tool_name, call.tool_call_id)
        found = await self._ours.run_async(operation)
        if found is None or found.content == [part if isinstance(part, str) else None for part in parts]:
            return result
        shown = shown_blocks(items[:of_value], parts[:of_value], found.content[:of_value], str)
        content = shown[0] if len(shown) == 1 and not _is_content(value) else shown
        fd = None if found.descriptor is None else found.descriptor.fd
        metadata = {NAME: {"process": self._ours.process_of(thread), "fd": fd}}
        if not isinstance(result, ToolReturn):
            return ToolReturn(return_value=content, metadata=metadata)
        more = shown_blocks(added, parts[of_value:], found.content[of_value:], str)
        return replace(
            result,
            return_value=content,
            content=result.content if more == added else more or None,
            metadata=result.metadata or metadata,
        )


class _ReadingToolset(AbstractToolset[Any]):
    """Our tools. What goes wrong is a failed result, which costs none of the tool's retries."""

    def __init__(self, ours: TurnTools) -> None:
        self._ours = ours

    @property
    def id(self) -> str:
        return NAME

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        tools: dict[str, ToolsetTool[Any]] = {}
        for each in self._ours.definitions_for("anthropic") if _is_offering(self._ours, ctx) else ():
            definition = ToolDefinition(
                name=each["name"],
                description=each["description"],
                parameters_json_schema=each["input_schema"],
                metadata={NAME: True},
            )
            tools[definition.name] = ToolsetTool(
                toolset=self, tool_def=definition, max_retries=1, args_validator=ANY_ARGUMENTS
            )
        return tools

    async def call_tool(self, name: str, tool_args: Any, ctx: RunContext[Any], tool: ToolsetTool[Any]) -> Any:
        operation = self._ours.call(_thread(ctx), name, tool_args, ctx.tool_call_id)
        result = await self._ours.run_async(operation)
        if result.is_error:
            raise ToolFailed(result.text)
        if isinstance(result.content, str):
            return result.content
        return convert_blocks(
            result.content, str, lambda each: BinaryContent(each.data, media_type=each.media_type)
        )


class FdstoreOverflowStore:
    r"""A store of spilled results for `ToolOutputLimits` of the harness: named descriptors of one process,
    text as text. `fdstore ls PROCESS` shows them, and any other client reads them.

    store    a store of `fdstore.connect`, or of `fdstore.aio.connect` if all runs are in one event loop
    process  name of the process
    limits   of its tree, if it is made here
    keep_s   where the tree is full, results older than this are closed, the oldest first, in seconds

    Only what it wrote is read by a handle, which models choose. Raises `InvalidArgument`.

    >>> import asyncio
    >>> overflow = FdstoreOverflowStore(store, process="spilled")
    >>> handle = asyncio.run(overflow.write("run/call_1.0", b"a long result\n"))
    >>> handle, store.process("spilled").read(handle).text
    ('name:run/call_1.0', 'a long result\n')
    """

    def __init__(
        self,
        store: AnyStore,
        *,
        process: str = "pydantic-ai",
        limits: TreeLimits | None = None,
        keep_s: float = KEEP_S,
    ) -> None:
        self._process = NamedProcess(
            store, process, limits, lambda handle: close_oldest(handle, keep_s, "name:")
        )

    async def write(self, key: str, data: bytes) -> str:
        """Store bytes under a key, and return the handle. Raises `OSError` if the store fails."""
        content = data.decode("utf-8") if is_utf8(data) else data
        if len(key.encode("utf-8", "surrogatepass")) > MAX_KEY_BYTES or not key.isprintable():
            key = sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
        try:
            stored = await self._process.run(lambda handle: create(handle, content, name=name_id(key)))
        except FDStoreError as error:
            raise OSError(str(error)) from error
        return stored.fd

    async def read(self, handle: str) -> bytes:
        """Return the bytes of a handle. Raises `FileNotFoundError`, and `OSError` if the store fails."""
        try:
            fd = name_id(handle.removeprefix("name:"))
            _, data = await self._process.run(lambda handle: read_bytes(handle, fd))
        except (NotFound, InvalidArgument) as error:
            raise FileNotFoundError(str(error)) from error
        except FDStoreError as error:
            raise OSError(str(error)) from error
        return data


def _thread(ctx: RunContext[Any]) -> str:
    return thread_of_tool() or str(ctx.conversation_id or ctx.run_id)


def _is_offering(ours: TurnTools, ctx: RunContext[Any]) -> bool:
    return ours.offers(_thread(ctx), [message.parts for message in ctx.messages])


def _is_kept(tool_def: ToolDefinition) -> bool:
    """Return whether the results of a tool stay as they are: of ours, also under a prefix."""
    return NAME in (tool_def.metadata or {}) or tool_def.tool_kind in KEPT_KINDS


def _is_content(value: Any) -> bool:
    """Return whether a result is a list with images or other media, each of which is judged on its own."""
    return isinstance(value, (list, tuple)) and any(isinstance(v, MULTI_MODAL_CONTENT_TYPES) for v in value)


def _added(result: Any) -> list[Any]:
    """Return what a tool adds to its result, for a message of the user."""
    if not isinstance(result, ToolReturn) or result.content is None:
        return []
    return [result.content] if isinstance(result.content, str) else list(result.content)


def _user_part(item: Any) -> str | bytes | None:
    text = _input_text(item)
    return text if text is not None or not isinstance(item, BinaryContent) else _part(item)


def _part(item: Any) -> str | bytes | None:
    if isinstance(item, str):
        return item
    if isinstance(item, BinaryContent):
        return item.data if item.is_image or item.media_type == "application/pdf" else None
    if isinstance(item, MULTI_MODAL_CONTENT_TYPES):
        return None
    if isinstance(item, (bytes, bytearray)):
        return bytes(item).decode("utf-8", "backslashreplace")
    return to_json(item, indent=2, fallback=repr, bytes_mode="base64").decode("utf-8")


def _input_text(item: Any) -> str | None:
    if isinstance(item, TextContent):
        item = item.content
    return item if isinstance(item, str) else None


def _with_text(item: Any, text: str | None) -> Any:
    if isinstance(item, TextContent):
        return replace(item, content=text)
    return text if isinstance(item, str) else item
