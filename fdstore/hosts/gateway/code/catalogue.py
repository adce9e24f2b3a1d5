"""The tools of servers as functions for code: their Python names, what they take, and whether code may call
them.

A tool that may change things is called by code only if the operator names it: a program can call it a
thousand times before anybody looks. What a tool does is what its server says of it; one that says nothing may
change things.
"""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from fdstore.hosts.gateway.code.signatures import Schema, shape_of, signature
from fdstore.hosts.gateway.group_names import SEPARATOR, WHOLE_NAME, public_name
from fdstore.programs.interpreter import prelude
from fdstore.text.similar_names import similar_names

RESULT, CONTENT = "result", "content"

MAX_FOUND = 20
"""Tools that one search shows."""

MAX_ANSWER_CHARS = 40_000
"""The characters of one answer to a search."""

MAX_LISTED_CHARS = 4000
"""The characters of the names in an error."""

LINE_CHARS = 200
"""The characters of a description that a search shows."""


class CodeTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool of a server as code calls it.

    name       its name in code, as `github.list_issues`
    tool       its name at the server
    allowed    whether code may call it
    """

    name: str
    tool: str
    description: str
    given: dict[str, Any]
    returned: dict[str, Any] | None
    allowed: bool

    @property
    def field(self) -> str:
        """The one field of its structured result, of which code gets the value; "" if there are others.
        Servers make such a result of what is no object: Python's a `result`, TypeScript's often a `content`
        of text."""
        fields = {} if self.returned is None else shape_of(self.returned).all_properties()
        if list(fields) == [RESULT]:
            return RESULT
        content = fields.get(CONTENT)
        is_text = isinstance(content, Mapping) and content.get("type") == "string"
        return CONTENT if is_text and len(fields) == 1 else ""

    @property
    def signature(self) -> str:
        return signature(self.name, self.given, self.returned, field=self.field)

    @property
    def line(self) -> str:
        """The tool as a search shows it."""
        first = " ".join(self.description.split("\n\n")[0].split())
        text = first if len(first) <= LINE_CHARS else first[: LINE_CHARS - 3] + "..."
        shown = f"{self.signature}\n    {text}" if text else self.signature
        return shown if self.allowed else f"{shown}\n    ({self.refusal})"

    @property
    def refusal(self) -> str:
        """The reason that code may not call a tool that is not allowed."""
        return f"it may change things; code may call it if the operator says --code-allow {self.name}"

    @property
    def documentation(self) -> str:
        """All that is known of the tool."""
        parts = [self.signature, self.description.strip()]
        if not self.allowed:
            parts.append(f"({self.refusal})")
        about = [
            f"{name}: {each['description']}"
            for name, each in shape_of(self.given).all_properties().items()
            if isinstance(each, Mapping) and each.get("description")
        ]
        parts.append("\n".join(about))
        if self.returned is not None:
            parts.append(f"Returns: {_as_json(self.returned)}")
        return "\n\n".join(filter(None, parts))


class Catalogue:
    """The tools of servers, by their names in code. `servers` have tools at times, if not now."""

    def __init__(self, tools: Iterable[CodeTool], servers: Iterable[str] = ()) -> None:
        self.tools = {tool.name: tool for tool in tools}
        self._servers = tuple(servers)

    @property
    def names(self) -> list[str]:
        return list(self.tools)

    @property
    def servers(self) -> list[str]:
        return list(dict.fromkeys([*self._servers, *(name.partition(".")[0] for name in self.tools)]))

    def find(self, query: str) -> str:
        """Return the tools that fit some words, the best first, a signature and a line each; the whole
        documentation of a tool that is named. A long answer is cut."""
        found = self._found(query)
        return found if len(found) <= MAX_ANSWER_CHARS else f"{found[:MAX_ANSWER_CHARS]}\n... (cut)"

    def _found(self, query: str) -> str:
        wanted = query.strip()
        named = self.tools.get(wanted) or next((t for t in self.tools.values() if wanted == t.tool), None)
        if named is not None:
            return named.documentation
        words = re.findall(r"\w+", wanted.lower())
        ranked = sorted(self.tools.values(), key=lambda tool: -_score(tool, words))  # a stable sort
        found = [tool for tool in ranked if not words or _score(tool, words) > 0]
        if not found:
            there_are = ", ".join(self.names[: 5 * MAX_FOUND]) or "none"
            return f"No tool fits {wanted!r}. There are: {there_are}"
        lines = [tool.line for tool in found[:MAX_FOUND]]
        if (left := len(found) - MAX_FOUND) > 0:
            others = ", ".join(tool.name for tool in found[MAX_FOUND : 6 * MAX_FOUND])
            lines.append(f"{left} more: {others}{', ...' if left > 5 * MAX_FOUND else ''}")
        return "\n".join(lines)

    def closest(self, name: str) -> str:
        """Return the signatures of the tools whose names are most like this one, as a sentence."""
        server, _, tool = name.partition(".")
        same = {each.partition(".")[2]: each for each in self.tools if each.startswith(f"{server}.")}
        if near := similar_names(tool, same):
            return f"did you mean {' or '.join(self.tools[same[each]].signature for each in near)}?"
        names = list(same.values()) or self.names
        listed = ", ".join(names[:MAX_FOUND])[:MAX_LISTED_CHARS]
        return f"there are: {listed}{', ...' if len(names) > MAX_FOUND else ''}"

    def servers_like(self, name: str) -> list[str]:
        """Return the servers whose names are like this one, the most similar first."""
        return similar_names(name, self.servers)

    def closest_server(self, near: Sequence[str], tool: str) -> str:
        """Return what may be meant by a tool of a server that does not exist, as a sentence. `near`: the
        servers with similar names."""
        having = [name for name in self.tools if name.partition(".")[2] == tool]
        meant = [f"{server}.{tool}" for server in near if f"{server}.{tool}" in self.tools] or having[:3]
        if meant:
            return f"did you mean {' or '.join(self.tools[name].signature for name in meant)}?"
        if near:
            return f"did you mean {' or '.join(near)}?"
        return f"there are: {', '.join(self.servers[:MAX_FOUND])[:MAX_LISTED_CHARS]}"


def _score(tool: CodeTool, words: Sequence[str]) -> int:
    """Return how well a tool fits: words of its name count more than those of its description."""
    name, text = tool.name.lower(), tool.description.lower()
    parts = set(re.findall(r"[a-z0-9]+", name))
    return sum(4 * (word in parts) + 2 * (word in name) + (word in text) for word in words)


def read_tools_of(
    servers: Sequence[str], listed: Sequence[Mapping[str, Any]], patterns: Sequence[str]
) -> list[CodeTool]:
    """Return the tools of several servers, each of whose names begins with that of its server."""
    whole = [{**each, "name": _whole_name(each)} for each in listed]
    found: list[CodeTool] = []
    for server in servers:
        prefix = server + SEPARATOR
        own = [
            {**each, "name": each["name"].removeprefix(prefix)}
            for each in whole
            if each["name"].startswith(prefix)
        ]
        found += read_tools(server, own, patterns, prefix)
    return found


def _whole_name(listed: Mapping[str, Any]) -> str:
    """Return the name of a tool before it was cut for the host."""
    name, meta = listed.get("name"), listed.get("_meta")
    whole = meta.get(WHOLE_NAME) if isinstance(meta, Mapping) else None
    if isinstance(whole, str) and public_name(whole) == name:
        return whole
    return name if isinstance(name, str) else ""


def read_tools(
    server: str, listed: Iterable[Mapping[str, Any]], patterns: Sequence[str], prefix: str = ""
) -> list[CodeTool]:
    """Return the tools of a server, given as its list has them. `server` is its name in code, `patterns` name
    the tools that code may call although they may change things; the server knows a tool by its name after
    `prefix`."""
    found: list[CodeTool] = []
    taken: set[str] = set()
    for each in listed:
        tool = each.get("name")
        if not isinstance(tool, str):
            continue
        name = f"{server}.{python_name(tool, taken)}"
        hints = each.get("annotations")
        reads = isinstance(hints, Mapping) and hints.get("readOnlyHint") is True
        is_named = any(fnmatchcase(name, p) or fnmatchcase(tool, p) for p in patterns)
        description, returned = each.get("description"), each.get("outputSchema")
        found.append(
            CodeTool(
                name=name,
                tool=prefix + tool,
                description=description if isinstance(description, str) else "",
                given=_schema(each.get("inputSchema")),
                returned=_schema(returned) if isinstance(returned, Mapping) else None,
                allowed=reads or is_named,
            )
        )
    return found


def python_name(name: str, taken: set[str]) -> str:
    """Return a name as Python can have it, and note it: one of its own beside those `taken`.

    >>> names = set()
    >>> [python_name(each, names) for each in ("get-sum", "get_sum", "2nd", "import")]
    ['get_sum', 'get_sum_2', '_2nd', 'import_']
    """
    made = re.sub(r"\W", "_", name)
    if not made or made[0].isdigit():
        made = f"_{made}"
    if keyword.iskeyword(made) or made in prelude.NAMES or made.startswith(prelude.HOST):
        made = f"{made}_"
    unique, number = made, 1
    while unique in taken:
        number += 1
        unique = f"{made}_{number}"
    taken.add(unique)
    return unique


def _as_json(schema: Schema) -> str:
    try:
        return json.dumps(schema, ensure_ascii=False)
    except RecursionError:
        return "a schema that is nested too deeply to be shown"


def _schema(value: Any) -> dict[str, Any]:
    found: Schema = value if isinstance(value, Mapping) else {}
    return dict(found)
