"""Coding hosts whose model writes programs over several servers: what the model is offered and gets, as a
scripted model recorded it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from fdstore.local.redis_server import PrivateServer
from fdstore.testing import ScriptedModel, call, say
from fdstore.testing.requests import Request
from tests.hosts.codex_host import run_codex, write_config
from tests.hosts.conftest import run_host
from tests.hosts.scripted_responses import Asked, scripted_responses

UPSTREAM = Path(__file__).parents[1] / "code_upstream.py"
JOIN = """\
import asyncio
rows = (await orders.get_rows(count=50))["rows"]
names = await asyncio.gather(*[people.echo(text=f"customer {row['number'] % 7}") for row in rows])
counts = {}
for name in names:
    counts[name] = counts.get(name, 0) + 1
print(counts["customer 0"], (await people.lines(count=200_000)).total_chars)
"""
PRINTED = "8 2288895"


def servers(folder: Path) -> Path:
    """Write a configuration with two servers."""
    entry = {"command": sys.executable, "args": ["-I", "-S", str(UPSTREAM)]}
    file = folder / "servers.json"
    file.write_text(json.dumps({"mcpServers": {"orders": entry, "people": entry}}), "utf-8")
    return file


def gateway(folder: Path) -> list[str]:
    options = ["--process", "host", "--code", "only", "--config", str(servers(folder))]
    return ["-P", "-m", "fdstore", "gateway", *options]


def claude_says(
    claude: Path, home: dict[str, str], folder: Path, store: str, entries: dict[str, Any], answers: Any
) -> list[Request]:
    """Run Claude Code with these servers, and return the requests to its model."""
    config = folder / "mcp.json"
    for entry in entries.values():
        entry["env"] = {"FDSTORE_URL": store}
    config.write_text(json.dumps({"mcpServers": entries}), "utf-8")
    allowed = ",".join(f"mcp__{name}" for name in entries)
    with ScriptedModel(answers) as model:
        words = ("-p", "Who orders most?", "--mcp-config", config, "--strict-mcp-config")
        done = run_host(
            *(claude, *words, "--allowedTools", allowed, "--output-format", "json"),
            env={**home, **model.environ, "DISABLE_TELEMETRY": "1"},
            cwd=folder,
        )
    assert json.loads(done)["result"] == "done"
    return [request for request in model.requests if "ToolSearch" in request.tools]


def test_claude_code_runs_a_program_over_two_servers(claude, empty_home, tmp_path):
    def answers(request: Request) -> Any:
        if "ToolSearch" not in request.tools:
            return say("a title")
        if not request.tool_results():
            return call("mcp__tools__run_python", code=JOIN)
        return say("done")

    with PrivateServer() as store:
        entries = {"tools": {"command": sys.executable, "args": gateway(tmp_path)}}
        first, last = claude_says(claude, empty_home, tmp_path, store.url, entries, answers)

    offered = [name for name in first.tools if name.startswith("mcp__")]
    assert sorted(offered) == ["mcp__tools__find_tools", "mcp__tools__run_python"]
    [result] = last.tool_results()
    assert PRINTED in result.text
    assert len(result.text) < 200


def test_codex_runs_a_program_over_two_servers(codex, empty_home, tmp_path):
    asked = Asked("mcp__tools", "run_python", {"code": JOIN})

    with PrivateServer() as store, scripted_responses([asked]) as model:
        start = {"command": sys.executable, "args": gateway(tmp_path), "env": {"FDSTORE_URL": store.url}}
        write_config(empty_home, model, "tools", **start)
        run_codex(codex, empty_home, tmp_path, "Who orders most?", "approvals-and-sandbox")

    [result] = model.outputs
    assert PRINTED in result
    assert len(result) < 300
    assert sorted(model.tools("mcp__tools")) == ["find_tools", "run_python"]
