"""Startup: the time of `import fdstore` and of the shortest command, minus that of Python itself; and what
the servers of a host's configuration take of the processor until they have answered `initialize`.

Hosts give their servers little time: Claude Code with `-p` begins without the tools of a server that is not
ready after two seconds. An import of the MCP SDK is what every such server in Python pays.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from fdstore.bench.measuring import (
    BenchRow,
    at_most,
    format_duration,
    lap,
    row,
    self_timed,
    slower,
    take_turns,
)
from fdstore.bench.stage import BenchStage

SDK = "import mcp.server, time; print(time.process_time())"

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "bench", "version": "1"},
    },
}

UPSTREAM = """\
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
        result["serverInfo"] = {"name": "small", "version": "1"}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""
"""A server that the gateway stands before."""


def rows(stage: BenchStage) -> Iterator[BenchRow]:
    python = [sys.executable, "-c", "pass"]
    for case, command, bar in (
        ("import fdstore, over python", [sys.executable, "-c", "import fdstore"], 60),
        ("fdstore --help, over python", [sys.executable, "-m", "fdstore", "--help"], 120),
    ):
        rounds = take_turns([lap(partial(run, command)), lap(partial(run, python))], stage.budget_s)
        value = rounds.value(lambda ours, bare: (ours - bare) * 1000)
        yield row(case, at_most(bar, "ms"), value, *map(format_duration, rounds.medians))
    if find_spec("mcp") is None:
        return
    # without variables of Python: one may forbid compiled modules, which installers make of what they install
    fdstore = [sys.executable, "-E", "-P", "-m", "fdstore"]
    for case, command, share in (
        ("fdstore mcp to initialize, processor, over importing the SDK", [*fdstore, "mcp"], 1.1),
        (
            "fdstore gateway to initialize, processor, over importing the SDK",
            [*fdstore, "gateway", "--", sys.executable, "-I", "-S", "-c", UPSTREAM],
            0.3,
        ),
    ):
        answering = self_timed(partial(processor_until_answer, command, stage))
        rounds = take_turns([answering, self_timed(import_sdk)], stage.budget_s, at_once=1)
        yield slower(case, at_most(share), rounds)


def run(command: list[str]) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def import_sdk() -> float:
    """Return the seconds of processor that a process takes to import the server of the SDK."""
    done = subprocess.run([sys.executable, "-c", SDK], check=True, capture_output=True, text=True)
    return float(done.stdout)


def processor_until_answer(command: list[str], stage: BenchStage) -> float:
    """Return the seconds of processor that a server has taken when it has answered `initialize`."""
    environment = {**os.environ, "FDSTORE_URL": stage.url, "FDSTORE_PREFIX": stage.store.prefix}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment) as server:
        assert server.stdin
        assert server.stdout
        server.stdin.write(json.dumps(INITIALIZE).encode() + b"\n")
        server.stdin.flush()
        answer = json.loads(server.stdout.readline())
        assert "result" in answer, answer
        user, system = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        server.stdin.close()
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
