"""`list_fds` tells an agent which part of each text it has read."""

from __future__ import annotations

import re
from typing import Any

import pytest

from fdstore import Toolset
from fdstore.client import Process, Store
from fdstore.testing import Request, call, say, turn
from tests.on_redis.running_agents import SMALL, Agents, AgentsOf, tool

READS: list[dict[str, Any]] = [
    {"start": 2, "count": 2},
    {"start": 3},
    {"mode": "line", "start": 40, "count": 1},
    {"mode": "char", "start": 1, "count": 10},
    {"start": 10**18},
    {"start": 5, "extract_to_new_fd": True},
]
TOOLS = ("read_fd", "search_fd", "list_fds", "fork")


def listed(agents: Agents, process: str = "solo") -> dict[str, str | None]:
    """Return what the last list of a process says of each descriptor."""
    [*_, last] = [str(r.content) for r in agents.results(process) if str(r.content).startswith("<fd_list ")]
    lines = last.split("\n")[1:-1]
    read = [re.search(r' read="([^"]*)"', line) for line in lines]
    return {line.split(" ")[0]: found and found[1] for line, found in zip(lines, read, strict=True)}


def script(request: Request) -> Any:
    """Store 200 lines, read some parts of them, list, fork, and list again."""
    is_copy = any("You are copy" in result.text for result in request.tool_results())
    number = request.turn_number
    if number == 0:
        return call("lines", count=200)
    if number <= len(READS):
        return turn(
            call("read_fd", fd="fd:1", **READS[number - 1]), call("search_fd", fd="fd:1", pattern="e")
        )
    if number == len(READS) + 1:
        return call("list_fds")
    if number == len(READS) + 2 and not is_copy:
        return call("fork", prompts=["read on"])
    if number == len(READS) + 3 and is_copy:
        return turn(call("read_fd", fd="fd:1", start=30), call("list_fds"))
    return say("Done.")


# page size 50: six lines of 7 or 8 characters are a page
@pytest.mark.parametrize("crashes", [(), (12, 16, 20)], ids=str)
def test_an_agent_sees_what_it_has_read_also_when_resumed_or_copied(
    agents_of: AgentsOf, store: Store, crashes: tuple[int, ...]
) -> None:
    agents = agents_of(script)
    agents.launch(tools=TOOLS, python=(tool("lines"),), file_descriptor=SMALL)
    agents.crash(*crashes)
    agents.run_all("solo")

    pages = store.process("solo").stat("fd:1").pages
    assert listed(agents) == {"fd:1": f"4/{pages}", "fd:2": "0/1"}  # pages 1 to 3, and that of line 40
    assert listed(agents, "solo.1") == {"fd:1": f"5/{pages}", "fd:2": "0/1"}


def test_a_loop_without_a_journal_is_told_nothing(proc: Process) -> None:
    tools = Toolset(proc, enabled=["read_fd", "list_fds"])
    proc.create("a text")
    tools.call("read_fd", {"fd": "fd:1"})

    assert " read=" not in tools.call("list_fds", {}).text
