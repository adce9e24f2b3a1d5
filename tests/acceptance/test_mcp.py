"""`fdstore mcp` as a host starts it: a process that speaks on standard input and output."""

from __future__ import annotations

import json
import signal
from typing import Any

import fdstore
from fdstore.integrations.process_name import process_name_of
from tests.acceptance.conftest import Command
from tests.children import Child

HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "host", "version": "1"},
}


def ask(server: Child[bytes], number: int, method: str, **params: Any) -> Any:
    """Send a request and return its result. Every line that comes meanwhile is a message of the protocol."""
    assert server.stdin is not None
    assert server.stdout is not None
    request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    server.stdin.write(json.dumps(request).encode() + b"\n")
    server.stdin.flush()
    while True:
        answer = json.loads(server.stdout.readline())
        assert answer["jsonrpc"] == "2.0"
        if answer.get("id") == number:
            return answer["result"]


def test_a_host_starts_it_stores_a_text_and_ends_it(command: Command, store: fdstore.Store) -> None:
    (command.folder / "build.log").write_text("one\ntwo\n")

    with command.start("mcp", "--put-root", ".") as server:
        ask(server, 1, "initialize", **HELLO)
        assert server.stdin is not None
        server.stdin.write(b'this is not JSON\n{"jsonrpc": "2.0"}\n')
        tools = [tool["name"] for tool in ask(server, 2, "tools/list")["tools"]]
        stored = ask(server, 3, "tools/call", name="put_fd", arguments={"file": "build.log"})
        rest, said = server.communicate(timeout=60)

    assert tools == ["read_fd", "search_fd", "list_fds", "write_fd", "put_fd", "close_fd"]
    assert 'source="build.log"' in stored["content"][0]["text"]
    assert (server.returncode, rest) == (0, b"")
    assert b"Traceback" not in said
    proc = store.process(process_name_of(str(command.folder)))
    assert proc.read("fd:1").text == "one\ntwo\n"


def test_a_host_that_stops_it_does_not_wait(command: Command) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        with command.start("mcp") as server:
            ask(server, 1, "initialize", **HELLO)
            server.send_signal(number)
            assert server.wait(timeout=30) == -number
