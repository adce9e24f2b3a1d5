"""The gateway between a host and a server as a child process."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from fdstore.client import Store
from fdstore.hosts.gateway.descriptors import Descriptors
from fdstore.hosts.gateway.json_texts import LONG_BYTES
from fdstore.hosts.gateway.lines import read_lines
from fdstore.hosts.gateway.options import GatewayOptions
from fdstore.hosts.gateway.relay import Relay
from fdstore.hosts.gateway.upstream import UpstreamProcess
from fdstore.local.redis_server import PrivateServer
from fdstore.tools.catalogue import READING_TOOLS
from tests.conftest import is_running
from tests.on_redis.integrations.hosts import PROJECT, PipedHost
from tests.outages import SilentServer
from tests.thorough import thorough
from tests.waiting import wait_until

UPSTREAM = Path(__file__).parents[2] / "mcp_upstream.py"


class Host(PipedHost):
    """An MCP host and a gateway with one upstream server. `said`: the gateway's messages to the operator."""

    def __init__(self, url: str, *arguments: str, launcher: Sequence[str] = ()) -> None:
        self.said: list[str] = []
        descriptors = Descriptors(GatewayOptions(), PROJECT, self.said.append, url=url)
        self.server = UpstreamProcess([*launcher, sys.executable, "-I", "-S", str(UPSTREAM), *arguments])
        descriptors.start()
        grace_s = 0.2 if "stubborn" in arguments else 10
        super().__init__(lambda **fds: Relay(self.server, descriptors, grace_s=grace_s, **fds))


TOOLS = ["echo", "lines", *READING_TOOLS]


@pytest.fixture
def make_host(redis_url: str) -> Iterator[Callable[..., Host]]:
    hosts: list[Host] = []

    def make(
        *arguments: str, url: str = redis_url, launcher: Sequence[str] = (), sees_tools: bool = True
    ) -> Host:
        host = Host(url, *arguments, launcher=launcher)
        hosts.append(host)
        if sees_tools:
            host.see_tools()
        return host

    yield make
    for host in hosts:
        host.close()


@pytest.fixture
def host(make_host: Callable[..., Host]) -> Host:
    return make_host()


def test_a_long_result_is_a_descriptor_that_the_model_reads(host: Host, store: Store) -> None:
    host.send("tools/list")
    assert [tool["name"] for tool in host.read()["result"]["tools"]] == TOOLS

    shown = host.text("lines", count=5000)

    assert len(shown) < 6000
    assert shown.startswith('<fd_result fd="fd:1" ')
    assert "\nline 4321\n" in host.text("read_fd", fd="fd:1#L4321")
    assert store.process("triage").read("fd:1", read_all=True).text.endswith("\nline 5000\n")
    assert [d.source for d in store.process("triage").list()] == ["lines"]


def test_a_long_result_that_failed_is_a_descriptor_that_failed(host: Host) -> None:
    result = host.call("lines", count=5000, fails=True)

    assert result["isError"]
    assert "<fd_result" in result["content"][0]["text"]


def test_a_host_that_was_not_shown_our_tools_gets_results_as_they_are(make_host: Callable[..., Host]) -> None:
    host = make_host(sees_tools=False)
    for _ in range(2):
        assert len(host.text("lines", count=5000)) > 40_000
    [said] = host.said
    assert "the host has not asked for tools/list" in said

    assert "<fd_list" in host.text("list_fds")  # it knows them from before the gateway began

    assert host.text("lines", count=5000).startswith("<fd_result")


def test_a_short_result_passes_byte_for_byte(host: Host) -> None:
    line = b'{"id" : 1,"result":{"content":[{"type":"text","text":"\\u00e9"}],"n":1.50e1}}\r\n'

    host.begin("raw", text=line.decode())

    assert next(host.lines) == line


def test_stored_content_is_passed_on_to_a_tool(host: Host) -> None:
    host.text("lines", count=5000)

    assert host.text("echo", text="<{{fd:1#L7-8}}>") == "<line 7\nline 8\n>"
    assert '<fd_error type="not_found"' in host.text("echo", text="{{fd:9}}")
    assert '<fd_error type="not_found"' in host.text("read_fd", fd="fd:9")


ODD = [r'"\ud83d"', "NaN", "1e400", '"\x01"', "[" * 5000 + "]" * 5000]


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("mark", ["", *thorough("with a mark", "\ufeff")])
def test_a_long_result_beside_what_is_no_strict_json_is_stored(
    host: Host, store: Store, odd: str, mark: str
) -> None:
    lines = "a line\n" * 5000
    result = json.dumps({"content": [{"type": "text", "text": lines}], "_meta": {"odd": 0}})
    line = f'{mark}{{"id":1,"result":{result.replace("0}}", odd + "}}")}}}\n'

    host.begin("raw", text=line)
    shown = bytes(next(host.lines)).decode()

    assert f'"_meta":{{"odd": {odd}}}' in shown
    assert shown.startswith('{"id":1,"result":{"content":[{"type":"text","text":"<fd_result fd=\\"fd:1\\"')
    assert store.process("triage").read("fd:1", read_all=True).text == lines
    assert host.said == []


def test_what_cannot_be_read_passes_once_and_the_operator_is_told_once(host: Host) -> None:
    line = json.dumps({"id": 1, "result": {"content": [{"type": "text", "text": "x" * 9000}]}})
    broken = line.replace("1,", "1,,") + "\n"

    host.begin("raw", text=broken * 2)
    host.begin("echo", text="after")

    assert [bytes(next(host.lines)).decode() for _ in range(2)] == [broken] * 2
    assert host.read()["result"]["content"][0]["text"] == "after"
    assert host.said == ["a message of the server passes as it came: it is not JSON"]


def test_without_a_list_of_tools_a_long_result_passes_and_the_operator_is_told(redis_url: str) -> None:
    said: list[str] = []
    descriptors = Descriptors(GatewayOptions(), PROJECT, said.append, url=redis_url)
    descriptors.start()
    server = UpstreamProcess([sys.executable, "-I", "-S", str(UPSTREAM)])
    host = PipedHost(lambda **fds: Relay(server, descriptors, **fds))

    assert host.text("lines", count=5000).startswith("line 1\n")
    assert host.text("lines", count=5000).endswith("line 5000\n")
    host.close()
    assert len(said) == 1
    assert said[0].startswith("a long result passes unchanged: the host has not asked for tools/list")


@pytest.mark.parametrize("megabytes", thorough("many megabytes", 9, 25))
def test_a_text_of_many_megabytes_is_stored_exactly(host: Host, store: Store, megabytes: int) -> None:
    shown = host.text("megabytes", count=megabytes)

    assert shown.startswith('<fd_result fd="fd:1" ')
    [stored] = store.process("triage").list()
    assert stored.chars == megabytes << 20


@pytest.mark.thorough("a bound of time")
@pytest.mark.parametrize(
    "begin",
    ['{"id":1,"result":{"content":[],"x":[', '{"id":1,"result":{"content":[', "["],
)
def test_a_message_of_many_brackets_holds_nobody_up(host: Host, begin: str) -> None:
    nested = '"structuredContent":{' * ((LONG_BYTES + 4096) // 21)

    host.begin("raw", text=f"{begin}{nested}\n")
    host.begin("echo", text="after")

    passed = [bytes(next(host.lines)).decode() for _ in range(2)]
    assert f"{begin}{nested}\n" in passed
    assert any('"after"' in line for line in passed)


def test_an_incomplete_last_line_passes(host: Host) -> None:
    host.begin("raw", text='{"id": 1, "resu')
    host.begin("exit", code=0)

    lines = [next(host.lines) for _ in range(2)]

    assert lines[0].startswith(b'{"id": 1, "resu')


def test_a_cancellation_reaches_a_server_that_hangs(host: Host) -> None:
    host.begin("never")
    host.tell("notifications/cancelled", requestId=1)

    assert host.read()["result"] == {"cancelled": True}


def test_a_call_of_ours_in_a_batch_is_answered_and_reaches_no_server(host: Host) -> None:
    host.text("lines", count=5000)

    def call(id: str, tool: str, **arguments: Any) -> dict[str, Any]:
        return {"id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}

    host.write_batch(
        call("ours", "read_fd", fd="fd:1#L7"),
        call("expanded", "echo", text="<{{fd:1#L8}}>"),
        call("theirs", "echo", text="hi"),
    )

    answers = {each["id"]: each["result"]["content"][0]["text"] for each in (host.read() for _ in range(3))}
    assert "\nline 7\n" in answers["ours"]
    assert (answers["expanded"], answers["theirs"]) == ("<line 8\n>", "hi")


def test_a_cancellation_never_overtakes_the_call_that_waits_for_stored_content(host: Host) -> None:
    host.text("lines", count=5000)
    calls = [f"call {number}" for number in range(20)]
    for id in calls:
        host.send("tools/call", id, name="echo", arguments={"text": "{{fd:1#L7}}"})
        host.tell("notifications/cancelled", requestId=id)
    host.send("tools/call", "last", name="echo", arguments={"text": "last"})

    said: dict[str, list[str]] = {id: [] for id in [*calls, "last"]}
    while not said["last"]:
        message = host.read()
        said[message["id"]] += message["result"]

    assert [each for each in said.values() if each not in ([], ["content", "cancelled"])] == [["content"]]


@pytest.mark.parametrize(
    ("tool", "arguments", "said", "code"),
    [("exit", {"code": 7}, "exited with code 7", 7), ("kill", {}, "ended by SIGKILL (exit code 137)", 137)],
)
def test_calls_of_a_server_that_ends_are_answered(
    host: Host, tool: str, arguments: dict[str, Any], said: str, code: int
) -> None:
    host.send("tools/call", "never", name="never")
    host.begin(tool, **arguments)

    ended = [host.read(), host.read()]

    assert [message["id"] for message in ended] == ["never", 1]
    assert all(said in message["error"]["message"] for message in ended)
    assert list(host.lines) == []
    assert host.leave() == code


def test_a_log_that_nobody_reads_does_not_stop_the_server(host: Host) -> None:
    for _ in range(4):
        host.call("log", count=1_000_000)

    assert host.text("echo", text="works") == "works"
    # the log itself, or first how much of it was dropped before anything could be passed on
    assert os.read(host.stderr, 10) in (b"x" * 10, b"\nfdstore g")
    threading.Thread(target=lambda: list(read_lines(os.dup(host.stderr))), daemon=True).start()


def test_a_server_ends_when_its_host_leaves(host: Host) -> None:
    pid = host.call("pid")["pid"]

    assert host.leave() == 0
    assert not is_running(pid)


def test_a_server_that_ignores_the_end_is_killed(make_host: Callable[..., Host]) -> None:
    host = make_host("stubborn")
    pid = host.call("pid")["pid"]

    assert host.leave() == 137
    assert not is_running(pid)


def test_what_a_server_started_ends_with_it(make_host: Callable[..., Host]) -> None:
    host = make_host("stubborn", launcher=["sh", "-c", '"$@"; true', "sh"])
    pid = host.call("pid")["pid"]
    assert pid != host.server.pid

    host.leave()

    wait_until(lambda: not is_running(pid), what="the end of the server")


def test_a_store_out_of_reach_changes_no_result(make_host: Callable[..., Host]) -> None:
    host = make_host(url="redis://127.0.0.1:1")
    host.send("tools/list")

    assert [tool["name"] for tool in host.read()["result"]["tools"]] == TOOLS
    for _ in range(2):
        assert len(host.text("lines", count=5000)) > 40_000
    assert host.text("echo", text="{{fd:1}}") == "{{fd:1}}"
    assert 'type="store_unavailable"' in host.text("read_fd", fd="fd:1")
    [said] = host.said
    assert "results pass unchanged" in said


def test_messages_pass_while_a_result_waits_for_a_store_that_never_answers(
    make_host: Callable[..., Host],
) -> None:
    with SilentServer() as silent:
        host = make_host(url=silent.url)
        host.send("tools/call", "long", name="lines", arguments={"count": 5000})
        host.send("tools/call", "short", name="echo", arguments={"text": "passes"})

        answers = [host.read()["id"], host.read()["id"]]

        assert answers == ["short", "long"]
        for _ in range(5):
            assert len(host.text("lines", count=5000)) > 40_000
        assert 'type="store_unavailable"' in host.text("read_fd", fd="fd:1")
        assert len(host.said) == 1
        host.leave()


def test_the_tools_are_listed_before_a_store_that_never_answers_is_given_up(
    make_host: Callable[..., Host],
) -> None:
    with SilentServer() as silent:
        host = make_host(url=silent.url)

        host.begin("lines", count=5000)  # waits for the store
        host.send("tools/list", "list")

        listed = host.read()
        assert listed["id"] == "list"
        assert [tool["name"] for tool in listed["result"]["tools"]] == TOOLS
        assert host.read()["id"] == 1
        host.leave()


def test_a_host_that_listed_the_tools_while_the_store_was_away_uses_them_when_it_is_back(
    make_host: Callable[..., Host],
) -> None:
    with PrivateServer() as server:
        server.stop()
        host = make_host(url=server.url)
        host.send("tools/list")
        assert [tool["name"] for tool in host.read()["result"]["tools"]] == TOOLS
        assert len(host.text("lines", count=5000)) > 40_000

        server.start()

        wait_until(lambda: host.text("lines", count=5000).startswith("<fd_result"), what="a descriptor")
        assert "line 5000" in host.text("read_fd", fd="fd:1", mode="line", start=5000)
        host.leave()


def test_a_store_that_stops_and_returns_is_used_again(make_host: Callable[..., Host]) -> None:
    with PrivateServer() as server:
        host = make_host(url=server.url)
        assert host.text("lines", count=5000).startswith("<fd_result")

        server.stop()
        assert len(host.text("lines", count=5000)) > 40_000
        server.start()

        wait_until(lambda: host.text("lines", count=5000).startswith("<fd_result"), what="a descriptor")
    assert len(host.said) == 2


def large_answer(*blocks: Any, **fields: Any) -> bytes:
    """The line that answers the first request of a host."""
    message = {"jsonrpc": "2.0", "id": 1, "result": {"content": list(blocks), **fields}}
    return json.dumps(message).encode() + b"\r\n"


LARGE = 'a "line" of 9 MB \N{GRINNING FACE}\n' * 350_000
PICTURE = {"type": "image", "data": "QUJD" * (3 << 20), "mimeType": "image/png"}


@pytest.mark.thorough("many megabytes")
def test_of_a_large_result_the_text_is_stored_and_a_picture_stays(host: Host, store: Store) -> None:
    given = large_answer(PICTURE, {"type": "text", "text": LARGE, "annotations": {"a": 1.0}})

    shown = host.call("raw", text=given.decode())

    [picture, text] = shown["content"]
    assert picture == PICTURE
    assert text["text"].startswith('<fd_result fd="fd:1" ')
    assert text["annotations"] == {"a": 1.0}
    assert store.process("triage").read("fd:1", read_all=True).text == LARGE


@pytest.mark.thorough("many megabytes")
def test_a_large_value_in_small_parts_is_stored_as_it_came(host: Host, store: Store) -> None:
    row = {"id": 12345, "name": "a name", "ok": True}
    value = {"rows": [row] * (LONG_BYTES // 40)}
    json_text = json.dumps(value)
    assert len(json_text) > LONG_BYTES

    shown = host.call("raw", text=large_answer(PICTURE, structuredContent=value).decode())

    assert "structuredContent" not in shown
    assert shown["content"][0] == PICTURE
    assert shown["content"][1]["text"].startswith('<fd_result fd="fd:1" ')
    [stored] = store.process("triage").list()
    assert stored.chars == len(json_text)
    assert store.process("triage").read("fd:1#C1-80").text == json_text[:80]


@pytest.mark.thorough("many megabytes")
def test_a_large_result_passes_byte_for_byte_while_the_store_is_away(make_host: Callable[..., Host]) -> None:
    host = make_host(url="redis://127.0.0.1:1")
    given = large_answer(PICTURE, {"type": "text", "text": LARGE})

    host.begin("raw", text=given.decode())

    assert next(host.lines) == given


@pytest.mark.thorough("many megabytes")
def test_other_calls_are_answered_while_a_large_result_is_stored(host: Host) -> None:
    host.text("lines", count=5000)
    host.begin("megabytes", count=40)
    host.begin("read_fd", fd="fd:1#L7")

    assert [host.read()["id"] for _ in range(2)] == [3, 2]


def test_the_end_of_the_program_waits_for_the_first_attempt_to_connect():
    # Python aborts if it exits while a thread imports modules in C++
    said: list[str] = []
    descriptors = Descriptors(GatewayOptions(), PROJECT, said.append, url="redis://127.0.0.1:1")

    descriptors.start()
    descriptors.finish()

    [report] = said
    assert report.startswith("store_unavailable: ")
