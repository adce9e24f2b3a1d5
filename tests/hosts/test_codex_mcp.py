"""Codex reads descriptors through `fdstore mcp`; the recorded requests have what its model would see."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import fdstore
from fdstore.local.redis_server import PrivateServer
from tests.hosts.mcp_servers import stdio_command
from tests.hosts.scripted_responses import Asked, scripted_responses

LINES = "".join(f"line {number} of the build\n" for number in range(1, 60_001))
SERVER = "mcp__fd"

CALLS = [
    Asked(SERVER, "search_fd", {"fd": "fd:1", "pattern": "line 4242[0-9] "}),
    Asked(SERVER, "read_fd", {"fd": "fd:1", "mode": "char", "start": 100_001, "count": 9000}),
    Asked(SERVER, "read_fd", {"fd": "fd:1", "mode": "char", "start": 1, "count": 9001}),
]

CONFIG = """\
model = "any"
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "danger-full-access"

[model_providers.scripted]
name = "scripted"
base_url = {base_url}
wire_api = "responses"
env_key = "SCRIPTED_KEY"

[mcp_servers.fd]
command = {command}
args = {args}
required = true
"""


def test_codex_waits_for_the_server_and_reads_a_large_text_exactly(
    codex: Path, empty_home: dict[str, str], tmp_path: Path
) -> None:
    home = tmp_path / "codex"
    home.mkdir()
    with PrivateServer() as server, scripted_responses(CALLS) as model:
        with fdstore.connect(server.url) as store:
            store.process("triage").create(LINES, source="build.log")
        command, *args = stdio_command(server.url, "--max-read-chars", "9000")
        values = {"base_url": model.base_url, "command": command, "args": args}
        config = CONFIG.format(**{name: json.dumps(value) for name, value in values.items()})
        (home / "config.toml").write_text(config)

        done = subprocess.run(
            [codex, "exec", "--json", "--skip-git-repo-check", "Study fd:1."],
            env={**empty_home, "CODEX_HOME": str(home), "SCRIPTED_KEY": "any"},
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )

    assert '"text":"Done."' in done.stdout, done.stderr
    assert {"read_fd", "search_fd", "put_fd"} <= set(model.tools(SERVER))
    found, read, refused = model.outputs
    assert "42425:line 42425 of the build\n" in found
    assert f">\n{LINES[100_000:109_000]}\n</fd_content>" in read
    assert 'type="too_large"' in refused
