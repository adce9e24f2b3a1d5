"""`fdstore mcp` as a host starts it: a process that speaks on standard input and output."""

from __future__ import annotations

import json
import os
import signal
import socket

import pytest

from fdstore.hosts.mcp.access import DEFAULT_PERMISSIONS, tools_of
from fdstore.store.process_names import process_name_of
from fdstore.tools.catalogue import READING_TOOLS
from tests.acceptance.host import HELLO, Host
from tests.children import Child
from tests.conftest import interpreters_of, is_running
from tests.waiting import PATIENCE_S, wait_until


def test_a_host_starts_it_stores_a_text_and_ends_it(command, store):
    (command.folder / "build.log").write_text("one\ntwo\n")

    with command.start("mcp", "--put-root", ".") as server:
        host = Host(server)
        server.stdin.write(b'this is not JSON\n{"jsonrpc": "2.0"}\n')
        tools = host.tools()
        stored = host.call("put_fd", file="build.log")
        answer = host.answer(host.send("ping"))
        rest, said = server.communicate(timeout=PATIENCE_S)

    assert tools == tools_of(DEFAULT_PERMISSIONS)
    assert 'source="build.log"' in stored
    assert answer["jsonrpc"] == "2.0"
    assert (server.returncode, rest) == (0, b"")
    assert b"Traceback" not in said
    proc = store.process(process_name_of(str(command.folder)))
    assert proc.read("fd:1").text == "one\ntwo\n"


def test_permissions_may_be_given_one_by_one(command):
    with command.start("mcp", "--allow", "read", "--allow", "write") as server:
        tools = Host(server).tools()
        server.communicate(timeout=PATIENCE_S)

    assert tools == tools_of(frozenset({"read", "write"}))


def test_a_host_that_stops_it_does_not_wait(command):
    for number in (signal.SIGTERM, signal.SIGINT):
        with command.start("mcp") as server:
            Host(server)
            server.send_signal(number)
            assert server.wait(PATIENCE_S) == -number


def test_a_request_that_cannot_be_read_is_answered(command):
    with command.start("mcp") as server:
        host = Host(server)

        number = host.send("tools/call", name="read_fd", arguments={"fd": "half a pair: \ud83d"})

        assert host.answer(number)["error"]["code"] == -32700
        assert host.tools()
        server.communicate(timeout=PATIENCE_S)


@pytest.mark.parametrize(
    "params",
    [b'{"a": "a\x01b"}', b"[1]", b'{"a": ' + b"[" * 5000 + b"]" * 5000 + b"}"],
    ids=["control", "list", "deep"],
)
def test_a_request_that_is_no_strict_json_is_answered(command, params):
    with command.start("mcp") as server:
        host = Host(server)

        server.stdin.write(b'{"jsonrpc":"2.0","id":9,"method":"ping","params":%s}\n' % params)
        server.stdin.flush()

        assert host.answer(9)["error"]["code"] == -32700
        server.communicate(timeout=PATIENCE_S)


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_each_request_of_a_batch_is_answered(command, mark):
    with command.start("mcp") as server:
        host = Host(server)

        ping = b'{"jsonrpc":"2.0","id":%d,"method":"ping"}'
        unreadable = b'{"jsonrpc":"2.0","id":9,"method":"ping","params":["\\ud83d"]}'
        note = b'{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}'
        server.stdin.write(mark + b"[%s, %s, %s, 3, [], %s]\n" % (ping % 7, unreadable, note, ping % 8))
        server.stdin.flush()

        answers = {found["id"]: found for found in (json.loads(server.stdout.readline()) for _ in range(3))}
        assert answers[7]["result"] == answers[8]["result"] == {}
        assert answers[9]["error"]["code"] == -32700
        assert host.tools()
        server.communicate(timeout=PATIENCE_S)


@pytest.mark.parametrize("number", [b"1.5", b"1.0", b"true", b"null", b"[1]", b'{"a":"\\ud83d"}'])
def test_a_request_whose_id_is_none_of_the_protocol_is_answered_without_one(command, number):
    with command.start("mcp") as server:
        host = Host(server)

        server.stdin.write(b'{"jsonrpc":"2.0","id":%s,"method":"ping"}\n' % number)
        server.stdin.flush()

        assert json.loads(server.stdout.readline())["error"]["code"] in (-32600, -32700)
        assert host.tools()
        server.communicate(timeout=PATIENCE_S)


def test_a_byte_order_mark_before_a_line_is_no_part_of_it(command):
    with command.start("mcp") as server:
        host = Host(server)

        server.stdin.write(b'\xef\xbb\xbf{"jsonrpc":"2.0","id":9,"method":"ping"}\n')
        server.stdin.flush()

        assert host.answer(9)["result"] == {}
        server.communicate(timeout=PATIENCE_S)


def test_the_store_is_connected_once_a_host_has_been_answered(command):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.setblocking(False)
        url = f"redis://127.0.0.1:{silent.getsockname()[1]}"
        with command.start("--url", url, "mcp", "--process", "any") as server:
            host = Host(server, greets=False)
            host.ask("initialize", **HELLO)
            assert not accepted(silent)

            host.write({"method": "notifications/initialized"})
            wait_until(lambda: accepted(silent), what="a connection")
            server.communicate(timeout=PATIENCE_S)


def accepted(server: socket.socket) -> bool:
    try:
        server.accept()[0].close()
    except BlockingIOError:
        return False
    return True


def test_a_server_whose_input_ends_does_not_wait_for_a_store_that_hangs(command):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"redis://127.0.0.1:{silent.getsockname()[1]}"
        with command.start("--url", url, "mcp", "--process", "any") as server:
            Host(server).send("tools/call", name="list_fds", arguments={})
            silent.accept()

            server.communicate(timeout=PATIENCE_S)

    assert server.returncode == 0


def begin_endless(server: Child[bytes], host: Host) -> tuple[int, int]:
    """Begin a program without end. Return the number of its call, and its interpreter."""
    number = host.send("tools/call", name="run_python", arguments={"code": "kept = 8\nwhile True: pass"})
    found: set[int] = set()
    wait_until(lambda: found.update(interpreters_of(server.pid)) or found)
    [interpreter] = found
    return number, interpreter


def test_code_runs_over_the_texts_and_a_host_cancels_it(command):
    command("put", "build", "-", stdin=b"one\ntwo\n")

    with command.start("mcp", "--process", "build", "--allow", "read,python") as server:
        host = Host(server)
        tools = host.tools()
        first = host.call("run_python", code="kept = fd(1).total_lines\nkept")
        number, interpreter = begin_endless(server, host)
        host.write({"method": "notifications/cancelled", "params": {"requestId": number}})
        wait_until(lambda: not is_running(interpreter))
        second = host.call("run_python", code="kept")
        server.communicate(timeout=PATIENCE_S)

    assert tools == [*READING_TOOLS, "run_python"]
    assert [shown.splitlines()[1] for shown in (first, second)] == ["2", "2"]
    assert server.returncode == 0
    assert command("python", "build", "-c", "kept + 1").out == "3\n"


def test_a_host_that_leaves_while_code_runs_ends_the_server_and_the_code(command):
    with command.start("mcp", "--process", "build", "--allow", "python") as server:
        _, interpreter = begin_endless(server, Host(server))

        server.communicate(timeout=PATIENCE_S)

    assert server.returncode == 0
    wait_until(lambda: not is_running(interpreter))


def test_the_variables_of_a_server_that_is_killed_are_those_before_its_call(command):
    with command.start("mcp", "--process", "build", "--allow", "python") as killed:
        host = Host(killed)
        host.call("run_python", code="kept = 7")
        _, interpreter = begin_endless(killed, host)
        os.kill(killed.pid, signal.SIGKILL)
        killed.wait(PATIENCE_S)

    wait_until(lambda: not is_running(interpreter))
    with command.start("mcp", "--process", "build", "--allow", "python") as server:
        assert Host(server).call("run_python", code="kept").splitlines()[1] == "7"
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


@pytest.mark.thorough("a new interpreter")
def test_without_the_interpreter_the_server_says_how_to_install_it(command):
    done = command.python(WITHOUT_INTERPRETER)

    assert done.code == 1
    assert "pip install '.[python]'" in done.err
    assert "Traceback" not in done.err
