"""Codex reads descriptors through `fdstore mcp`; the recorded requests have what its model would see."""

from __future__ import annotations

import fdstore
from fdstore.local.redis_server import PrivateServer
from tests.hosts.codex_host import run_codex, write_config
from tests.hosts.mcp_servers import stdio_command
from tests.hosts.scripted_responses import Asked, scripted_responses

LINES = "".join(f"line {number} of the build\n" for number in range(1, 60_001))
SERVER = "mcp__fd"

CALLS = [
    Asked(SERVER, "search_fd", {"fd": "fd:1", "pattern": "line 4242[0-9] "}),
    Asked(SERVER, "read_fd", {"fd": "fd:1", "mode": "char", "start": 100_001, "count": 9000}),
    Asked(SERVER, "read_fd", {"fd": "fd:1", "mode": "char", "start": 1, "count": 9001}),
]


def test_codex_waits_for_the_server_and_reads_a_large_text_exactly(codex, empty_home, tmp_path):
    with PrivateServer() as server, scripted_responses(CALLS) as model:
        with fdstore.connect(server.url) as store:
            store.process("triage").create(LINES, source="build.log")
        command, *args = stdio_command(server.url, "--max-read-chars", "9000")
        write_config(empty_home, model, "fd", command=command, args=args)

        done = run_codex(codex, empty_home, tmp_path, "Study fd:1.", "approvals-and-sandbox")

    assert '"text":"Done."' in done
    assert {"read_fd", "search_fd", "put_fd"} <= set(model.tools(SERVER))
    found, read, refused = model.outputs
    assert "42425:line 42425 of the build\n" in found
    assert f">\n{LINES[100_000:109_000]}\n</fd_content>" in read
    assert 'type="too_large"' in refused
