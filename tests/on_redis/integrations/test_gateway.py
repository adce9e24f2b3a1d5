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
from fdstore.integrations.gateway.acting import NO_TOOLS
from fdstore.integrations.gateway.descriptors import Descriptors
from fdstore.integrations.gateway.lines import read_lines
from fdstore.integrations.gateway.long_values import LONG_BYTES
from fdstore.integrations.gateway.stdio_relay import StdioRelay
from fdstore.integrations.gateway.upstream import UpstreamProcess
from fdstore.local.redis_server import PrivateServer
from tests.conftest import is_running
from tests.on_redis.integrations.hosts import PipedHost
from tests.outages import SilentServer
from tests.waiting import wait_until

UPSTREAM = Path(__file__).parents[2] / "mcp_upstream.py"


class Host(PipedHost):
    """An MCP host and a gateway with one upstream server. `said`: the gateway's messages to the operator."""

    def __init__(self, url: str, *arguments: str, launcher: Sequence[str] = ()) -> None:
        self.said: list[str] = []
        descriptors = Descriptors(url, None, "triage", 8000, self.said.append)
        self.server = UpstreamProcess([*launcher, sys.executable, "-I", "-S", str(UPSTREAM), *arguments])
        descriptors.start()
        grace_s = 0.2 if "stubborn" in arguments else 10
        super().__init__(lambda **fds: StdioRelay(self.server, descriptors, grace_s=grace_s, **fds))


TOOLS = ["echo", "lines", "read_fd", "search_fd", "list_fds"]


@pytest.fixture
def make_host(redis_url: str) -> Iterator[Callable[..., Host]]:
    hosts: list[Host] = []

    def make(*arguments: str, url: str = redis_url, launcher: Sequence[str] = ()) -> Host:
        hosts.append(Host(url, *arguments, launcher=launcher))
        return hosts[-1]

    yield make
    for host in hosts:
        host.close()


@pytest.fixture
def host(make_host: Callable[..., Host]) -> Host:
    """A host that was shown our tools."""
    made = make_host()
    made.see_tools()
    return made


def test_a_long_result_is_a_descriptor_that_the_model_reads(host: Host, store: Store) -> None:
    host.send("tools/list")
    assert [tool["name"] for tool in host.read()["result"]["tools"]] == [
        *("echo", "lines", "read_fd", "search_fd", "list_fds")
    ]

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
    host = make_host()
    for _ in range(2):
        assert len(host.text("lines", count=5000)) > 40_000
    assert host.said == [NO_TOOLS]

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


def test_an_incomplete_last_line_passes(host: Host) -> None:
    host.begin("raw", text='{"id": 1, "resu')
    host.begin("exit", code=0)

    lines = [next(host.lines) for _ in range(2)]

    assert lines[0].startswith(b'{"id": 1, "resu')


def test_a_cancellation_reaches_a_server_that_hangs(host: Host) -> None:
    host.begin("never")
    host.tell("notifications/cancelled", requestId=1)

    assert host.read()["result"] == {"cancelled": True}


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
        host.see_tools()
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
        host.see_tools()

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
        host.see_tools()
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


def test_of_a_large_result_the_text_is_stored_and_a_picture_stays(host: Host, store: Store) -> None:
    given = large_answer(PICTURE, {"type": "text", "text": LARGE, "annotations": {"a": 1.0}})

    shown = host.call("raw", text=given.decode())

    [picture, text] = shown["content"]
    assert picture == PICTURE
    assert text["text"].startswith('<fd_result fd="fd:1" ')
    assert text["annotations"] == {"a": 1.0}
    assert store.process("triage").read("fd:1", read_all=True).text == LARGE


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


def test_a_large_result_passes_byte_for_byte_while_the_store_is_away(make_host: Callable[..., Host]) -> None:
    host = make_host(url="redis://127.0.0.1:1")
    host.see_tools()
    given = large_answer(PICTURE, {"type": "text", "text": LARGE})

    host.begin("raw", text=given.decode())

    assert next(host.lines) == given


def test_other_calls_are_answered_while_a_large_result_is_stored(host: Host) -> None:
    host.text("lines", count=5000)
    host.begin("megabytes", count=40)
    host.begin("read_fd", fd="fd:1#L7")

    assert [host.read()["id"] for _ in range(2)] == [3, 2]


def test_the_end_of_the_program_waits_for_the_first_attempt_to_connect():
    # Python aborts if it exits while a thread imports modules in C++
    said: list[str] = []
    descriptors = Descriptors("redis://127.0.0.1:1", None, "triage", 8000, said.append)

    descriptors.start()
    descriptors.finish()

    [report] = said
    assert report.startswith("store_unavailable: ")
