"""`fdstore gateway` as a host runs it, and the configuration that it writes for hosts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
import redis

from fdstore.hosts.gateway.tool_list import CODE_TOOLS
from fdstore.local.redis_server import PrivateServer
from fdstore.store.process_names import process_name_of
from fdstore.tools.catalogue import READING_TOOLS
from tests.acceptance.conftest import peak_bytes
from tests.acceptance.host import Host
from tests.conftest import is_running
from tests.mcp_http_upstream import Upstream, served
from tests.waiting import PATIENCE_S, wait_until

UPSTREAM = Path(__file__).parents[1] / "mcp_upstream.py"
SERVER = [sys.executable, "-I", "-S", str(UPSTREAM)]
CODE_SERVER = [*SERVER[:-1], str(UPSTREAM.with_name("code_upstream.py"))]


LISTING = json.dumps({"id": 1, "method": "tools/list"}).encode() + b"\n"


def request(tool: str, **arguments: object) -> bytes:
    params = {"name": tool, "arguments": arguments}
    return json.dumps({"id": 2, "method": "tools/call", "params": params}).encode() + b"\n"


def test_a_host_that_only_writes_gets_its_answer(command, store):
    ended = command("gateway", "--", *SERVER, stdin=LISTING + request("lines", count=5000))

    assert ended.code == 0, ended.err
    [line] = [each for each in ended.lines if json.loads(each)["id"] == 2]
    assert "<fd_result" in json.loads(line)["result"]["content"][0]["text"]
    assert [tree.id for tree in store.trees()] == [process_name_of(str(command.folder))]


def test_the_exit_code_is_that_of_the_server(command):
    ended = command("gateway", "--process", "p", "--", *SERVER, stdin=request("exit", code=7))

    assert ended.code == 7
    assert "exited with code 7" in json.loads(ended.lines[0])["error"]["message"]


def test_a_signal_ends_the_server_too(command):
    with command.start("gateway", "--process", "p", "--", *SERVER) as gateway:
        pid = Host(gateway, greets=False).ask("tools/call", name="pid")["pid"]

        gateway.send_signal(signal.SIGTERM)

        assert gateway.wait() == 128 + signal.SIGTERM
        wait_until(lambda: not is_running(pid), what="the end of the server")


def test_a_signal_that_comes_just_before_a_wait_ends_it(command):
    with command.start("gateway", "--process", "p", "--", *SERVER) as gateway:
        Host(gateway, greets=False).ask("tools/call", name="pid")

        gateway.signal_beside_main(signal.SIGTERM)

        assert gateway.wait(PATIENCE_S) == 128 + signal.SIGTERM


def test_a_signal_ends_the_session_of_a_server_by_http(command):
    upstream = Upstream()
    start = ("gateway", "--process", "p", "--http")
    with served(upstream) as url, command.start(*start, url) as gateway:
        Host(gateway).tools()  # when it is answered, the server has all that came before

        gateway.send_signal(signal.SIGTERM)

        assert gateway.wait() == 128 + signal.SIGTERM
        assert upstream.requests[-1][0] == "DELETE /mcp"


def take_at_most_two_and_a_half_times_its_memory(gateway, ask, tool):
    """Ask for a result of sixty megabytes after a small one, and compare the memory of the gateway."""

    def peak_after(tool: str, count: int) -> int:
        assert ask(tool, count=count).startswith("<fd_result")
        return peak_bytes(gateway.pid)

    idle = peak_after(tool, 1)
    return peak_after(tool, 60) - idle < 2.5 * (60 << 20)


@pytest.mark.thorough("a bound of memory, at many megabytes")
@pytest.mark.parametrize("tool", ["megabytes of rows", "megabytes"])
def test_a_result_of_sixty_megabytes_takes_at_most_two_and_a_half_times_its_memory(command, tool):
    with command.start("gateway", "--process", "p", "--", *SERVER) as gateway:
        host = Host(gateway, greets=False)
        host.tools()

        assert take_at_most_two_and_a_half_times_its_memory(gateway, host.call, tool)


@pytest.mark.thorough("a bound of memory, at many megabytes")
@pytest.mark.parametrize("tool", ["megabytes_stream", "megabytes"])
@pytest.mark.parametrize("is_listening", [True, False])
def test_a_result_by_http_takes_at_most_two_and_a_half_times_its_memory(command, tool, is_listening):
    """As JSON and as an event of a stream, for a host on standard input and for one that speaks HTTP."""
    start = ["gateway", "--process", "p", *(["--listen", "127.0.0.1:0"] if is_listening else [])]
    with served(Upstream()) as upstream, command.start(*start, "--http", upstream) as gateway:
        url = gateway.stderr.readline().decode().split()[-1] if is_listening else ""

        def post(tool: str, **arguments: object) -> str:
            said = httpx2.post(url, content=request(tool, **arguments), timeout=PATIENCE_S).text
            return json.loads(said[said.index("{") :].strip())["result"]["content"][0]["text"]

        if is_listening:
            httpx2.post(url, content=LISTING)
            ask = post
        else:
            host = Host(gateway, greets=False)
            host.tools()
            ask = host.call
        assert take_at_most_two_and_a_half_times_its_memory(gateway, ask, tool)
        gateway.terminate()


def test_a_command_that_does_not_exist_is_named(command):
    ended = command("gateway", "--", "no-such-server")

    assert ended.code == 1
    assert "no-such-server cannot be started" in ended.err


def test_a_configuration_is_wrapped_in_place_once_and_unwrapped(command):
    file = command.folder / "mcp.json"
    config = {
        "mcpServers": {
            "fd": {"command": sys.executable, "args": ["-P", "-m", "fdstore", "mcp"]},
            "git": {"command": "git-mcp", "env": {"A": "1"}},
            "docs": {"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "s"}},
            "old": {"type": "sse", "url": "https://example.com/sse"},
        }
    }
    before = "// of the team\r\n" + json.dumps(config, indent=4)
    file.write_bytes(before.encode())
    file.chmod(0o600)

    assert command("gateway", "--wrap", file).lines == [
        "left       fd: it is fdstore itself",
        "wrapped    git: git-mcp",
        "wrapped    docs: https://example.com/mcp",
        "left       old: the gateway does not speak its transport, sse",
    ]
    wrapped = file.read_bytes().decode()
    assert '\n    "mcpServers"' in wrapped
    assert file.stat().st_mode & 0o777 == 0o600
    again = command("gateway", "--wrap", file, "--out", "-")
    assert file.read_bytes().decode() == again.out.removesuffix("\n") == wrapped
    options = ("--process", "p", "--max-read-chars", "9000")
    command("gateway", "--unwrap", file)
    chosen = json.loads(command("gateway", "--wrap", file, "--out", "-", *options).out.partition("\n")[2])
    assert chosen["mcpServers"]["git"]["args"][-7:] == ["gateway", *options, "--", "git-mcp"]
    assert chosen["mcpServers"]["git"]["command"] == sys.executable
    command("gateway", "--wrap", file)
    undone = command("gateway", "--unwrap", file, "--json")
    assert [each["action"] for each in undone.documents] == ["left", "unwrapped", "unwrapped", "left"]
    assert file.read_bytes().decode() == before


def test_wrapping_says_what_to_install_where_no_server_can_start(make_command):
    hopeless = make_command(FDSTORE_REDIS_SERVER="/no-such-server")
    hopeless.environment.pop("FDSTORE_URL", None)
    elsewhere = make_command(FDSTORE_REDIS_SERVER="/no-such-server", FDSTORE_URL="redis://127.0.0.1:1")
    file = hopeless.folder / "mcp.json"
    file.write_text('{"mcpServers": {"git": {"command": "git-mcp"}}}')

    said = hopeless("gateway", "--wrap", file)
    silent = [hopeless("gateway", "--unwrap", file), elsewhere("gateway", "--wrap", file)]

    assert said.lines == ["wrapped    git: git-mcp"]
    [line] = said.err.splitlines()
    assert "FDSTORE_REDIS_SERVER is /no-such-server" in line
    assert [each.err for each in silent] == ["", ""]


@pytest.mark.parametrize("options", [(), ("--listen", "127.0.0.1:0")])
def test_a_proxy_that_cannot_be_used_is_one_line(make_command, options):
    command = make_command(ALL_PROXY="socks5://127.0.0.1:7891", NO_PROXY="localhost,fe80::/10")

    ended = command("gateway", "--http", "https://example.com/mcp", *options)

    assert (ended.code, ended.out) == (1, "")
    [line] = ended.err.splitlines()
    assert line.startswith("fdstore: invalid_argument: --http: $ALL_PROXY is a SOCKS proxy")


def test_a_server_on_this_machine_needs_no_proxy(make_command):
    command = make_command(ALL_PROXY="socks5://127.0.0.1:7891", NO_PROXY="localhost,fe80::/10")
    with served(Upstream()) as upstream:
        ended = command("gateway", "--process", "p", "--http", upstream, stdin=request("other"))
    command("down")

    assert ended.code == 0, ended.err
    assert json.loads(ended.lines[0])["result"] == {"n": 1.5}


@pytest.mark.thorough("new interpreters")
def test_a_wrapped_server_does_not_import_a_module_of_the_project(command):
    (command.folder / "fdstore.py").write_text("raise SystemExit('the project was imported')")
    file = command.folder / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"it": {"command": SERVER[0], "args": SERVER[1:]}}}))
    command("gateway", "--wrap", file)
    entry = json.loads(file.read_text())["mcpServers"]["it"]

    ended = subprocess.run(
        [entry["command"], *entry["args"]],
        input=request("lines", count=1),
        cwd=command.folder,
        env=command.environment,
        capture_output=True,
        check=False,
    )

    assert ended.returncode == 0, ended.stderr
    assert b'"result"' in ended.stdout


def listed_tools(command, *options):
    ended = command("gateway", "--process", "p", *options, "--", *SERVER, stdin=LISTING)
    tools = json.loads(ended.lines[0])["result"]["tools"]
    return {tool["name"]: tool["annotations"]["readOnlyHint"] for tool in tools if "_fd" in tool["name"]}


def test_the_host_sees_no_tools_of_ours_or_those_that_read_or_all(command):
    reading = dict.fromkeys(READING_TOOLS, True)

    assert listed_tools(command, "--tools", "none") == {}
    assert listed_tools(command) == listed_tools(command, "--tools", "read") == reading
    everything = listed_tools(command, "--tools", "all")
    assert everything == {**reading, "put_fd": False, "write_fd": False, "close_fd": False}


def test_with_code_a_program_calls_the_servers_tools(command):
    program = request("run_python", code="text = await logs.lines(count=7)\nlen(text.splitlines())")

    def answers(*options):
        ended = command("gateway", "--process", "p", *options, "--", *SERVER, stdin=LISTING + program)
        found = {each["id"]: each["result"] for each in map(json.loads, ended.lines)}
        return [tool["name"] for tool in found[1]["tools"]], found[2]["content"][0]["text"]

    allowed = ["--name", "logs", "--code-allow", "logs.lines"]
    names, shown = answers("--code", *allowed)
    assert names == ["echo", "lines", *READING_TOOLS, *CODE_TOOLS]
    assert "\n7\n" in shown
    names, shown = answers("--code", "only", "--name", "logs")
    assert names == [*CODE_TOOLS]
    assert "--code-allow logs.lines" in shown


def write_servers(command, upstream):
    """Write a configuration with a server by command and one by HTTP."""
    file = command.folder / "mcp.json"
    code = {"command": CODE_SERVER[0], "args": [*CODE_SERVER[1:]], "env": {"NAME": "${WHO:-nobody}"}}
    headers = {"Authorization": "Bearer ${TOKEN}"}
    by_http = {"type": "http", "url": upstream, "headers": headers}
    old = {"type": "sse", "url": upstream}
    config = {"mcpServers": {"my-code": code, "docs": by_http, "old": old}}
    file.write_text("// ours\n" + json.dumps(config, indent=2))
    return file


def test_all_servers_of_a_configuration_are_one_for_the_host_and_its_programs(command):
    upstream = Upstream()
    upstream.tools = [{"name": "lines", "inputSchema": {}, "annotations": {"readOnlyHint": True}}]
    command.environment |= {"TOKEN": "t0", "WHO": "ann"}
    with served(upstream) as url:
        file = write_servers(command, url)
        start = ["gateway", "--process", "p", "--code", "only", "--config", file]
        with command.start(*start) as gateway:
            host = Host(gateway)

            assert host.tools() == [*CODE_TOOLS]
            assert "'ann'" in host.call("run_python", code="await my_code.name()")
            assert "\n5000\n" in host.call("run_python", code="len((await docs.lines()).splitlines())")
            gateway.stdin.close()
            said = gateway.stderr.read().decode()
            assert gateway.wait() == 0

    assert said.splitlines() == [
        "fdstore gateway: the server old is left out: the gateway does not speak its transport, sse"
    ]
    [headers] = [head for _, head, body in upstream.requests if body.get("method") == "tools/call"]
    assert headers["authorization"] == "Bearer t0"


@pytest.mark.thorough("many commands")
def test_one_gateway_takes_the_place_of_all_servers_and_gives_it_back(command):
    with served(Upstream()) as url:
        file = write_servers(command, url)
        before = file.read_text()
        assert command("gateway", "--wrap", file, "--code", "only", "--code-allow", "*").lines == [
            "wrapped    my-code: behind fdstore",
            "wrapped    docs: behind fdstore",
            "left       old: the gateway does not speak its transport, sse",
        ]
        servers = json.loads(file.read_text().partition("\n")[2])["mcpServers"]
        assert list(servers) == ["fdstore", "old"]
        entry = servers["fdstore"]
        assert entry["args"] == ["-P", "-m", "fdstore", "gateway", "--code", "only", "--code-allow", "*"]
        command.environment |= {**entry["env"], "TOKEN": "t0"}
        with command.start(*entry["args"][3:]) as gateway:
            host = Host(gateway)
            assert "'nobody'" in host.call("run_python", code="await my_code.name()")
            gateway.stdin.close()
            assert gateway.wait() == 0

    assert command("gateway", "--unwrap", file).lines == [
        "unwrapped  my-code: was behind fdstore",
        "unwrapped  docs: was behind fdstore",
    ]
    assert file.read_text() == before


@pytest.mark.thorough("new interpreters, one after the other")
def test_wrong_usage_is_refused(command):
    (command.folder / "odd.json").write_text("{")
    (command.folder / "none.json").write_text('{"mcpServers": {}}')
    os.mkfifo(command.folder / "pipe.json")

    for line in (
        "",
        "--http x",
        "--listen 127.0.0.1:0 -- x",
        "--http http://x/ -- x",
        "--http http://127.0.0.1:1/ --listen 0.0.0.0:0",
        "--code-allow * -- x",
        "--name docs -- x",
        "--code --name my-docs -- x",
        "--code some -- x",
        "--config odd.json",
        "--config missing.json",
        "--config none.json",
        "--config none.json -- x",
        "--config none.json --http http://127.0.0.1:1/",
        "--config none.json --code --name docs",
        "--wrap none.json --config none.json",
        "--wrap none.json --code-allow a.*",
        "--http http://127.0.0.1:1/ --header X-A:é",
        "--http http://127.0.0.1:1/ --header A\u00a0B:x",
    ):
        assert command("gateway", *line.split()).code == 2, line
    assert command("gateway", "--wrap", "odd.json").code == 1
    assert command("gateway", "--wrap", "missing.json").code == 1
    assert "not a regular file" in command("gateway", "--wrap", "pipe.json").err


@pytest.mark.thorough("many megabytes")
def test_a_result_whose_storing_is_in_doubt_does_not_answer_another_call(command):
    with PrivateServer() as server, redis.Redis.from_url(server.url) as client:
        pid = client.info("server")["process_id"]
        command.environment["FDSTORE_URL"] = server.url
        with command.start("gateway", "--process", "p", "--", *SERVER) as gateway:
            host = Host(gateway, greets=False)
            host.tools()
            ask = host.call

            assert ask("lines", count=5000).startswith('<fd_result fd="fd:1"')
            os.kill(pid, signal.SIGSTOP)
            try:
                passed = ask("lines", count=5001)
                read = ask("read_fd", fd="fd:1#L2")
            finally:
                os.kill(pid, signal.SIGCONT)
            wait_until(lambda: "\nline 2\n" in ask("read_fd", fd="fd:1#L2"), what="the store")
            gateway.stdin.close()
            gateway.wait()

    assert passed.endswith("\nline 5001\n")
    assert read.startswith('<fd_error type="store_unavailable"')
