"""What fdstore's own tools return stays as it is, in every host and under every name that they have there."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from fdstore.hosts.hooks import claude, codex, gemini
from fdstore.hosts.hooks.own_tools import HOOK_TOOL, is_own_tool
from fdstore.tools.catalogue import BUILT_IN, READING_TOOLS
from fdstore.tools.tool_names import BUILT_IN_NAMES, READING_NAMES
from tests.hook_events import after_tool
from tests.waiting import PATIENCE_S

LONG = "x" * 8001
LIMIT = 8000
SAY_FD = [name for name in BUILT_IN if "fd" in name]


def replaced_in(tool: str) -> list[str]:
    """Return the hosts whose hook would replace a long output of a tool of an MCP server, SERVER/TOOL."""
    server, name = tool.split("/")
    double, single = f"mcp__{server}__{name}", f"mcp_{server}_{name}"
    content = [{"type": "text", "text": LONG}]
    of_gemini: dict[str, Any] = {"hook_event_name": "AfterTool"}
    context = {"server_name": server, "tool_name": name}
    outputs = {
        "claude": claude.output_of(after_tool(double, content), LIMIT),
        "codex": codex.output_of(after_tool(double, {"content": content}), LIMIT),
        "gemini": gemini.output_of(after_tool(single, {"llmContent": LONG}, **of_gemini), LIMIT),
        "gemini, by its context": gemini.output_of(
            after_tool(name, {"llmContent": LONG}, mcp_context=context, **of_gemini), LIMIT
        ),
    }
    return [host for host, output in outputs.items() if output is not None]


@pytest.mark.parametrize("name", [*BUILT_IN, HOOK_TOOL])
def test_each_built_in_tool_is_ours_under_the_servers_that_our_pages_name(name: str) -> None:
    servers = ("fdstore", "plugin_fdstore_fdstore", "fd")

    assert [(server, host) for server in servers for host in replaced_in(f"{server}/{name}")] == []


@pytest.mark.parametrize("name", SAY_FD)
def test_a_tool_whose_name_says_fd_is_ours_under_any_server(name: str) -> None:
    assert replaced_in(f"logs/{name}") == replaced_in(f"logs/fdstore_{name}") == []


@pytest.mark.parametrize("name", sorted(BUILT_IN.keys() - SAY_FD))
def test_a_tool_of_others_with_a_common_name_is_not_ours(name: str) -> None:
    assert len(replaced_in(f"jobs/{name}")) == 4
    assert not is_own_tool(f"mcp__jobs__{name}")


def test_the_names_that_hooks_know_are_those_of_the_catalogue() -> None:
    assert tuple(BUILT_IN) == BUILT_IN_NAMES
    assert READING_NAMES == READING_TOOLS


def test_a_hook_loads_no_tool() -> None:
    code = (
        "import fdstore.hosts.hooks.hosts, sys\n"
        "print(*[name for name in sys.modules if name.startswith('fdstore.tools.')])"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE_S
    )

    assert done.stdout.split() == ["fdstore.tools.tool_names"]
