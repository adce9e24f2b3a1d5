"""A built-in tool is one file of its package: nothing else lists it, and it is offered and documented."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fdstore.tools.catalogue import READING_TOOLS
from tests.waiting import PATIENCE_S

TOOL = '''
"""`count_lines`: count the lines of a text."""
from fdstore.results.tool_outcome import ToolResult
from fdstore.store.contents import descriptors
from fdstore.text.selection import fd_id
from fdstore.tools.arguments import Arguments, WholeFd
from fdstore.tools.tool import Tool, never

class CountLines(Arguments, frozen=True, kw_only=True):
    fd: WholeFd

def run(context, arguments, call_id):
    found = yield from descriptors.stat(context.handle, fd_id(arguments.fd))
    return ToolResult(f"{found.fd} has {found.lines} lines")

TOOL = Tool(
    name="count_lines", title="Count lines", position=25, works_on="descriptors", effect="reads", run=run,
    permission="read", held_back=True, preloaded=True, makes=never, arguments=CountLines,
    describe=lambda _: "Count the lines of a text.", explain=lambda _: "- its lines: count_lines(fd=3)",
    offer=lambda stored: f"count its lines with count_lines({stored.fd})",
)
'''


@pytest.fixture
def found(redis_url: str, tmp_path: Path) -> dict[str, Any]:
    """Return the places where fdstore finds the tool."""
    (tmp_path / "count_lines.py").write_text(TOOL, "utf-8")

    done = subprocess.run(
        [sys.executable, "-m", "tests.on_redis.conformance.new_tool", tmp_path, redis_url],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )

    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.thorough("a copy of the package, and everything that lists tools")
def test_a_file_in_the_package_is_all_that_a_tool_needs(found: dict[str, Any]) -> None:
    # own loops and agents have it, in the order of positions, and can call it
    assert found["toolset"] == ["read_fd", "count_lines", "list_fds"]
    assert found["agent"] == ["count_lines"]
    assert found["result"] == "fd:1 has 3 lines"
    lines = found["instructions"]
    assert lines.index("- its lines: count_lines(fd=3)") == lines.index("- what is stored: list_fds()") - 1
    assert found["held_back"]
    assert "start=2), or count its lines with count_lines(fd:2)." in found["message"]

    # MCP offers it at its permission with its hints, the gateway because it reads
    assert found["mcp"]["title"] == "Count lines"
    assert found["mcp"]["annotations"] == {
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    }
    assert found["mcp"]["_meta"]["anthropic/alwaysLoad"] is True
    assert found["permissions"] == ["read"]
    gateway = found["gateway"]
    assert [name for name in gateway if name != "count_lines"] == [*READING_TOOLS]
    assert gateway.index("search_fd") < gateway.index("count_lines") < gateway.index("list_fds")

    # editors, type checkers and the reference know it
    assert "count_lines" in found["editor"]
    assert '    "count_lines",' in found["types"]
    page = found["reference"]
    assert page.index("### search_fd") < page.index("### count_lines") < page.index("### list_fds")
    assert "Count the lines of a text." in " ".join(page)
