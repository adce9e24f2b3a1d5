"""Damaged records of tool calls: whatever was stored under the id of a call, repeating the call is
`store_lost_data` of that process, and nothing of another tree is read, waited for or changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fdstore import Toolset
from fdstore.client import Process, Store
from fdstore.errors import Conflict, NotFound, StoreLostData
from fdstore.store.contents import contents
from fdstore.store.processes import pipelines, processes
from fdstore.store.streams import streams

CALLS = "fdstore:{triage}:triage:calls"
LONG = "a line\n" * 3000

VALUES = {
    "nothing": b"",
    "no JSON": b"{",
    "an empty object": b"{}",
    "null": b"null",
    "a number": b"7",
    "a text": b'"text"',
    "an empty list": b"[]",
    "a list of lists": b"[[],[],[]]",
    "a huge number": b"9" * 5000,
    "nested deeply": b"[" * 5000 + b"]" * 5000,
    "nested objects": b'{"a":' * 3000 + b"1" + b"}" * 3000,
    "no UTF-8": b'"\xff\xfe"',
    "ok alone": b'["ok"]',
    "a reply of numbers": b'["ok",1,2,3,4,5]',
    "a reply of nulls": b'["ok",null,null,null,null,null]',
    "an error": b'["quota_exceeded"]',
    "an unknown error": b'["x","y"]',
    "no descriptor": b'["ok","fd:x","triage/1","1.5","fd:y"]',
    "a huge descriptor": b'["ok","fd:99999999999999999999","triage/9","1.5","fd:1"]',
    "no time": b'["ok","fd:1","triage/1","soon","fd:2"]',
    "no process": b'["ok","\xc3\xa9","fd:1","fd:2","fd:3"]',
    "another tree": b'["ok","victim.1","fd:1","fd:2","fd:3"]',
    "a wait for another tree": b'{"type":"Started","processes":["victim"]}',
    "an impossible result": b'{"content":5,"is_error":"no"}',
}


def by_calls(store: Store, proc: Process, root: Path) -> dict[str, tuple[str, Callable[[], object]]]:
    """Return repeatable operations, each with the field that holds its record."""
    run, handle = store.run, proc.handle
    enabled = ["read_fd", "write_fd", "fd_to_file", "pipe"]
    tools = Toolset(proc, enabled=enabled, export_root=root, commands=["cat"], python=[double])
    brief = '{"kind":"pipe","commands":[["cat"]],"page_size":9}'

    def call(name: str, **arguments: Any) -> None:
        result = tools.call(name, arguments, "c")
        if result.is_error:
            raise Reported(result.text)

    return {
        "create": ("c", lambda: run(contents.create(handle, "text", "x", call_id="c"))),
        "extract": ("c", lambda: run(contents.extract(handle, "fd:1", None, call_id="c"))),
        "stream": ("c", lambda: run(streams.open_stream(handle, "x", lease_s=60, call_id="c"))),
        "child": ("c", lambda: run(processes.create_child(handle, [], call_id="c"))),
        "child of a call": ("c", lambda: run(processes.child_of_call(handle, "c"))),
        "pipeline": ("c", lambda: run(pipelines.start(handle, brief, title="cat", call_id="c"))),
        "write_fd": ("c/outcome", lambda: call("write_fd", data="note")),
        "function": ("c/outcome", lambda: call("double", number=2)),
        "plan": ("c/plan", lambda: call("fd_to_file", fd="fd:1", file_path="out")),
        "exported": ("c/exported", lambda: call("fd_to_file", fd="fd:1", file_path="out")),
        "offload": ("c/offload/outcome", lambda: tools.offload(LONG, "x", "c")),
        "wrap": ("c/outcome", lambda: tools.wrap(LONG, "x", "c")),
    }


class Reported(Exception):
    """A tool call ended with this error, as a model sees it."""


def double(number: int) -> int:
    """Return twice the number."""
    return 2 * number


OPERATIONS = (
    *("create", "extract", "stream", "child", "child of a call", "pipeline", "write_fd", "function", "plan"),
    *("exported", "offload", "wrap"),
)


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_damaged_record_of_a_call_is_lost_data(
    store: Store, proc: Process, execute: Any, tmp_path: Path, name: str
) -> None:
    proc.create("text")
    store.process("victim").child()
    before = execute("HGETALL", "fdstore:{victim}:victim")
    field, work = by_calls(store, proc, tmp_path)[name]

    for what, value in VALUES.items():
        execute("UNLINK", CALLS)
        execute("HSET", CALLS, field, value)
        try:
            work()
        except (StoreLostData, NotFound, Conflict):
            continue
        except Exception as error:
            if not isinstance(error, Reported) or 'type="store_lost_data"' not in str(error):
                raise AssertionError(f"{what}: {error!r}") from error

    assert execute("HGETALL", "fdstore:{victim}:victim") == before
    assert [each.state for each in store.tree("victim").members] == ["open", "open"]
    assert json.dumps(sorted(path.name for path in tmp_path.iterdir())) in ("[]", '["out"]')
    store.drop_tree("triage", kill=True)
