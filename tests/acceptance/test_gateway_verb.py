"""`fdstore gateway` as a host runs it, and the configuration that it writes for hosts."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from fdstore.integrations.process_name import process_name_of
from tests.conftest import is_running
from tests.waiting import wait_until

UPSTREAM = Path(__file__).parents[1] / "mcp_upstream.py"
SERVER = [sys.executable, "-I", "-S", str(UPSTREAM)]


def request(tool: str, **arguments: object) -> bytes:
    params = {"name": tool, "arguments": arguments}
    return json.dumps({"id": 1, "method": "tools/call", "params": params}).encode() + b"\n"


def test_a_host_that_only_writes_gets_its_answer(command, store):
    ended = command("gateway", "--", *SERVER, stdin=request("lines", count=5000))

    assert ended.code == 0, ended.err
    [line] = ended.lines
    assert "<fd_result" in json.loads(line)["result"]["content"][0]["text"]
    assert [tree.id for tree in store.trees()] == [process_name_of(str(command.folder))]


def test_the_exit_code_is_that_of_the_server(command):
    ended = command("gateway", "--process", "p", "--", *SERVER, stdin=request("exit", code=7))

    assert ended.code == 7
    assert "exited with code 7" in json.loads(ended.lines[0])["error"]["message"]


def test_a_signal_ends_the_server_too(command):
    with command.start("gateway", "--process", "p", "--", *SERVER) as gateway:
        gateway.stdin.write(request("pid"))
        gateway.stdin.flush()
        pid = json.loads(gateway.stdout.readline())["result"]["pid"]

        gateway.send_signal(signal.SIGTERM)

        assert gateway.wait() == 128 + signal.SIGTERM
        wait_until(lambda: not is_running(pid), what="the end of the server")


def test_a_command_that_does_not_exist_is_named(command):
    ended = command("gateway", "--", "no-such-server")

    assert ended.code == 1
    assert "no-such-server cannot be started" in ended.err


def test_a_configuration_is_wrapped_in_place_once_and_unwrapped(command):
    file = command.folder / "mcp.json"
    config = {
        "mcpServers": {
            "git": {"command": "git-mcp", "env": {"A": "1"}},
            "docs": {"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "s"}},
            "old": {"type": "sse", "url": "https://example.com/sse"},
        }
    }
    file.write_text(json.dumps(config, indent=4))
    file.chmod(0o600)

    assert command("gateway", "--wrap", file).lines == [
        "wrapped    git: git-mcp",
        "wrapped    docs: https://example.com/mcp",
        "left       old: the gateway does not speak its transport, sse",
    ]
    wrapped = file.read_text()
    assert '\n    "mcpServers"' in wrapped
    assert file.stat().st_mode & 0o777 == 0o600
    again = command("gateway", "--wrap", file, "--out", "-")
    assert (again.out, file.read_text()) == (wrapped, wrapped)
    options = ("--process", "p", "--max-read-chars", "9000")
    command("gateway", "--unwrap", file)
    chosen = json.loads(command("gateway", "--wrap", file, "--out", "-", *options).out)
    assert chosen["mcpServers"]["git"]["args"][-7:] == ["gateway", *options, "--", "git-mcp"]
    command("gateway", "--wrap", file)
    undone = command("gateway", "--unwrap", file, "--json")
    assert [json.loads(line)["action"] for line in undone.lines] == ["unwrapped", "unwrapped", "left"]
    assert json.loads(file.read_text()) == config


def test_wrong_usage_is_refused(command):
    (command.folder / "odd.json").write_text("{")
    os.mkfifo(command.folder / "pipe.json")

    for arguments in (
        [],
        ["--http", "x"],
        ["--listen", "127.0.0.1:0", "--", "x"],
        ["--http", "http://x/", "--", "x"],
        ["--http", "http://127.0.0.1:1/", "--listen", "0.0.0.0:0"],
    ):
        assert command("gateway", *arguments).code == 2, arguments
    assert command("gateway", "--wrap", "odd.json").code == 1
    assert command("gateway", "--wrap", "missing.json").code == 1
    assert "not a regular file" in command("gateway", "--wrap", "pipe.json").err
