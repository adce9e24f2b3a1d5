"""Claude Agent SDK: keep long outputs of all tools of an agent, built in or of MCP, out of its context.

    ours = FdstoreHooks(await fdstore.aio.connect(), "chat-7")
    options = ours.options(ClaudeAgentOptions(allowed_tools=["Bash"]))
    async for message in query(prompt=await ours.prompt(question), options=options):
        ...

A hook replaces the output before the model sees it; our own tools are an MCP server in this program. The
thread is the one of the `FdstoreHooks`, so make one for each conversation, and give its id again to resume
it. What Claude Code keeps from its hooks stays as it is: outputs of failed tools and results with images of
more than 25,000 tokens, which it cuts itself, and files that the model reads.
"""

from __future__ import annotations

import asyncio
import logging
import os
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from fdstore.errors import FDStoreError, InvalidArgument, MissingExtra
from fdstore.hosts.hooks import claude
from fdstore.hosts.hooks.output import ToolOutput
from fdstore.hosts.hooks.persisted_file import whole_of
from fdstore.integrations.shared.content_parts import convert_blocks
from fdstore.integrations.thread_tools import AnyStore, ThreadOptions, ThreadTools, new_thread
from fdstore.results.config import FDConfig
from fdstore.results.content_blocks import text_block
from fdstore.results.pictures import Picture
from fdstore.setup.optional_packages import how_to_install
from fdstore.setup.settings import HOST_READ_CHARS

try:
    from claude_agent_sdk import ClaudeAgentOptions, HookMatcher
    from mcp.server import Server
    from mcp.types import CallToolResult, ListToolsResult, Tool
except ImportError as error:
    raise MissingExtra("claude_agent_sdk", how_to_install("claude-agent-sdk")) from error

log = logging.getLogger("fdstore.integrations")

SERVER = "fdstore"

MAX_FILE_BYTES = 64 << 20
"""The largest output in a file that is read."""


class FdstoreHooks:
    """The hook and the tools of one conversation of an agent.

    store    a connected store; of `fdstore.aio.connect` on the event loop of the agent, or of
             `fdstore.connect`, which is used in threads
    thread   id of the conversation, which has a process of its own. None: a new one
    options  see `ThreadOptions`; `config` by default limits a read to 45,000 characters, since Claude Code
             writes longer results to files

    Raises `InvalidArgument`.

    >>> from claude_agent_sdk import ClaudeAgentOptions
    >>> options = FdstoreHooks(store, "chat-7").options(ClaudeAgentOptions(max_turns=9))
    >>> options.allowed_tools[0], list(options.hooks), options.max_turns
    ('mcp__fdstore__read_fd', ['PostToolUse'], 9)
    """

    def __init__(self, store: AnyStore, thread: str | None = None, **options: Unpack[ThreadOptions]) -> None:
        config = options.get("config") or FDConfig(max_read_chars=HOST_READ_CHARS, json_pretty_print=True)
        options["config"] = config
        self._ours = ThreadTools(store, **options)
        self._policies = config.tool
        self._thread = thread or new_thread()
        self._config_directory = Path()

    def options(self, options: ClaudeAgentOptions | None = None) -> ClaudeAgentOptions:
        """Return options with the hook, our tools (allowed), and what the model is to know of them at the end
        of the system prompt. Raises `InvalidArgument` if `mcp_servers` or the prompt is kept in a file."""
        options = options or ClaudeAgentOptions()
        if not isinstance(options.mcp_servers, dict):
            raise InvalidArgument(
                "options", "mcp_servers must be a dict: a configuration file cannot be extended"
            )
        named = options.env.get("CLAUDE_CONFIG_DIR") or os.environ.get("CLAUDE_CONFIG_DIR")
        self._config_directory = Path(named or Path(options.env.get("HOME") or Path.home(), ".claude"))
        ours = [f"mcp__{SERVER}__{each['name']}" for each in self._ours.definitions_for("mcp")]
        hooks = dict(options.hooks or {})
        hooks["PostToolUse"] = [*hooks.get("PostToolUse", ()), HookMatcher(hooks=[self.after_tool])]
        return replace(
            options,
            hooks=hooks,
            mcp_servers={**options.mcp_servers, SERVER: self._server()},
            allowed_tools=[*options.allowed_tools, *ours],
            system_prompt=_extended(options.system_prompt, self._ours.instructions),
        )

    async def prompt(self, text: str) -> str:
        """Return a prompt of the user as the model is to see it: a long one is stored."""
        self._ours.see(self._thread, text)
        return str(await self._ours.run_async(self._ours.wrap_input(self._thread, text)))

    async def after_tool(self, event: Any, tool_use_id: str | None, context: Any) -> Any:
        """Answer the hook PostToolUse: `{}` leaves the output as it is."""
        output = claude.output_of(event, 0)
        if output is None:
            return {}
        tool = str(event["tool_name"])
        source = tool if tool in self._policies else output.source
        value: Any = output.value
        if output.file is not None:
            value = await asyncio.to_thread(_value_in_file, output, self._config_directory)
        if not value:
            return {}
        operation = self._ours.offload(self._thread, value, source, output.call_id)
        found = await self._ours.run_async(operation)
        return output.answer(found.content) if found and found.descriptor else {}

    def _server(self) -> Any:
        """Return the server with our tools. Claude Code hides tools of servers behind a search unless a tool
        asks to be in the prompt, for which a server that the SDK makes has no room."""
        tools = [
            Tool.model_validate({**each, "_meta": {"anthropic/alwaysLoad": True}})
            for each in self._ours.definitions_for("mcp")
        ]

        async def list_tools(context: Any, params: Any) -> ListToolsResult:
            return ListToolsResult(tools=tools)

        async def call_tool(context: Any, params: Any) -> CallToolResult:
            operation = self._ours.call(self._thread, params.name, params.arguments or {})
            result = await self._ours.run_async(operation)
            content = convert_blocks(result.content, text_block, _picture_block)
            return CallToolResult.model_validate({"content": content, "isError": result.is_error})

        server = Server(SERVER, on_list_tools=list_tools, on_call_tool=call_tool)
        return {"type": "sdk", "name": SERVER, "instance": server}


def _value_in_file(output: ToolOutput, directory: Path) -> str | list[Any] | None:
    """Return the whole of an output that Claude Code has cut and kept in a file, None if it is too large."""
    try:
        with whole_of(output, directory) as whole:
            if isinstance(whole, (str, list)):
                return whole
            data = b"" if output.is_json else whole.read(MAX_FILE_BYTES + 1)
    except FDStoreError as error:
        log.warning("the output of %s stays as it is: %s", output.source, error)
        return None
    return data.decode("utf-8", "backslashreplace") if len(data) <= MAX_FILE_BYTES else None


def _picture_block(picture: Picture) -> dict[str, Any]:
    """Return a picture as a block of MCP. There is none for a PDF."""
    if not picture.is_image:
        return text_block(f"A {picture.media_type} cannot be shown here; save it to a file.")
    return {"type": "image", "data": picture.base64, "mimeType": picture.media_type}


def _extended(prompt: Any, instructions: str) -> Any:
    match prompt:
        case None:
            return instructions
        case str():
            return f"{prompt}\n\n{instructions}"
        case {"type": "preset"}:
            return {**prompt, "append": "\n\n".join(filter(None, [prompt.get("append"), instructions]))}
        case {"type": "custom", "prompt": str(text)}:
            return {**prompt, "prompt": f"{text}\n\n{instructions}"}
    raise InvalidArgument("options", "system_prompt is kept in a file, which cannot be extended")
