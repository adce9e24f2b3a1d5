"""Coding hosts whose model writes programs over several servers: what the model is offered and gets, as a
scripted model recorded it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from fdstore.local.redis_server import PrivateServer
from fdstore.testing import ScriptedModel, call, say
from fdstore.testing.requests import Request
from tests.hosts.scripted_responses import Asked, scripted_responses

UPSTREAM = Path(__file__).parents[1] / "code_upstream.py"
HOST_S = 60
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
CODEX_CONFIG = """\
model = "gpt-5.2-codex"
model_provider = "scripted"

[model_providers.scripted]
name = "scripted"
base_url = {base_url}
wire_api = "responses"
env_key = "SCRIPTED_KEY"

[mcp_servers.tools]
command = {python}
args = {args}
required = true
env = {{ FDSTORE_URL = {url} }}
"""


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
        done = subprocess.run(
            [
                *(claude, "-p", "Who orders most?", "--mcp-config", config, "--strict-mcp-config"),
                *("--allowedTools", allowed, "--output-format", "json"),
            ],
            env={**home, **model.environ, "DISABLE_TELEMETRY": "1"},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=HOST_S,
        )
    assert json.loads(done.stdout)["result"] == "done", done.stderr
    return [request for request in model.requests if "ToolSearch" in request.tools]


def test_claude_code_runs_a_program_over_two_servers(
    claude: Path, empty_home: dict[str, str], tmp_path: Path
) -> None:
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


def test_codex_runs_a_program_over_two_servers(
    codex: Path, empty_home: dict[str, str], tmp_path: Path
) -> None:
    config = Path(empty_home["HOME"]) / ".codex" / "config.toml"
    config.parent.mkdir()
    asked = Asked("mcp__tools", "run_python", {"code": JOIN})

    with PrivateServer() as store, scripted_responses([asked]) as model:
        values = {"base_url": model.base_url, "python": sys.executable, "args": gateway(tmp_path)}
        quoted = {name: json.dumps(value) for name, value in {**values, "url": store.url}.items()}
        config.write_text(CODEX_CONFIG.format(**quoted), "utf-8")
        done = subprocess.run(
            [
                *(codex, "exec", "--json", "--skip-git-repo-check"),
                *("--dangerously-bypass-approvals-and-sandbox", "Who orders most?"),
            ],
            env={**empty_home, "SCRIPTED_KEY": "x"},
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=HOST_S,
        )

    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    [result] = model.outputs
    assert PRINTED in result
    assert len(result) < 300
    assert sorted(model.tools("mcp__tools")) == ["find_tools", "run_python"]
