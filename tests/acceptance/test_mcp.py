"""`fdstore mcp` as a host starts it: a process that speaks on standard input and output."""

from __future__ import annotations

import json
import os
import signal
import socket
from typing import Any

import fdstore
from fdstore.integrations.mcp.access import DEFAULT_PERMISSIONS, tools_of
from fdstore.integrations.process_name import process_name_of
from tests.acceptance.conftest import Command
from tests.children import Child
from tests.conftest import interpreters_of, is_running
from tests.waiting import PATIENCE_S, wait_until

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


def run_python(server: Child[bytes], number: int, code: str) -> str:
    """Run code, and return what the model sees."""
    shown: str = ask(server, number, "tools/call", name="run_python", arguments={"code": code})["content"][0][
        "text"
    ]
    return shown


def begin_endless(server: Child[bytes], number: int) -> int:
    """Begin a program without end, and return its interpreter."""
    code = "kept = 8\nwhile True: pass"
    send(server, number, "tools/call", name="run_python", arguments={"code": code})
    wait_until(lambda: interpreters_of(server.pid))
    [interpreter] = interpreters_of(server.pid)
    return interpreter


def test_code_runs_over_the_texts_and_a_host_cancels_it(command: Command) -> None:
    command("put", "build", "-", stdin=b"one\ntwo\n")

    with command.start("mcp", "--process", "build", "--allow", "read,python") as server:
        ask(server, 1, "initialize", **HELLO)
        tools = [tool["name"] for tool in ask(server, 2, "tools/list")["tools"]]
        first = run_python(server, 3, "kept = fd(1).total_lines\nkept")
        interpreter = begin_endless(server, 4)
        assert server.stdin is not None
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 4}}
        server.stdin.write(json.dumps(cancel).encode() + b"\n")
        server.stdin.flush()
        wait_until(lambda: not is_running(interpreter))
        second = run_python(server, 5, "kept")
        server.communicate(timeout=PATIENCE_S)

    assert tools == ["read_fd", "search_fd", "list_fds", "run_python"]
    assert [shown.splitlines()[1] for shown in (first, second)] == ["2", "2"]
    assert server.returncode == 0
    assert command("python", "build", "-c", "kept + 1").out == "3\n"


def test_a_host_that_leaves_while_code_runs_ends_the_server_and_the_code(command: Command) -> None:
    with command.start("mcp", "--process", "build", "--allow", "python") as server:
        ask(server, 1, "initialize", **HELLO)
        interpreter = begin_endless(server, 2)

        server.communicate(timeout=PATIENCE_S)

    assert server.returncode == 0
    wait_until(lambda: not is_running(interpreter))


def test_the_variables_of_a_server_that_is_killed_are_those_before_its_call(command: Command) -> None:
    with command.start("mcp", "--process", "build", "--allow", "python") as killed:
        ask(killed, 1, "initialize", **HELLO)
        run_python(killed, 2, "kept = 7")
        interpreter = begin_endless(killed, 3)
        os.kill(killed.pid, signal.SIGKILL)
        killed.wait(PATIENCE_S)

    wait_until(lambda: not is_running(interpreter))
    with command.start("mcp", "--process", "build", "--allow", "python") as server:
        ask(server, 1, "initialize", **HELLO)
        assert run_python(server, 2, "kept").splitlines()[1] == "7"
        server.communicate(timeout=PATIENCE_S)


WITHOUT_INTERPRETER = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name == "pydantic_monty":
            raise ImportError(name)
sys.meta_path.insert(0, Hidden())
sys.argv[1:] = ["mcp", "--allow", "read,python"]
from fdstore.__main__ import main
main()
"""


def test_without_the_interpreter_the_server_says_how_to_install_it(command: Command) -> None:
    done = command.python(WITHOUT_INTERPRETER)

    assert done.code == 1
    assert "pip install '.[python]'" in done.err
    assert "Traceback" not in done.err
