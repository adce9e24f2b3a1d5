"""The built-in tools: the files of `tools.built_in`, in the order of their positions.

A tool is added by its file alone. The sets here follow from the facts of the tools.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Collection, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, cast

from fdstore.elements.stored_message import Offer
from fdstore.errors import InvalidArgument, quoted
from fdstore.results.context import Context
from fdstore.tools import built_in
from fdstore.tools.tool import EFFECTS, Tool

if TYPE_CHECKING:
    from fdstore.results.config import FDSection
    from fdstore.tools.tool_names import ToolName


def _find() -> dict[str, Tool]:
    names = [module.name for module in pkgutil.iter_modules(built_in.__path__)]
    tools: list[Tool] = [import_module(f"{built_in.__name__}.{name}").TOOL for name in names]
    return {tool.name: tool for tool in sorted(tools, key=lambda tool: (tool.position, tool.name))}


BUILT_IN: Mapping[str, Tool] = _find()
"""The built-in tools by name."""

FD_TOOLS = frozenset(name for name, tool in BUILT_IN.items() if tool.works_on == "descriptors")
"""Tools on descriptors; enabling any of them turns descriptors on."""

HELD_BACK = frozenset(name for name, tool in BUILT_IN.items() if tool.held_back)
"""The tools that have no use without descriptors."""

PROCESS_TOOLS = BUILT_IN.keys() - FD_TOOLS
"""Tools on processes; they also work with descriptors off."""

READING_TOOLS = cast(
    "tuple[ToolName, ...]", tuple(name for name, tool in BUILT_IN.items() if tool.permission == "read")
)
"""The tools that a model needs to read what was stored; offered where another program runs its tools."""


_BY_EFFECT = sorted(BUILT_IN.values(), key=lambda tool: EFFECTS.index(tool.effect))


def has_descriptors(config: FDSection, tools: Collection[str]) -> bool:
    """Return whether an agent has descriptors: as `config` says, else if one of its tools works on them."""
    return config.enabled if config.enabled is not None else not FD_TOOLS.isdisjoint(tools)


def check_enabled(enabled: Sequence[str]) -> frozenset[str]:
    """Return a set of built-in tool names. Raises `InvalidArgument` for an unknown one, listing them all."""
    if isinstance(enabled, str):
        raise InvalidArgument("enabled", 'a list of names is needed, as ["read_fd"]')
    for name in enabled:
        if name not in BUILT_IN:
            there_are = ", ".join(BUILT_IN)
            raise InvalidArgument("enabled", f"there is no tool {quoted(name)}; there are: {there_are}")
    return frozenset(enabled)


def usable_tools(context: Context) -> dict[str, Tool]:
    """Return the enabled tools that can work in this context, in their order."""
    return {
        name: tool for name, tool in BUILT_IN.items() if name in context.enabled and tool.is_usable(context)
    }


def offers_of(names: Collection[str]) -> tuple[Offer, ...]:
    """Return how these tools offer themselves for a stored result: those that change least first."""
    return tuple(tool.offer for tool in _BY_EFFECT if tool.name in names and tool.offer is not None)
