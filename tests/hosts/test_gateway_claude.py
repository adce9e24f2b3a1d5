"""Claude Code in front of the gateway: what its model sees, as a scripted model recorded it."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from fdstore.local.redis_server import PrivateServer
from fdstore.testing import ScriptedModel, call, say
from fdstore.testing.requests import Request
from tests.hosts.conftest import run_host

UPSTREAM = Path(__file__).parents[1] / "mcp_upstream.py"
LINES = 200_000


def answers(request: Request):
    """A model that calls the tool of the server, and then reads on from what it is shown."""
    if "ToolSearch" not in request.tools:
        return say("a title")
    match request.tool_results():
        case [] if "mcp__logs__lines" not in request.tools:
            return call("ToolSearch", query="select:mcp__logs__lines,mcp__logs__read_fd")
        case [] | [_]:
            return call("mcp__logs__lines", count=LINES)
        case [_, _]:
            return call("mcp__logs__read_fd", fd="fd:1", start=300)
    return say("done")


def test_two_megabytes_of_a_tool_arrive_as_a_preview_and_are_read_on(claude, empty_home, tmp_path):
    with PrivateServer() as store, ScriptedModel(answers) as model:
        args = ["-m", "fdstore", "gateway", "--process", "claude", "--"]
        entry = {
            "command": sys.executable,
            "args": [*args, sys.executable, "-I", "-S", str(UPSTREAM)],
            "env": {"FDSTORE_URL": store.url},
        }
        config = tmp_path / "mcp.json"
        config.write_text(json.dumps({"mcpServers": {"logs": entry}}))
        words = ("-p", "What is in the log?", "--mcp-config", config, "--strict-mcp-config")
        done = run_host(
            *(claude, *words, "--allowedTools", "mcp__logs", "--output-format", "json"),
            env={**empty_home, **model.environ, "DISABLE_TELEMETRY": "1"},
            cwd=tmp_path,
        )

    assert json.loads(done)["result"] == "done"
    last = model.requests[-1]
    *_, preview, page = last.tool_results()
    assert {"mcp__logs__read_fd", "mcp__logs__search_fd"} <= set(model.requests[0].tools)
    assert preview.text.startswith('<fd_result fd="fd:1" ')
    assert "\nline 3\n" in preview.text
    assert len(preview.text) < 6000
    assert page.text.startswith('<fd_content fd="fd:1" page="300" ')
    numbers = [int(number) for number in re.findall(r"(?m)^line (\d+)$", page.text)]
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    assert numbers[0] in range(90_000, 120_000)
    assert sum(len(json.dumps(message)) for message in last.messages) < 40_000
