"""Our tools in the list of a server, under names that none of its own has.

They stand on its first page, since some hosts read no other. A tool on a later page that has the name of one
of ours is left out there; with the next list it is there, and ours has another name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from fdstore.hosts.gateway.json_parts import (
    Json,
    encode,
    items_of,
    parts_of,
    text_at,
    value_of,
)
from fdstore.hosts.gateway.options import GatewayOptions, ToolChoice

if TYPE_CHECKING:
    from fdstore.tools.tool_names import ToolName

PREFIX = "fdstore_"

WRITING_TOOLS: tuple[ToolName, ...] = ("put_fd", "write_fd", "close_fd")
"""What `--tools all` adds to those that read: tools that need no further permission."""

CODE_TOOLS = RUN_PYTHON, FIND_TOOLS = "run_python", "find_tools"
"""Those that `--code` adds."""

_META = {"anthropic/alwaysLoad": True, "anthropic/maxResultSizeChars": 100_000}
"""Claude Code loads the tools of a server when the model searches for them, and it would not know that it has
to; and it writes results of more than 50 000 characters to a file, which escaping may exceed."""


def offered_tools(options: GatewayOptions) -> Sequence[ToolName]:
    """Return those of our tools that work on descriptors and that a gateway offers."""
    chosen = _choice(options)
    if chosen == "none":
        return ()
    from fdstore.tools.catalogue import READING_TOOLS  # the first answer to a host need not wait for it

    return READING_TOOLS if chosen == "read" else (*READING_TOOLS, *WRITING_TOOLS)


def has_own_tools(options: GatewayOptions) -> bool:
    """Return whether a gateway offers any tool of ours."""
    return _choice(options) != "none" or options.code is not None


def _choice(options: GatewayOptions) -> ToolChoice:
    return options.tools or ("none" if options.code == "only" else "read")


class ToolOffer:
    """The tools of a server as far as they are known, and under which names one host sees ours beside them.

    options         of the gateway: which of ours are offered; without any, another server offers the host
                    those that read
    ours_only       the host sees no tools of the server
    host_has_tools  whether this host was shown ours, or has called one: a result becomes a descriptor only
                    for a host that can read it
    """

    def __init__(self, options: GatewayOptions, server_tools: set[str] | None = None) -> None:
        self._options = options
        self.ours_only = options.code == "only"
        self._server_tools = set() if server_tools is None else server_tools
        self.host_has_tools = not has_own_tools(options)

    @cached_property
    def _tools(self) -> Sequence[str]:
        return (*offered_tools(self._options), *(() if self._options.code is None else CODE_TOOLS))

    @cached_property
    def names(self) -> Mapping[str, str]:
        """Our tools by the names that the host was shown."""
        return choose_names(self._server_tools, self._tools)

    def for_host(self) -> ToolOffer:
        """Return the offer for another host of the same server."""
        return ToolOffer(self._options, self._server_tools)

    def note_page(self, names: Iterable[str], *, is_first: bool) -> None:
        """Note the tools on a page that goes to the host. They are never forgotten, and names of ours change
        with a first page alone: the host was shown those that it has."""
        self._server_tools |= set(names)
        if is_first:
            self.names = choose_names(self._server_tools, self._tools)
            self.host_has_tools = True


def tool_names(result: Json) -> list[str] | None:
    """Return the names in one page of a tool list; None if it is not one."""
    tools = items_of((parts_of(result) or {}).get("tools", b""))
    if tools is None:
        return None
    names = map(_name_of, tools)
    return [name for name in names if name is not None]


def _name_of(tool: Json) -> str | None:
    return text_at(parts_of(tool) or {}, "name")


def choose_names(taken: Iterable[str], tools: Sequence[str]) -> dict[str, str]:
    """Return our tools by the name that each is offered under: its own, or one with a prefix if the server
    has a tool of that name.

    >>> choose_names({"read_fd"}, ["read_fd", "search_fd"])
    {'fdstore_read_fd': 'read_fd', 'search_fd': 'search_fd'}
    """
    used = set(taken)
    chosen: dict[str, str] = {}
    for tool in tools:
        name: str = tool
        while name in used:
            name = PREFIX + name
        chosen[name] = tool
    return chosen


def with_our_tools(
    result: Json,
    definitions: Sequence[Mapping[str, Any]],
    names: Mapping[str, str],
    *,
    is_first: bool,
    ours_only: bool = False,
) -> dict[str, Any] | None:
    """Return one page of a tool list without `outputSchema`, and the first page with ours; with `ours_only`
    it is the only one. None if it is not a tool list. A host would hold a result that is a descriptor against
    the schema."""
    fields = parts_of(result)
    tools = items_of(fields["tools"]) if fields and "tools" in fields else None
    if fields is None or tools is None:
        return None
    kept = [_without_output_schema(tool) for tool in tools if is_first or _name_of(tool) not in names]
    if ours_only:
        kept = []
        fields.pop("nextCursor", None)
    if is_first:
        offered = {tool: name for name, tool in names.items()}
        for definition in definitions:
            if definition["name"] not in offered:
                continue
            renamed = value_of(rename(encode(definition), names))
            renamed["name"] = offered[definition["name"]]
            hints = definition.get("annotations") or _hints(definition["name"])
            kept.append(encode({**renamed, "annotations": hints, "_meta": _META}))
    return {**fields, "tools": kept}


def _hints(tool: str) -> dict[str, bool]:
    from fdstore.tools.catalogue import BUILT_IN

    effect = BUILT_IN[tool].effect
    return {
        "readOnlyHint": effect == "reads",
        "destructiveHint": effect == "destroys",
        "openWorldHint": False,
    }


def rename(text: Json, names: Mapping[str, str]) -> bytes:
    """Return a text with our tools called by the names that they are offered under."""
    changed = {tool.encode(): name.encode() for name, tool in names.items() if tool != name}
    if not changed:
        return bytes(text)
    words = re.compile(rb"\b(" + b"|".join(changed) + rb")\b")
    return words.sub(lambda found: changed[found[1]], bytes(text))


def _without_output_schema(tool: Raw) -> Raw:
    fields = parts_of(tool)
    if fields is None or "outputSchema" not in fields:
        return tool
    del fields["outputSchema"]
    return encode(fields)
