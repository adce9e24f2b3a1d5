"""A private store with a few contents, in which the pages' examples are made by real calls."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from typing import Any

import msgspec

import fdstore
from fdstore.client import Store
from fdstore.local.redis_server import PrivateServer
from fdstore.model.records import TreeLimits
from fdstore.results.context import Context, Linked
from fdstore.results.tool_outcome import ToolResult
from fdstore.store.processes.processes import StoredProgram
from fdstore.tools.catalogue import BUILT_IN
from fdstore.tools.toolbox import Toolbox
from fdstore.toolset.build import DEFAULT_TOOLS, context_for, do_nothing

LOG = "".join(f"test {each} {'FAILED' if each % 40 == 0 else 'passed'}\n" for each in range(1, 2001))

LINKED = {"expert": Linked(key="expert", description="knows the law", digest="d", bundle="{}")}


class Example:
    """A process `triage` with all tools, and one of a tree that is full."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.process = store.process("triage")
        self.tools = fdstore.Toolset(self.process, enabled=["read_fd", "search_fd"])
        self.toolbox = self._toolbox(self.process, "triage")
        limits = TreeLimits(tree_live=1, tree_fds=1)
        full = store.process("full", limits=limits)
        full.create("the only content")
        self.full_toolbox = self._toolbox(full, "full")

    def call(self, tool: str, **arguments: Any) -> ToolResult:
        """Run a call of the process `triage`."""
        result: ToolResult = self.store.run(self.toolbox.call(tool, arguments))
        return result

    def call_in_full_tree(self, tool: str, **arguments: Any) -> ToolResult:
        """Run a call of the process of the full tree."""
        result: ToolResult = self.store.run(self.full_toolbox.call(tool, arguments))
        return result

    def _toolbox(self, process: fdstore.Process, program: str) -> Toolbox:
        context = context_for(
            process.handle,
            self.store.prefix,
            enabled=DEFAULT_TOOLS,
            config=None,
            linked=LINKED,
            wake=do_nothing,
            export_root="out",
            preload_root="docs",
            commands=["grep", "sort"],
        )
        return Toolbox(with_all_tools(context, program))


def with_all_tools(context: Context, program: str) -> Context:
    """Return the context of an agent, which has `fork` too."""
    own = StoredProgram(program, "", "")
    return msgspec.structs.replace(
        context, enabled=frozenset(BUILT_IN), own_program=own, linked=LINKED, commands=("grep", "sort")
    )


@contextmanager
def example() -> Iterator[Example]:
    """Run an example in a directory of its own, on a server of its own."""
    with tempfile.TemporaryDirectory() as directory, chdir(directory), PrivateServer() as server:
        os.mkdir("docs")
        with fdstore.connect(server.url) as store:
            yield Example(store)
