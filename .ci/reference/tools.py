"""The page of tools: what a model gets of each, and the errors that real calls return."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from fdstore.errors import all_errors
from fdstore.results.tool_outcome import ToolResult
from fdstore.tools.catalogue import BUILT_IN
from reference import markdown
from reference.example_store import LOG, Example, example

INTRODUCTION = """
The tools that a model calls, with the names, descriptions and JSON schemas that it gets. A program enables
them in [`[tools] enabled`](programs.md#tools), your own loop with `fdstore.Toolset(proc, enabled=[...])`;
`fdstore mcp` offers those that its `--allow` permits, the adapters of frameworks the reading tools. A tool
is offered only where it can work: `spawn` where programs are linked, `pipe` where commands are allowed,
`fd_to_file` where an export root is named, `fork` to agents of program files only.

A mistake of the model is a result with `is_error`, an [`fd_error`](elements.md#fd_error) that says what to
do. Each tool below shows the types that it returns, with a call that causes them and the message. Any tool
returns `invalid_argument` for an unknown or wrong argument and, if it stores something, `quota_exceeded` or
`store_full` if the store is full. Numbers may be sent as `3`, `3.0` or `"3"`; a descriptor as `fd:3`,
`fd-3` or `3`.
"""

STOPPED = """
Errors that no model can correct are raised to the program instead: {types}, and `permission_error` if
Redis refuses its user. See [Errors](errors.md).
"""


_ERROR = re.compile(r'<fd_error type="([a-z_]+)"[^>]*>\n<message>\n(.*)\n</message>', re.DOTALL)


def page() -> str:
    with example() as made:
        prepare(made)
        return markdown.page("Tools", blocks(made))


def prepare(made: Example) -> None:
    """Make what the calls of a tool name, see `Tool`."""
    made.process.create(LOG, source="build.log")
    made.process.create(LOG * 4, source="all.log")
    made.process.create(b"PK\x03\x04", media_type="application/zip", source="logs.zip")
    made.call("fd_to_file", fd="fd:1", file_path="old.txt")
    made.process.child()


def blocks(made: Example) -> Iterator[str]:
    yield markdown.paragraphs(INTRODUCTION)
    roots = [each for each in all_errors() if "type" in vars(each)]
    types = {each.type for each in roots if each.stops} - {each.type for each in roots if not each.stops}
    yield markdown.paragraphs(STOPPED.format(types=", ".join(f"`{each}`" for each in sorted(types))))
    for works_on in ("descriptors", "processes"):
        yield f"## On {works_on}"
        for name, each in BUILT_IN.items():
            if each.works_on == works_on:
                yield from tool(made, name)


def tool(made: Example, name: str) -> Iterator[str]:
    definition = BUILT_IN[name].definition(made.toolbox.context)
    schema = definition["input_schema"]
    yield f"### {name}"
    yield markdown.quote(definition["description"])
    rows = [
        [f"`{key}`", kind(about), default(key, about, schema), markdown.literal(about.get("description", ""))]
        for key, about in schema["properties"].items()
    ]
    yield markdown.table(["argument", "type", "default", "description"], rows)
    shown = json.dumps(definition, indent=2, ensure_ascii=False)
    yield markdown.details("The definition in the Messages API", markdown.fence(shown, "json"))
    errors = [row(made.call, name, arguments) for arguments in BUILT_IN[name].failing]
    for arguments in BUILT_IN[name].failing_when_full:
        errors.append(row(made.call_in_full_tree, name, arguments, " in a tree that is full"))
    if errors:
        yield markdown.table(["error", "after", "message"], errors)


def kind(about: Mapping[str, Any]) -> str:
    if "enum" in about:
        return ", ".join(f"`{json.dumps(each)}`" for each in about["enum"])
    if about["type"] == "array":
        return f"list of {about['items']['type']}s"
    shown = str(about["type"])
    if "minimum" in about:
        shown += f" >= {about['minimum']}"
    if "maximum" in about:
        shown += f", <= {about['maximum']}"
    return shown


def default(key: str, about: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    if key in schema["required"]:
        return "required"
    return f"`{json.dumps(about['default'])}`" if about.get("default") is not None else ""


def row(
    run: Callable[..., ToolResult], name: str, arguments: Mapping[str, Any], where: str = ""
) -> list[str]:
    """Return what a call that fails returns."""
    result = run(name, **arguments)
    found = _ERROR.search(result.text)
    assert found, f"{name} with {arguments} does not fail: {result.text}"
    kind, message = found.groups()
    return [f"[`{kind}`](errors.md)", f"`{json.dumps(arguments)}`{where}", markdown.literal(message)]
