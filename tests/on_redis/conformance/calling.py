"""Calls of tools in the tests of this folder: toolsets, what is called, and what is shown or stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fdstore import FDConfig, Toolset
from fdstore.client import Process, Store
from fdstore.results.context import Context
from fdstore.results.tool_outcome import Started
from fdstore.tools import arguments
from fdstore.tools.catalogue import BUILT_IN, FD_TOOLS
from fdstore.tools.needs import EXPORT_ROOT
from fdstore.tools.toolbox import Toolbox
from fdstore.toolset.build import context_for, linked_programs
from tests.elements import Element, only

TEXT_TOOLS = [
    name for name, tool in BUILT_IN.items() if name in FD_TOOLS and tool.needs in (None, EXPORT_ROOT)
]
"""The tools on descriptors that need no extra package."""

PROCESS_TOOLS = ["spawn", "pipe", "wait", "kill"]
SMALL = FDConfig(max_direct_output_chars=20, default_page_size=10, max_input_chars=20, max_expand_chars=50)
LINES = "".join(f"line {number}\n" for number in range(1, 101))


def context_of(
    proc: Process, enabled: Sequence[str], *, programs: Mapping[str, Path] = {}, **options: Any
) -> Context:
    """Return the context of a process whose wake-ups go nowhere."""
    options = {"config": None, "linked": linked_programs(programs), **options}
    return context_for(proc.handle, "fdstore", enabled=enabled, wake=lambda process: None, **options)


def echo(text: str) -> str:
    """Repeat the words."""
    return text


def show(tools: Toolset, name: str, **arguments: Any) -> str:
    """Return what a call shows."""
    return tools.call(name, arguments).content


def show_element(tools: Toolset, name: str, **arguments: Any) -> Element:
    """Return the only element that a call shows."""
    return only(show(tools, name, **arguments))


def fields_of(name: str) -> dict[str, dict[str, Any]]:
    """Return the JSON schema of each argument of a built-in tool."""
    found: dict[str, dict[str, Any]] = arguments.schema_of(BUILT_IN[name].arguments)["properties"]
    return found


def required_of(name: str) -> list[str]:
    """Return the arguments that a built-in tool needs."""
    return list(arguments.schema_of(BUILT_IN[name].arguments)["required"])


def schema_of(tools: Toolset, name: str) -> dict[str, Any]:
    """Return the schema of the arguments of a tool."""
    [found] = [each["input_schema"] for each in tools.definitions if each["name"] == name]
    return dict(found)


def stored(proc: Process, shown: str) -> str:
    """Return the stored text of an `fd_result`."""
    result = only(shown)
    assert result.name == "fd_result"
    return proc.read(result["fd"], read_all=True).text


def started(store: Store, context: Context, call: str | None = None, **arguments: Any) -> Process:
    """Return the child started by a call of spawn."""
    outcome = store.run(Toolbox(context).start("spawn", arguments, call))
    assert isinstance(outcome, Started), outcome
    [child] = outcome.processes
    return store.process(child)
