"""A host's wait for a small call of a tool while the store is up, is down, or accepts connections and never
answers: behind the gateway, and in Claude Code, whose plugin asks our MCP server about each output.

    PYTHONPATH=. python tests/bench/bench_away.py
"""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from fdstore.local.redis_server import PrivateServer
from tests.bench.bench_code import Server, started

UPSTREAM = [sys.executable, "-I", "-S", str(Path(__file__).parents[1] / "mcp_upstream.py")]
FDSTORE = [sys.executable, "-m", "fdstore"]
CALLS = 50
BAR_MS = 100


def call_ms(host: Server, call: dict[str, Any]) -> float:
    """Return how many milliseconds the answer to a call took."""
    begun = perf_counter()
    host.ask("tools/call", **call)
    return (perf_counter() - begun) * 1000


OUTPUT = {
    "hook_event_name": "PostToolUse",
    "tool_name": "Bash",
    "tool_input": json.dumps({"command": "true"}),
    "tool_response": json.dumps({"stdout": "", "stderr": "", "interrupted": False}),
    "tool_use_id": "toolu_1",
    "session_id": "s",
    "cwd": "/tmp",
}
CASES = {
    "gateway": (
        [*FDSTORE, "gateway", "--process", "bench", "--", *UPSTREAM],
        {"name": "echo", "arguments": {"text": "a small result"}},
    ),
    "Claude Code": (
        [*FDSTORE, "mcp", "--process", "bench", "--hook", "claude"],
        {"name": "offload_output", "arguments": OUTPUT},
    ),
}


def main() -> int:
    missed = False
    with (
        PrivateServer() as store,
        socket.create_server(("127.0.0.1", 0)) as silent,
        socket.socket() as closed,
    ):
        closed.bind(("127.0.0.1", 0))
        stores = {
            "up": store.url,
            "down": f"redis://127.0.0.1:{closed.getsockname()[1]}",
            "hanging": f"redis://127.0.0.1:{silent.getsockname()[1]}",
        }
        for name, (command, call) in CASES.items():
            for state, url in stores.items():
                with started(command, FDSTORE_URL=url) as host:
                    first, *others = (call_ms(host, call) for _ in range(CALLS))
                missed |= max(others) > BAR_MS or first > BAR_MS
                times = f"first {first:6.1f} ms, then {median(others):.2f} ms, longest {max(others):.1f} ms"
                print(f"{name:12} store {state:8} {times}")
    return missed


if __name__ == "__main__":
    sys.exit(main())
