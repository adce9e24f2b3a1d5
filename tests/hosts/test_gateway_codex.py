"""Codex in front of the gateway: what its model sees, as a scripted model recorded it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from fdstore.local.redis_server import PrivateServer
from tests.hosts.codex_host import run_codex, write_config
from tests.hosts.scripted_responses import Asked, scripted_responses

UPSTREAM = Path(__file__).parents[1] / "mcp_upstream.py"
LINES = 200_000
SERVER = "mcp__logs"
CALLS = [
    Asked(SERVER, "lines", {"count": LINES}),
    Asked(SERVER, "read_fd", {"fd": "fd:1", "start": 300}),
    Asked(SERVER, "read_fd", {"fd": "fd:1", "mode": "char", "start": 1, "count": 9001}),
]


def test_two_megabytes_of_a_tool_arrive_as_a_preview_and_are_read_on(codex, empty_home, tmp_path):
    with PrivateServer() as store, scripted_responses(CALLS) as model:
        options = ["--process", "codex", "--max-read-chars", "9000", "--", sys.executable, "-I", "-S"]
        args = ["-m", "fdstore", "gateway", *options, str(UPSTREAM)]
        env = {"FDSTORE_URL": store.url}
        write_config(empty_home, model, "logs", command=sys.executable, args=args, env=env)
        run_codex(codex, empty_home, tmp_path, "What is in the log?", "approvals-and-sandbox")

    preview, page, refused = model.outputs
    assert '<fd_result fd="fd:1" ' in preview
    assert len(preview) < 6000
    assert '<fd_content fd="fd:1" page="300" ' in page
    numbers = [int(number) for number in re.findall(r"line (\d+)", page)]
    assert len(numbers) > 300
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    assert 'type="too_large"' in refused
