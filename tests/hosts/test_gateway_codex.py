"""Codex in front of the gateway: what its model sees, as a scripted model recorded it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from fdstore.local.redis_server import PrivateServer
from tests.hosts.scripted_responses import Asked, scripted_responses

UPSTREAM = Path(__file__).parents[1] / "mcp_upstream.py"
LINES = 200_000
HOST_S = 60
SERVER = "mcp__logs"
CONFIG = """\
model = "gpt-5.2-codex"
model_provider = "scripted"

[model_providers.scripted]
name = "scripted"
base_url = {base_url}
wire_api = "responses"
env_key = "SCRIPTED_KEY"

[mcp_servers.logs]
command = {python}
args = [
    "-m", "fdstore", "gateway", "--process", "codex", "--max-read-chars", "9000", "--",
    {python}, "-I", "-S", {upstream},
]
required = true
env = {{ FDSTORE_URL = {url} }}
"""


CALLS = [
    Asked(SERVER, "lines", {"count": LINES}),
    Asked(SERVER, "read_fd", {"fd": "fd:1", "start": 300}),
    Asked(SERVER, "read_fd", {"fd": "fd:1", "mode": "char", "start": 1, "count": 9001}),
]


def test_two_megabytes_of_a_tool_arrive_as_a_preview_and_are_read_on(
    codex: Path, empty_home: dict[str, str], tmp_path: Path
) -> None:
    config = Path(empty_home["HOME"]) / ".codex" / "config.toml"
    config.parent.mkdir()

    with PrivateServer() as store, scripted_responses(CALLS) as model:
        values = {"base_url": model.base_url, "python": sys.executable, "upstream": str(UPSTREAM)}
        quoted = {name: json.dumps(value) for name, value in {**values, "url": store.url}.items()}
        config.write_text(CONFIG.format(**quoted))
        done = subprocess.run(
            [
                *(codex, "exec", "--json", "--skip-git-repo-check"),
                *("--dangerously-bypass-approvals-and-sandbox", "What is in the log?"),
            ],
            env={**empty_home, "SCRIPTED_KEY": "x"},
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=HOST_S,
        )

    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    preview, page, refused = model.outputs
    assert '<fd_result fd="fd:1" ' in preview
    assert len(preview) < 6000
    assert '<fd_content fd="fd:1" page="300" ' in page
    numbers = [int(number) for number in re.findall(r"line (\d+)", page)]
    assert len(numbers) > 300
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    assert 'type="too_large"' in refused
