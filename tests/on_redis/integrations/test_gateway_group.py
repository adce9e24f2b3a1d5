"""Several servers behind one gateway, as one server of the host, and for programs of its model."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fdstore.errors import InvalidArgument
from fdstore.hosts.gateway.options import GatewayOptions
from fdstore.hosts.gateway.server_config import ServerStart
from fdstore.hosts.gateway.server_group import ServerGroup
from tests.on_redis.integrations.hosts import UPSTREAM, CodeHost, printed
from tests.waiting import wait_until


class Group(CodeHost):
    """A host of several servers. `said`: what the operator is told."""

    def __init__(self, url: str, starts: list[ServerStart], begin_s: float = 20.0, **options: Any) -> None:
        self.said: list[str] = []
        self.servers = ServerGroup(starts, self.said.append, begin_s=begin_s)
        names = [start.name for start in starts]
        chosen = GatewayOptions(**{"code": "also", **options})
        super().__init__(url, chosen, self.servers, names)
        begun = self.answer_to(self.send("initialize", protocolVersion="2025-11-25"))
        assert begun["protocolVersion"] == "2025-11-25"
        self.tell("notifications/initialized")


def start(name: str, *command: str, **env: str) -> ServerStart:
    return ServerStart(name=name, command=command or UPSTREAM, env=env)


@pytest.fixture
def make_group(redis_url: str) -> Iterator[Callable[..., Group]]:
    made: list[Group] = []

    def make(*starts: ServerStart, **options: Any) -> Group:
        made.append(Group(redis_url, list(starts), **options))
        return made[-1]

    yield make
    for group in made:
        group.close()


@pytest.fixture
def group(make_group: Callable[..., Group]) -> Group:
    return make_group(start("one", NAME="first"), start("two", NAME="second"))


def test_the_host_sees_the_tools_of_all_servers(group: Group) -> None:
    names = group.list_tools()

    assert [name for name in names if name.endswith("echo")] == ["one__echo", "two__echo"]
    assert names[-1] == "find_tools"
    called = group.send("tools/call", name="two__echo", arguments={"text": "hi"})
    assert group.answer_to(called)["content"][0]["text"] == "hi"


def test_code_calls_the_tools_of_all_servers(group: Group) -> None:
    assert group.run("await one.name(), await two.name()") == "('first', 'second')"
    assert "there is no tool two.ecko; did you mean two.echo" in group.fails("await two.ecko(text='a')")


@pytest.mark.parametrize(
    ("odd", "in_code"),
    [
        (r'"half \ud83d"', r"'half \\ud83d'"),
        ("NaN", "nan"),
        ("-Infinity", "-inf"),
        ("1e400", "inf"),
        ('"a\x01b"', r"'a\x01b'"),
        ("12345678901234567890123", "12345678901234567890123"),
    ],
)
def test_what_a_server_writes_beside_strict_json_costs_no_tool_and_no_program(
    make_group: Callable[..., Group], odd: str, in_code: str
) -> None:
    group = make_group(start("one", NAME="first"), start("two", ODD=odd))

    names = group.list_tools()

    assert {"one__echo", "two__echo", "two__odd"} <= set(names)
    assert group.run("(await two.odd())['odd']") == in_code
    assert group.run("await one.name()") == "'first'"
    assert "two.odd" in group.find("odd")


def test_a_page_that_cannot_be_read_costs_its_own_tools_alone(
    make_group: Callable[..., Group],
) -> None:
    group = make_group(start("one", NAME="first"), start("two", ODD="oops"))

    names = group.list_tools()

    assert {"one__echo", "two__echo"} <= set(names)
    assert "two__odd" not in names
    assert group.said == ["tools/list of the MCP server two: its answer cannot be read: it is not JSON"]
    assert group.run("await one.name()") == "'first'"


def test_calls_of_both_servers_are_under_way_together(group: Group) -> None:
    code = (
        "import asyncio\nawait asyncio.gather(*[server.together(number=n, of=20)"
        " for server in (one, two) for n in range(20)])"
    )

    assert group.run(code) == str(2 * [str(number) for number in range(20)])


def test_a_server_that_ends_leaves_and_the_others_go_on(group: Group) -> None:
    """The calls that it owes are answered; programs see an exception; its tools are gone."""
    group.run("kept = await one.echo(text='hi')")
    owed = group.send("tools/call", name="one__never", arguments={})
    program = group.begin_code(
        "try:\n    await one.exit()\nexcept RuntimeError as e:\n    print('ended:', e)"
    )

    answers = {}
    while len(answers) < 2:
        message = group.read()
        if "id" in message:
            answers[message["id"]] = message
        else:
            group.notes.append(message)

    assert "exited with code 3" in answers[owed]["error"]["message"]
    assert printed(answers[program]["result"]).startswith("ended: one: the MCP server exited with code 3")
    wait_until(lambda: group.said, what="what the operator is told")
    assert group.run("kept, await two.name()") == "('hi', 'second')"
    assert "there is no tool one.echo" in group.fails("await one.echo(text='a')")
    assert not [name for name in group.list_tools() if name.startswith("one__")]
    assert [note["method"] for note in group.notes] == ["notifications/tools/list_changed"]


def test_a_server_that_is_late_joins_later(make_group: Callable[..., Group], tmp_path: Any) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    group = make_group(start("one", NAME="first"), start("late", NAME="second", GATE=str(gate)), begin_s=0.2)

    assert not [name for name in group.list_tools() if name.startswith("late__")]
    assert group.said == ["these servers are late, and join when they have begun: late"]
    gate.write_text("begin", "ascii")

    assert group.read()["method"] == "notifications/tools/list_changed"
    assert group.run("await late.name()") == "'second'"


def test_a_server_that_does_not_read_holds_up_no_other(group: Group) -> None:
    group.list_tools()
    os.kill(group.servers.pid("one"), signal.SIGSTOP)
    try:
        for _ in range(4):  # more than its pipe holds
            group.send("tools/call", name="one__echo", arguments={"text": "x" * 100_000})
        called = group.send("tools/call", name="two__echo", arguments={"text": "hi"})
        assert group.answer_to(called)["content"][0]["text"] == "hi"
    finally:
        os.kill(group.servers.pid("one"), signal.SIGCONT)


def test_servers_that_cannot_be_started_are_told_and_left_out(
    make_group: Callable[..., Group], redis_url: str
) -> None:
    group = make_group(start("one", NAME="first"), start("none", "no-such-server"))

    assert group.run("await one.name()") == "'first'"
    assert group.said == ["the MCP server none: no-such-server cannot be started: No such file or directory"]
    with pytest.raises(InvalidArgument, match="no-such-server cannot be started"):
        ServerGroup([start("none", "no-such-server")], print)


def test_without_any_server_that_begins_the_host_is_told(redis_url: str) -> None:
    said: list[str] = []
    group = ServerGroup([start("one", sys.executable, "-c", "input(); raise SystemExit(5)")], said.append)
    host = CodeHost(redis_url, GatewayOptions(code="also"), group, ["one"])

    host.send("initialize", protocolVersion="2025-11-25")

    assert "exited with code 5" in host.read()["error"]["message"]
    assert host.leave() == 5
    host.close()


def test_the_others_are_ended_with_the_host(group: Group) -> None:
    pids = [group.servers.pid("one"), group.servers.pid("two")]

    assert group.leave() == 0
    assert not group.said
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
