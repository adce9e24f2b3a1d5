"""`fdstore mcp` as a host starts it: a process that speaks on standard input and output."""

from __future__ import annotations

import json
import signal
import socket
from typing import Any

import fdstore
from fdstore.integrations.mcp.access import DEFAULT_PERMISSIONS, tools_of
from fdstore.integrations.process_name import process_name_of
from tests.acceptance.conftest import Command
from tests.children import Child
from tests.waiting import PATIENCE_S

HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "host", "version": "1"},
}


def send(server: Child[bytes], number: int, method: str, **params: Any) -> None:
    """Send a request."""
    assert server.stdin is not None
    request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    server.stdin.write(json.dumps(request).encode() + b"\n")
    server.stdin.flush()


def answer_to(server: Child[bytes], number: int) -> Any:
    """Wait for an answer. Every line that comes meanwhile is a message of the protocol."""
    assert server.stdout is not None
    while True:
        answer = json.loads(server.stdout.readline())
        assert answer["jsonrpc"] == "2.0"
        if answer.get("id") == number:
            return answer


def ask(server: Child[bytes], number: int, method: str, **params: Any) -> Any:
    """Send a request and return its result."""
    send(server, number, method, **params)
    return answer_to(server, number)["result"]


def test_a_host_starts_it_stores_a_text_and_ends_it(command: Command, store: fdstore.Store) -> None:
    (command.folder / "build.log").write_text("one\ntwo\n")

    with command.start("mcp", "--put-root", ".") as server:
        ask(server, 1, "initialize", **HELLO)
        assert server.stdin is not None
        server.stdin.write(b'this is not JSON\n{"jsonrpc": "2.0"}\n')
        tools = [tool["name"] for tool in ask(server, 2, "tools/list")["tools"]]
        stored = ask(server, 3, "tools/call", name="put_fd", arguments={"file": "build.log"})
        rest, said = server.communicate(timeout=PATIENCE_S)

    assert tools == tools_of(DEFAULT_PERMISSIONS)
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
            assert server.wait(PATIENCE_S) == -number


def test_a_request_that_cannot_be_read_is_answered(command: Command) -> None:
    with command.start("mcp") as server:
        ask(server, 1, "initialize", **HELLO)

        send(server, 2, "tools/call", name="read_fd", arguments={"fd": "half a pair: \ud83d"})

        assert answer_to(server, 2)["error"]["code"] == -32700
        assert ask(server, 3, "tools/list")["tools"]
        server.communicate(timeout=PATIENCE_S)


def test_a_server_whose_input_ends_does_not_wait_for_a_store_that_hangs(command: Command) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"redis://127.0.0.1:{silent.getsockname()[1]}"
        with command.start("--url", url, "mcp", "--process", "any") as server:
            ask(server, 1, "initialize", **HELLO)
            send(server, 2, "tools/call", name="list_fds", arguments={})
            silent.accept()

            server.communicate(timeout=PATIENCE_S)

    assert server.returncode == 0
