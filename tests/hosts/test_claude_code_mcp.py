"""Claude Code reads descriptors through `fdstore mcp`; its requests have what its model would see."""

from __future__ import annotations

import json

import fdstore
from fdstore.local.redis_server import PrivateServer
from fdstore.testing import Request, ScriptedModel, call, say
from fdstore.testing.replies import Reply
from tests.elements import only
from tests.hosts.conftest import run_host
from tests.hosts.mcp_servers import stdio_command

LINES = "".join(f"line {number} of the build\n" for number in range(1, 60_001))

SERVER = "mcp__fd__"
READ_RESOURCE = "ReadMcpResourceTool"

CALLS = [
    (f"{SERVER}read_fd", {"fd": "fd:1", "start": 200}),
    (f"{SERVER}search_fd", {"fd": "fd:1", "pattern": "line 4242[0-9] "}),
    (f"{SERVER}read_fd", {"fd": "fd:1", "mode": "char", "start": 100_001, "count": 45_000}),
    (f"{SERVER}read_fd", {"fd": "fd:9"}),
    (READ_RESOURCE, {"server": "fd", "uri": "fdstore://triage/fd:1?lines=30000-30001"}),
]


def script(request: Request) -> Reply:
    """A model that makes all calls, one in each turn."""
    done = len(request.tool_results())
    if not any(name.startswith(SERVER) for name in request.tools):
        return say("There are no tools of fdstore.")
    return call(CALLS[done][0], **CALLS[done][1]) if done < len(CALLS) else say("Done.")


def test_claude_code_reads_any_part_of_a_large_text_exactly(claude, empty_home, tmp_path):
    with PrivateServer() as server, ScriptedModel(script) as model:
        with fdstore.connect(server.url) as store:
            proc = store.process("triage")
            proc.create(LINES, source="build.log")
            page = proc.read("fd:1", start=200).text
        command, *arguments = stdio_command(server.url)
        config = {"mcpServers": {"fd": {"command": command, "args": arguments}}}
        allowed = ",".join(sorted({name for name, _ in CALLS}))

        words = ("-p", "Study fd:1.", "--output-format", "json", "--strict-mcp-config")
        done = run_host(
            *(claude, *words, "--mcp-config", json.dumps(config), "--allowedTools", allowed),
            env={**empty_home, **model.environ, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"},
            cwd=tmp_path,
        )

    assert json.loads(done)["result"] == "Done."
    assert {f"{SERVER}read_fd", f"{SERVER}search_fd"} <= set(model.requests[0].tools)
    assert "line 4242" not in json.dumps(model.requests[0].raw)
    read, found, large, missing, part = model.requests[-1].tool_results()
    assert only(read.text).body == page
    assert "42425:line 42425 of the build" in only(found.text).body
    assert only(large.text).body == LINES[100_000:145_000]
    assert (missing.is_error, only(missing.text)["type"]) == (True, "not_found")
    assert "line 30000 of the build\\nline 30001 of the build\\n" in part.text
