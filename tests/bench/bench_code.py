"""The savings of programs of a host's model, beside calling the same tools one by one: tokens of the
definitions in each request, and of whole conversations; and the cost of a call of a program.

    PYTHONPATH=. python tests/bench/bench_code.py node_modules/.bin

The directory has four MCP servers from the registry of Node: @modelcontextprotocol/server-everything,
server-filesystem, server-github and @playwright/mcp. A conversation is counted as a model is paid for it: in
each turn all definitions and all that was said before. The model is a script: it calls one tool in each turn,
or looks for tools, runs one program, and answers.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from fdstore.local.redis_server import PrivateServer
from fdstore.text.tokens import estimate_tokens

UPSTREAM = [sys.executable, "-I", "-S", str(Path(__file__).parents[1] / "code_upstream.py")]
ORDERS, COPIES, LOG_LINES = 50, 20, 75_000
CALLS, ROUNDS = 200, 5
LARGE_MIB = 300
MOST_SHARE, MOST_DEFINITIONS, MOST_ADDED_MS = 0.1, 0.1, 3.0
BEGIN = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "b", "version": "1"}}


class Server:
    """An MCP server, or a gateway before some."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **environment},
        )
        self.ask("initialize", **BEGIN)
        self._write({"method": "notifications/initialized"})

    def _write(self, message: Mapping[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method: str, **params: Any) -> Any:
        self._write({"id": 1, "method": method, "params": params})
        assert self.process.stdout is not None
        while True:
            message = json.loads(self.process.stdout.readline())
            if "method" in message and "id" in message:
                self._write({"id": message["id"], "result": {"roots": []}})
            elif message.get("id") == 1:
                return message.get("result")

    def call(self, tool: str, **arguments: Any) -> str:
        result = self.ask("tools/call", name=tool, arguments=arguments)
        text = "\n".join(block.get("text", "") for block in result["content"])
        assert not result.get("isError"), text[:1000]
        return text


def peak_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text("ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")) / 1024


@contextmanager
def started(command: Sequence[str], **environment: str) -> Iterator[Server]:
    server = Server(command, environment)
    try:
        yield server
    finally:
        assert server.process.stdin is not None
        server.process.stdin.close()
        server.process.wait()


class Conversation:
    """A conversation of a model with tools. `tokens` is what all its requests and answers cost."""

    def __init__(self, tools: Sequence[Any], question: str) -> None:
        self._definitions = tokens_of(tools)
        self._said = estimate_tokens(question)
        self.tokens = self.turns = 0

    def turn(self, answer: Any, result: str = "") -> None:
        said = tokens_of(answer)
        self.turns += 1
        self.tokens += self._definitions + self._said + said
        self._said += said + estimate_tokens(result)


def tokens_of(value: Any) -> int:
    return estimate_tokens(json.dumps(value, ensure_ascii=False))


def shown(tool: Mapping[str, Any]) -> dict[str, Any]:
    """A tool as hosts define it for a model."""
    return {name: tool.get(name) for name in ("name", "description", "inputSchema")}


JOIN = """\
import asyncio
texts = await asyncio.gather(*[files.read_text_file(path=f"{FOLDER}/order{n}.txt") for n in range(ORDERS)])
totals = {}
for text in texts:
    customer, total = re.search(r"customer (\\w+), total (\\d+)", text).groups()
    totals[customer] = totals.get(customer, 0) + int(total)
best = max(totals, key=lambda customer: totals[customer])
print(best, totals[best])
"""
FILTER = """\
log = await files.read_text_file(path=f"{FOLDER}/app.log")
slow = [hit.text for hit in log.search(r"ERROR .* took (\\d+) ms") if int(hit.groups[0]) > 300]
print(len(slow), slow[0])
"""
COPY = """\
for n in range(COPIES):
    text = await files.read_text_file(path=f"{FOLDER}/page{n}.md")
    await files.write_file(path=f"{FOLDER}/copy{n}.md", content=text)
print("copied", COPIES)
"""


def write_files(folder: Path) -> None:
    for n in range(ORDERS):
        text = f"order {n}: customer c{n % 9}, total {n * 7 % 40}\n" + "an article of this order\n" * 20
        (folder / f"order{n}.txt").write_text(text, "ascii")
    lines = (
        f"2026-11-26 12:00:{n % 60:02} {'ERROR' if n % 97 == 0 else 'INFO'} request {n} for /a/path of "
        f"the shop took {n % 313} ms\n"
        for n in range(LOG_LINES)
    )
    (folder / "app.log").write_text("".join(lines), "ascii")
    for n in range(COPIES):
        (folder / f"page{n}.md").write_text(f"# Page {n}\n\n" + "Some words of this page.\n" * 80, "ascii")


def tasks(folder: Path) -> dict[str, tuple[str, list[tuple[str, dict[str, Any]]], str]]:
    """For each task the program, the calls one by one, and words that find the tools."""
    orders = [("read_text_file", {"path": f"{folder}/order{n}.txt"}) for n in range(ORDERS)]
    copies: list[tuple[str, dict[str, Any]]] = []
    for n in range(COPIES):
        text = (folder / f"page{n}.md").read_text("ascii")
        copies.append(("read_text_file", {"path": f"{folder}/page{n}.md"}))
        copies.append(("write_file", {"path": f"{folder}/copy{n}.md", "content": text}))
    log = [("read_text_file", {"path": f"{folder}/app.log"})]
    head = f"FOLDER, ORDERS, COPIES = {str(folder)!r}, {ORDERS}, {COPIES}\n"
    return {
        "join the results of 50 calls": ("import re\n" + head + JOIN, orders, "read_text_file"),
        "filter a result of 5 MB": (head + FILTER, log, "read_text_file"),
        "copy 20 files by two tools": (head + COPY, copies, "write_file"),
    }


def compare(programs: Path, folder: Path, store: str) -> list[bool]:
    """Print the table of tokens. Return for each row whether it is within its bar."""
    write_files(folder)
    commands = {
        "everything": [str(programs / "mcp-server-everything")],
        "files": [str(programs / "mcp-server-filesystem"), str(folder)],
        "github": [str(programs / "mcp-server-github")],
        "browser": [str(programs / "playwright-mcp"), "--headless"],
    }
    direct_tools: list[Any] = []
    for name, command in commands.items():
        with started(command, GITHUB_PERSONAL_ACCESS_TOKEN="none") as server:
            listed = [shown(tool) for tool in server.ask("tools/list")["tools"]]
            direct_tools += listed
            print(f"{name:28}  {len(listed):3} tools  {tokens_of(listed):7} tokens")
    config = folder / "mcp.json"
    entries = {name: {"command": command[0], "args": command[1:]} for name, command in commands.items()}
    config.write_text(json.dumps({"mcpServers": entries}), "utf-8")
    gateway = [sys.executable, "-P", "-m", "fdstore", "gateway", "--process", "bench"]
    options = ("--config", str(config), "--code", "only", "--code-allow", "files.write_file")
    oks = []
    with (
        started([*gateway, *options], FDSTORE_URL=store, GITHUB_PERSONAL_ACCESS_TOKEN="none") as code,
        started(commands["files"]) as files,
    ):
        code.call("find_tools", query="read")  # so that the definitions name the tools
        ours = [shown(tool) for tool in code.ask("tools/list")["tools"]]
        share = tokens_of(ours) / tokens_of(direct_tools)
        oks.append(share <= MOST_DEFINITIONS)
        print(row("definitions in each request", tokens_of(direct_tools), tokens_of(ours), share))
        for task, (program, calls, words) in tasks(folder).items():
            one_by_one = Conversation(direct_tools, task)
            for tool, arguments in calls:
                one_by_one.turn({"name": tool, "input": arguments}, files.call(tool, **arguments))
            one_by_one.turn({"text": "Here is the answer."})
            by_code = Conversation(ours, task)
            by_code.turn(
                {"name": "find_tools", "input": {"query": words}}, code.call("find_tools", query=words)
            )
            said = code.call("run_python", code=program)
            by_code.turn({"name": "run_python", "input": {"code": program}}, said)
            by_code.turn({"text": "Here is the answer."})
            share = by_code.tokens / one_by_one.tokens
            oks.append(share <= MOST_SHARE)
            print(row(task, one_by_one.tokens, by_code.tokens, share), f"  ({said.splitlines()[1]})")
            print(f"{'':28}  turns {one_by_one.turns} and {by_code.turns}")
        assert all(
            (folder / f"copy{n}.md").read_bytes() == (folder / f"page{n}.md").read_bytes()
            for n in range(COPIES)
        )
    return oks


def row(what: str, before: int, after: int, share: float) -> str:
    return f"{what:28}  {before:9} -> {after:7} tokens  {share:7.4f}  (bar {MOST_SHARE})"


def measure_calls(store: str) -> bool:
    """Print what a small call of a program costs, beside one of a host through the plain gateway, and what a
    large result costs. Return whether it is within its bar."""
    start = [sys.executable, "-P", "-m", "fdstore", "gateway", "--process", "calls"]
    allowed = ["--code", "also", "--code-allow", "*"]
    program = f"for _ in range({CALLS}):\n    await server.echo(text='a small result')"
    plain_ms: list[float] = []
    code_ms: list[float] = []
    with (
        started([*start, "--", *UPSTREAM], FDSTORE_URL=store) as plain,
        started([*start, *allowed, "--", *UPSTREAM], FDSTORE_URL=store) as code,
    ):
        code.call("run_python", code=program)
        for _ in range(ROUNDS):
            for _ in range(CALLS):
                begun = perf_counter()
                plain.call("echo", text="a small result")
                plain_ms.append((perf_counter() - begun) * 1000)
            begun = perf_counter()
            code.call("run_python", code=program)
            code_ms.append((perf_counter() - begun) * 1000 / CALLS)
        added = median(code_ms) - median(plain_ms)
        print(
            f"a small call: {median(plain_ms):.3f} ms by the host, {median(code_ms):.3f} ms in a program of "
            f"{CALLS}: {added:.3f} ms more (bar: {MOST_ADDED_MS} ms)"
        )
        idle = peak_mib(code.process.pid)
        begun = perf_counter()
        said = code.call("run_python", code=f"(await server.megabytes(count={LARGE_MIB})).total_chars")
        took_s = perf_counter() - begun
        print(
            f"a result of {LARGE_MIB} MiB: {said.splitlines()[1]} characters, {took_s:.1f} s, peak "
            f"{(peak_mib(code.process.pid) - idle) / LARGE_MIB:.2f} times its size"
        )
    return added <= MOST_ADDED_MS


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    with TemporaryDirectory() as folder, PrivateServer() as store:
        oks = compare(Path(sys.argv[1]).resolve(), Path(folder), store.url)
        oks.append(measure_calls(store.url))
    return 0 if all(oks) else 1


if __name__ == "__main__":
    sys.exit(main())
