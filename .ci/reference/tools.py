"""The page of tools: what a model gets of each, and the errors that real calls return."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from fdstore.results.tool_names import FD_TOOLS
from fdstore.tools.toolbox import BUILT_IN, STOPPING
from reference import markdown
from reference.example_store import LOG, Example, example

INTRODUCTION = """
The tools that a model calls, with the names, descriptions and JSON schemas that it gets. A program enables
them in [`[tools] enabled`](programs.md#tools), an own loop with `fdstore.Toolset(proc, enabled=[...])`;
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


class Case(NamedTuple):
    """A call that fails. `full`: in a tree that has reached its limits."""

    tool: str
    arguments: Mapping[str, Any]
    full: bool = False


CASES = [
    Case("read_fd", {"fd": "fd:9"}),
    Case("read_fd", {"fd": "fd:1", "start": 99}),
    Case("read_fd", {"fd": "fd:1", "mode": "line", "start": 9000}),
    Case("read_fd", {"fd": "fd:1", "start": 0}),
    Case("read_fd", {"fd": "fd:2", "read_all": True}),
    Case("read_fd", {"fd": "fd:3"}),
    Case("search_fd", {"fd": "fd:9", "pattern": "FAILED"}),
    Case("search_fd", {"fd": "fd:1", "pattern": "(?=FAILED)"}),
    Case("search_fd", {"fd": "fd:1#L9000", "pattern": "FAILED"}),
    Case("search_fd", {"fd": "fd:3", "pattern": "FAILED"}),
    Case("list_fds", {"start": 99}),
    Case("write_fd", {"fd": "fd:9", "data": "more"}),
    Case("write_fd", {"fd": "fd:1", "data": "more"}),
    Case("write_fd", {"data": "text", "eof": "yes"}),
    Case("write_fd", {"data": "more"}, full=True),
    Case("put_fd", {}),
    Case("put_fd", {"file": "../secret"}),
    Case("put_fd", {"file": "absent.md"}),
    Case("put_fd", {"text": "more"}, full=True),
    Case("fd_to_file", {"fd": "fd:9", "file_path": "a.txt"}),
    Case("fd_to_file", {"fd": "fd:1", "file_path": "../a.txt"}),
    Case("fd_to_file", {"fd": "fd:1", "file_path": "old.txt", "exist_ok": False}),
    Case("fd_to_file", {"fd": "fd:1", "file_path": "new.txt", "create": False}),
    Case("fd_to_file", {"fd": "fd:1#P99", "file_path": "new.txt"}),
    Case("close_fd", {"fd": "fd:9"}),
    Case("spawn", {"program_name": "expret", "query": "Is it legal?"}),
    Case("spawn", {"program_name": "expert", "query": "Is it legal?", "additional_preload_fds": ["fd:9"]}),
    Case(
        "spawn",
        {"program_name": "expert", "query": "Is it legal?", "additional_preload_files": ["absent.md"]},
    ),
    Case("spawn", {"program_name": "expert", "query": ""}),
    Case("spawn", {"program_name": "expert", "query": "Is it legal?"}, full=True),
    Case("fork", {"prompts": []}),
    Case("pipe", {"commands": ["rm -r ."]}),
    Case("pipe", {"commands": []}),
    Case("pipe", {"commands": ["sort"], "in_fd": "fd:9"}),
    Case("pipe", {"commands": ["sort"]}, full=True),
    Case("wait", {"target": "triage.9"}),
    Case("wait", {"target": "triage.1", "seconds": -1}),
    Case("kill", {"target": "triage.9"}),
    Case("kill", {"target": "other.1"}),
]

_ERROR = re.compile(r'<fd_error type="([a-z_]+)"[^>]*>\n<message>\n(.*)\n</message>', re.DOTALL)


def page() -> str:
    with example() as made:
        prepare(made)
        return markdown.page("Tools", blocks(made))


def prepare(made: Example) -> None:
    """Make what the cases name: fd:1, a text; fd:2, a long one; fd:3, bytes; out/old.txt; triage.1."""
    made.process.create(LOG, source="build.log")
    made.process.create(LOG * 4, source="all.log")
    made.process.create(b"PK\x03\x04", media_type="application/zip", source="logs.zip")
    made.call("fd_to_file", fd="fd:1", file_path="old.txt")
    made.process.child()


def blocks(made: Example) -> Iterator[str]:
    yield markdown.paragraphs(INTRODUCTION)
    types = ", ".join(f"`{each}`" for each in sorted(STOPPING))
    yield markdown.paragraphs(STOPPED.format(types=types))
    for title, names in {
        "On descriptors": [name for name in BUILT_IN if name in FD_TOOLS],
        "On processes": [name for name in BUILT_IN if name not in FD_TOOLS],
    }.items():
        yield f"## {title}"
        for name in names:
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
    errors = [row(made, case) for case in CASES if case.tool == name]
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


def row(made: Example, case: Case) -> list[str]:
    """Return what a call that fails returns."""
    run = made.call_in_full_tree if case.full else made.call
    result = run(case.tool, **case.arguments)
    found = _ERROR.search(result.text)
    assert found, f"{case} does not fail: {result.text}"
    kind, message = found.groups()
    after = f"`{json.dumps(case.arguments)}`" + (" in a tree that is full" if case.full else "")
    return [f"[`{kind}`](errors.md)", after, markdown.literal(message)]
