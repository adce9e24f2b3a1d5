"""A hook and the gateway store the same texts of a tool's result, cut at the same places, with lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import fdstore
from fdstore.client import Store
from fdstore.hosts.gateway.acting import Treatment
from fdstore.hosts.gateway.descriptors import Descriptors
from fdstore.hosts.gateway.messages import Message
from fdstore.hosts.gateway.options import GatewayOptions
from fdstore.hosts.gateway.rewriting import Rewriter
from fdstore.hosts.gateway.tool_list import ToolOffer
from fdstore.hosts.hooks.hosts import HOSTS
from fdstore.hosts.hooks.replace import replaced
from fdstore.hosts.project import Project
from tests.hook_events import after_tool

LIMIT = 8000
ROWS = {"rows": [{"id": number, "name": f"name {number}"} for number in range(500)]}
LINES = "a line of a log\n" * 1000
INDENTED = json.dumps(ROWS, indent=2)


def texts(*given: str) -> list[Any]:
    return [{"type": "text", "text": text} for text in given]


CASES: dict[str, tuple[list[Any], list[str]]] = {
    "a long text": (texts(LINES), [LINES]),
    "a short and two long": (texts("short", LINES, LINES + "end"), [LINES, LINES + "end"]),
    "many short": (texts(*["x" * 500] * 80), ["\n".join(["x" * 500] * 80)]),
    "few short": (texts(*["x" * 500] * 10), []),
    "JSON of one line": (texts(json.dumps(ROWS)), [INDENTED]),
    "JSON with lines": (texts(json.dumps(ROWS, indent=1)), [INDENTED]),
    "a picture between": (
        [*texts(LINES), {"type": "image", "data": "AAAA", "mimeType": "image/png"}, *texts("end")],
        [LINES],
    ),
}


def contents(store: Store, process: str) -> list[str]:
    """Return the texts of a process in the order of their descriptors. A hook stores pictures, too."""
    opened = store.process(process)
    return [opened.read(each.fd, read_all=True).text for each in opened.list() if each.kind == "text"]


def through_the_gateway(redis_url: str, result: Any) -> None:
    options = GatewayOptions(tools="none", max_direct_output_chars=LIMIT)
    descriptors = Descriptors(options, Project(process="gateway"), print, url=redis_url)
    descriptors.start()
    rewriter = Rewriter(LIMIT, ToolOffer(options))
    rewriter.to_server(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"rows"}}')
    answer = json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode()
    message = Message(answer)
    Treatment(descriptors).rewrite(message, rewriter.from_server(message))
    descriptors.finish()


def through_the_hook(redis_url: str, response: Any, config: Path, tool: str = "mcp__server__rows") -> None:
    output = HOSTS["claude"](after_tool(tool, response), LIMIT)
    if output is not None:
        replaced(output, Project(process="hook"), lambda: fdstore.connect(redis_url), config)


@pytest.mark.parametrize("case", CASES)
def test_hook_and_gateway_store_the_same_texts(
    store: Store, redis_url: str, tmp_path: Path, case: str
) -> None:
    blocks, stored = CASES[case]

    through_the_gateway(redis_url, {"content": blocks})
    through_the_hook(redis_url, blocks, tmp_path)

    assert contents(store, "gateway") == stored
    assert contents(store, "hook") == stored


def test_a_structured_result_is_stored_with_lines_through_both(
    store: Store, redis_url: str, tmp_path: Path
) -> None:
    line = json.dumps(ROWS)

    through_the_gateway(redis_url, {"content": texts(line), "structuredContent": ROWS})
    through_the_hook(redis_url, line, tmp_path)  # Claude Code shows a hook the structured content alone

    assert contents(store, "gateway") == contents(store, "hook") == [INDENTED]
