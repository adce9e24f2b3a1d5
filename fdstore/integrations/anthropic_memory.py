r"""The memory tool of the Messages API, kept in a process: one memory for any number of agents and machines.

A file is a named content, `name:/memories/plan.md`, so `read_fd` and `search_fd` of a `Toolset` of the same
process read it too. The model reads the same words as with the SDK's own tool on local files. Agents that
share the process may edit a file at the same time, and no edit is lost; see `memory_commands`.
"""

from __future__ import annotations

from typing import Any

from fdstore.client._async.process import Process as AsyncProcess
from fdstore.client._sync.process import Process
from fdstore.errors import FDStoreError, MissingExtra
from fdstore.integrations.shared.memory_commands import CommandFailed, clear, run_command
from fdstore.setup.optional_packages import how_to_install
from fdstore.wire.operation import Operation

try:
    from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
except ImportError as error:
    raise MissingExtra("anthropic", how_to_install("anthropic-memory")) from error


class MemoryTool(BetaAbstractMemoryTool):
    """The memory tool for `anthropic.Anthropic`, kept in a process.

    process        agents with the same one share the memory
    cache_control  as for other tools

    Each method returns the text for the model, and raises the SDK's `ToolError` for a mistake of the model
    and if the store cannot be reached.

    >>> memory = MemoryTool(store.process("team-memory"))
    >>> memory.call({"command": "create", "path": "/memories/plan.md", "file_text": "Ship it.\\n"})
    'File created successfully at: /memories/plan.md'
    >>> memory.process.read("name:/memories/plan.md").text
    'Ship it.\\n'
    """

    def __init__(self, process: Process, *, cache_control: Any = None) -> None:
        super().__init__(cache_control=cache_control)
        self.process = process

    def execute(self, command: Any) -> str:
        """Run a command of the model."""
        return self.process.store.run(_for_the_runner(run_command(self.process.handle, command)))

    view = create = str_replace = insert = delete = rename = execute

    def clear_all_memory(self) -> str:
        """Delete every file."""
        return self.process.store.run(_for_the_runner(clear(self.process.handle)))


class AsyncMemoryTool(BetaAsyncAbstractMemoryTool):
    """The memory tool for `anthropic.AsyncAnthropic`, kept in a process of `fdstore.aio`: as `MemoryTool`."""

    def __init__(self, process: AsyncProcess, *, cache_control: Any = None) -> None:
        super().__init__(cache_control=cache_control)
        self.process = process

    async def execute(self, command: Any) -> str:
        """Run a command of the model."""
        return await self.process.store.run(_for_the_runner(run_command(self.process.handle, command)))

    view = create = str_replace = insert = delete = rename = execute

    async def clear_all_memory(self) -> str:
        """Delete every file."""
        return await self.process.store.run(_for_the_runner(clear(self.process.handle)))


def _for_the_runner(operation: Operation[str]) -> Operation[str]:
    """Raise errors as the runner shows them to a model."""
    try:
        return (yield from operation)
    except (CommandFailed, FDStoreError) as error:
        raise ToolError(str(error)) from error
