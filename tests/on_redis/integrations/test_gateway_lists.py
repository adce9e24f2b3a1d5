"""Lists that servers do not end, or do not give: the host and its programs get an answer, and the servers are
asked no further."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fdstore.hosts.gateway.options import GatewayOptions
from fdstore.hosts.gateway.paged_list import LISTS, MAX_PAGES
from fdstore.hosts.gateway.server_config import ServerStart
from fdstore.hosts.gateway.server_group import ServerGroup
from fdstore.hosts.gateway.tool_list import CODE_TOOLS
from fdstore.hosts.gateway.upstream import UpstreamProcess
from fdstore.tools.catalogue import READING_TOOLS
from tests.on_redis.integrations.hosts import CodeHost, printed
from tests.thorough import sample, thorough
from tests.waiting import wait_until

LISTS_UPSTREAM = (sys.executable, "-I", "-S", str(Path(__file__).parents[2] / "list_upstream.py"))
TOOLS, *OTHERS = LISTS
ENDLESS = ["same", "empty", "circle", "new"]


class ListHost(CodeHost):
    """A host of servers by how they list; of one without a group. `said`: what the operator is told."""

    def __init__(self, url: str, *how: tuple[str, ...], **limits: float) -> None:
        self.group_said: list[str] = []
        group: list[str] | None = None
        server: Any = UpstreamProcess([*LISTS_UPSTREAM, *how[0]])
        if len(how) > 1:
            server.end(1)
            starts = [ServerStart(name=each[0], command=(*LISTS_UPSTREAM, *each), env={}) for each in how]
            server = ServerGroup(starts, self.group_said.append, **limits)
            group = [each[0] for each in how]
        super().__init__(url, GatewayOptions(code="also"), server, group)
        if len(how) > 1:
            self.answer_to(self.send("initialize", protocolVersion="2025-11-25"))
            self.tell("notifications/initialized")

    def listed(self, method: str) -> list[str]:
        kind = LISTS[method]
        result = self.answer_to(self.send(method))
        return [each[kind.key] for each in result[kind.field]]

    def asked(self, prefix: str = "") -> list[str]:
        """Return the methods that a server was asked with."""
        found = self.answer_to(self.send("prompts/get", name=f"{prefix}asked"))
        return [each["method"] for each in found["asked"]]


@pytest.fixture
def make_host(redis_url: str) -> Iterator[Callable[..., ListHost]]:
    made: list[ListHost] = []

    def make(*how: str | tuple[str, ...], **limits: float) -> ListHost:
        made.append(
            ListHost(redis_url, *((each,) if isinstance(each, str) else each for each in how), **limits)
        )
        return made[-1]

    yield make
    for host in made:
        host.close()


@pytest.mark.parametrize("how", ENDLESS)
@pytest.mark.parametrize("method", [TOOLS, *thorough("other lists", *OTHERS)])
def test_a_list_without_an_end_reaches_the_host_with_those_of_the_others(
    make_host: Callable[..., ListHost], how: str, method: str
) -> None:
    host = make_host(how, "whole")

    names = host.listed(method)

    pages = {"same": 1, "empty": 1, "circle": 3, "new": MAX_PAGES}[how]
    ours = [*READING_TOOLS, *CODE_TOOLS] if method == "tools/list" else []
    assert len(names) == pages + 1 + len(ours)
    assert names[pages + 1 :] == ours
    assert [said for said in host.group_said if said.startswith(f"{method} of the MCP server {how}: ")]
    before = host.asked(f"{how}__").count(method)
    assert before <= MAX_PAGES
    assert host.asked(f"{how}__").count(method) == before


@pytest.mark.parametrize("how", sample(ENDLESS, 1, "other lists"))
def test_programs_have_the_tools_of_a_server_whose_list_has_no_end(
    make_host: Callable[..., ListHost], how: str
) -> None:
    assert make_host(how).run("await server.a0()") == "'a0'"


def test_a_host_gets_the_lists_of_those_that_answer_and_programs_call_them(
    make_host: Callable[..., ListHost],
) -> None:
    host = make_host("never", "whole", "refuses", "dies", "closes", list_s=1.0)

    assert host.run("await whole.a0()") == "'a0'"

    assert [name for name in host.listed("tools/list") if name.startswith("whole")] == ["whole__a0"]
    assert [name for name in host.listed("prompts/list") if name.startswith("whole")] == ["whole__a0"]
    told = "\n".join(host.group_said)
    assert "tools/list: these servers are late, and join later: never" in told
    assert "tools/list of the MCP server refuses: out of order" in told
    assert "dies: the MCP server exited with code 3" in told


def test_a_list_that_is_late_joins_later(make_host: Callable[..., ListHost], tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    host = make_host(("late", str(gate)), "whole", list_s=0.5)
    assert "late__a0" not in host.list_tools()
    assert "there is no tool late.a0" in host.fails("await late.a0()")
    gate.write_text("go", "ascii")

    assert host.read()["method"] == "notifications/tools/list_changed"

    assert "late__a0" in host.list_tools()
    assert host.run("await late.a0()") == "'a0'"
    assert host.asked("late__").count("tools/list") <= 3


def test_a_server_that_owes_a_list_is_not_waited_for_again(make_host: Callable[..., ListHost]) -> None:
    host = make_host("never", "whole", list_s=0.5)
    for _ in range(5):
        host.listed("tools/list")

    assert host.asked("never__").count("tools/list") == 1
    assert len(host.group_said) == 1


def test_what_the_host_takes_back_is_asked_no_further(make_host: Callable[..., ListHost]) -> None:
    host = make_host("never", "whole")
    taken_back = host.send("tools/list")
    host.tell("notifications/cancelled", requestId=taken_back)

    assert host.asked("never__")[-2:] == ["notifications/cancelled", "prompts/get"]


def test_a_program_that_the_host_takes_back_asks_for_no_further_page(
    make_host: Callable[..., ListHost],
) -> None:
    host = make_host("never")
    program = host.begin_code("await server.a0()")
    wait_until(lambda: "tools/list" in host.asked(), what="the list is asked for")
    host.tell("notifications/cancelled", requestId=program)

    wait_until(lambda: "notifications/cancelled" in host.asked(), what="the request is taken back")
    assert host.asked().count("tools/list") == 1


def test_programs_that_wait_for_the_same_list_ask_once(
    make_host: Callable[..., ListHost], tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    host = make_host(("late", str(gate)))
    programs = [host.begin_code("await server.a0()") for _ in range(3)]
    wait_until(lambda: "tools/list" in host.asked(), what="the list is asked for")
    gate.write_text("go", "ascii")

    answers = [host.read() for _ in programs]

    assert sorted(each["id"] for each in answers) == programs
    assert {printed(each["result"]) for each in answers} == {"'a0'"}
    assert host.asked().count("tools/list") == 1
