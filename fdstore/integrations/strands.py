"""Strands: a plugin that keeps long texts out of an agent's messages, and a storage for its own plugins.

    agent = Agent(plugins=[FdstorePlugin(fdstore.connect())])

Long results of tools and long prompts are stored and shown as their `fd_result`, JSON results indented. Our
tools that read them are offered, and the system prompt of each request says how. Images stay; a failed call
stays failed; the answer of an agent that another one delegates to stays as it is.

The process of an agent is named in its state (`agent.state`), which session managers and snapshots keep: the
id of its session and a random part (see `process_name_of_thread`). `Agent(storage=FdstoreStorage(store))`
keeps sessions, stashes and offloaded results of Strands in fdstore.
"""

from __future__ import annotations

import json
import re
import secrets
import weakref
from typing import Any, TypeVar, Unpack

from fdstore.errors import FDStoreError, InvalidArgument, MissingExtra, NotFound
from fdstore.integrations.shared.content_parts import convert_blocks
from fdstore.integrations.shared.named_process import NamedProcess, Work
from fdstore.integrations.thread_tools import (
    AnyStore,
    TurnOptions,
    TurnTools,
    thread_of_tool,
    within_tool_of,
)
from fdstore.model.records import TreeLimits
from fdstore.results.pictures import Picture
from fdstore.setup.optional_packages import how_to_install
from fdstore.store.contents import naming
from fdstore.store.contents.byte_reading import read_bytes
from fdstore.store.contents.contents import create
from fdstore.store.contents.descriptors import close
from fdstore.text.media_types import check_media_type
from fdstore.text.names import check_prefix, name_id
from fdstore.text.utf8 import is_utf8

try:
    from strands.hooks import AfterToolCallEvent, BeforeInvocationEvent
    from strands.middleware import ExecuteToolStage, InvokeModelStage
    from strands.plugins import Plugin, hook
    from strands.storage import Storage
    from strands.tools.tools import PythonAgentTool
    from strands.types.exceptions import StorageError
except ImportError as error:
    raise MissingExtra("strands-agents", how_to_install("strands")) from error

T = TypeVar("T")

THREAD = "fdstore_thread"
"""The key of an agent's state with the id that names its process."""


class FdstorePlugin(Plugin):
    r"""Keep long texts out of an agent's messages, and let it read them by reference.

    store    a store of `fdstore.connect`, whose calls run in threads; one of `fdstore.aio.connect` serves
             `agent.invoke_async` and `agent.stream_async` in its event loop alone
    options  see `TurnOptions`

    Raises `InvalidArgument`.

    >>> from strands import Agent
    >>> agent = Agent(plugins=[FdstorePlugin(store)])
    >>> "read_fd" in agent.tool_names
    True
    """

    name = "fdstore"

    def __init__(self, store: AnyStore, **options: Unpack[TurnOptions]) -> None:
        super().__init__()
        self._ours = TurnTools(store, **options)

    def init_agent(self, agent: Any) -> None:
        """Offer our tools to an agent, and tell its model about them."""
        agent.tool_registry.process_tools([self._tool(each, agent) for each in self._ours.definitions_for()])
        agent.add_middleware(InvokeModelStage.Input, self._instruct)
        agent.add_middleware(ExecuteToolStage, _share_thread)

    @hook
    async def store_prompt(self, event: BeforeInvocationEvent) -> None:
        """Store a long prompt of the user."""
        self._ours.see(_thread(event.agent), [*event.agent.messages, *(event.messages or [])])
        shown = []
        for message in event.messages or []:
            if message["role"] == "user":
                given = [{"type": "text", **b} if set(b) == {"text"} else b for b in message["content"]]
                blocks = await self._ours.run_async(self._ours.wrap_input(_thread(event.agent), given))
                content = [{"text": b["text"]} if b.get("type") == "text" else b for b in blocks]
                message = {**message, "content": content}
            shown.append(message)
        if shown:
            event.messages = shown

    @hook
    async def store_result(self, event: AfterToolCallEvent) -> None:
        """Store the long result of a tool."""
        if event.cancel_message is not None or getattr(event.selected_tool, "delegate", False):
            return
        blocks, thread = event.result["content"], _thread(event.agent)
        tool, call_id = event.tool_use["name"], event.tool_use["toolUseId"]
        operation = self._ours.offload_blocks(thread, blocks, _part, _text_block, tool, call_id)
        if (found := await self._ours.run_async(operation)) is not None:
            event.result = {**event.result, "content": found[0]}

    def _tool(self, definition: dict[str, Any], agent: Any) -> PythonAgentTool:
        known = weakref.ref(agent)

        async def run(tool_use: Any, **state: Any) -> Any:
            call_id = tool_use["toolUseId"]
            operation = self._ours.call(_thread(known()), tool_use["name"], tool_use["input"], call_id)
            result = await self._ours.run_async(operation)
            content = convert_blocks(result.content, _text_block, _picture_block)
            return {
                "toolUseId": call_id,
                "status": "error" if result.is_error else "success",
                "content": content,
            }

        name = definition["name"]
        schema = {"json": definition["input_schema"]}
        spec = {"name": name, "description": definition["description"], "inputSchema": schema}
        return PythonAgentTool(name, spec, run)

    def _instruct(self, context: Any) -> Any:
        """Tell the model about our tools, or leave them out before they are needed. A model that keeps the
        history itself is sent none, so that what is in it cannot be known."""
        is_known = not context.agent.model.stateful
        if is_known and not self._ours.offers(_thread(context.agent), context.messages):
            specs = [each for each in context.tool_specs if not self._ours.is_own(each["name"])]
            return context.replace(tool_specs=specs)
        before = context.system_prompt
        said = [{"text": before}] if isinstance(before, str) else [*(before or [])]
        return context.replace(system_prompt=[*said, {"text": self._ours.instructions}])


class FdstoreStorage(Storage):
    r"""A storage of Strands: keys are names of descriptors in one process, so that `fdstore ls PROCESS` and
    other clients read them. UTF-8 is stored as text. What Strands frames with a media type is stored without
    the frame, under that type.

    store    a store of `fdstore.connect`, or of `fdstore.aio.connect` for use in its event loop alone
    process  name of the process
    limits   of its tree, if it is made here

    Raises `InvalidArgument`.

    >>> import asyncio
    >>> storage = FdstoreStorage(store, process="sessions")
    >>> asyncio.run(storage.write("chat/notes.txt", b"plan\n"))
    >>> asyncio.run(storage.list("chat/")), store.process("sessions").read("name:chat/notes.txt").text
    (['chat/notes.txt'], 'plan\n')
    """

    def __init__(
        self, store: AnyStore, *, process: str = "strands", limits: TreeLimits | None = None
    ) -> None:
        self._process = NamedProcess(store, process, limits)

    async def write(self, key: str, data: bytes) -> None:
        """Store bytes under a key. Raises `StorageError`."""
        media_type, content = _unframed(data)
        source = None if media_type is None else FRAMED
        await self._run(
            lambda handle: create(handle, content, source, media_type=media_type, name=name_id(key))
        )

    async def read(self, key: str) -> bytes | None:
        """Return the bytes of a key, or None. Raises `StorageError`."""
        for _ in range(READ_ATTEMPTS):
            found = await self._run(lambda handle: naming.find(handle, key))
            if found is None:
                return None
            try:
                _, data = await self._run(lambda handle: read_bytes(handle, name_id(key)))
            except _Missing:
                return None
            if len(data) == found.bytes:  # else it was replaced meanwhile
                return _frame(found.media_type) + data if found.source == FRAMED else data
        raise StorageError(f"{key!r} is being written by others; read it again")

    async def delete(self, key: str) -> None:
        """Delete a key, if it is there. Raises `StorageError`."""
        try:
            await self._run(lambda handle: close(handle, name_id(key)))
        except _Missing:
            return

    async def list(self, query: str = "") -> list[str]:
        """Return the keys that begin with a text, sorted. Raises `StorageError`."""
        found = await self._run(lambda handle: naming.list_names(handle, check_prefix(query)))
        return sorted(descriptor.fd.removeprefix("name:") for descriptor in found)

    async def _run(self, work: Work[T]) -> T:
        try:
            return await self._process.run(work)
        except NotFound as error:
            raise _Missing(str(error)) from error
        except FDStoreError as error:
            raise StorageError(str(error)) from error


FRAMED = "strands-framed"
"""The source of a content that Strands framed."""

READ_ATTEMPTS = 5


class _Missing(StorageError):
    """The key is not there."""


async def _share_thread(context: Any, run: Any) -> Any:
    """Let agents that a tool runs share the process of its own."""
    thread, events = _thread(context.agent), run(context)
    while True:
        with within_tool_of(thread):  # and not while the reader of an event runs
            try:
                event = await anext(events)
            except StopAsyncIteration:
                return
        yield event


def _thread(agent: Any) -> str:
    if outer := thread_of_tool():
        return outer
    found = agent.state.get(THREAD)
    if found is None:
        found = f"{agent.session_id}-{secrets.token_hex(8)}"
        agent.state.set(THREAD, found)
    return str(found)


def _part(block: dict[str, Any]) -> str | bytes | None:
    if isinstance(block.get("text"), str):
        return str(block["text"])
    if "json" in block:
        return json.dumps(block["json"], indent=2, ensure_ascii=False, default=str)
    document = block.get("document") or {}
    media = block.get("image") or (document if document.get("format") == "pdf" else {})
    data = media.get("source", {}).get("bytes")
    return data if isinstance(data, bytes) else None


def _text_block(text: str) -> dict[str, Any]:
    return {"text": text}


def _picture_block(picture: Picture) -> dict[str, Any]:
    source = {"bytes": picture.data}
    form = picture.media_type.rpartition("/")[2]
    if picture.is_image:
        return {"image": {"format": form, "source": source}}
    return {"document": {"format": form, "name": "document", "source": source}}


_MEDIA_TYPE = re.compile(rb"[a-z]+/[a-z0-9.+-]+")


def _frame(media_type: str) -> bytes:
    encoded = media_type.encode("ascii")
    return len(encoded).to_bytes(2, "big") + encoded


def _unframed(data: bytes) -> tuple[str | None, str | bytes]:
    """Return the media type of framed data, if it is framed, and the content: text if it is UTF-8."""
    size = int.from_bytes(data[:2], "big")
    media_type = None
    if 2 < size < 128 and len(data) >= 2 + size and _MEDIA_TYPE.fullmatch(data[2 : 2 + size]):
        try:
            media_type = check_media_type(data[2 : 2 + size].decode("ascii"))
            data = data[2 + size :]
        except InvalidArgument:
            pass
    return media_type, data.decode("utf-8") if is_utf8(data) else data
