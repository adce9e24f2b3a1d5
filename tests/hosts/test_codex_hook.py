"""The hook in the real Codex: what the model would see is asserted on the requests to its API."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import fdstore
from tests.hosts.codex_host import run_codex, write_config
from tests.hosts.conftest import run_fdstore
from tests.hosts.long_tool_server import TEXT
from tests.hosts.scripted_responses import Asked, ScriptedResponses, scripted_responses

OUR_SERVER = "[mcp_servers.fdstore]\n"

Ask = Callable[..., ScriptedResponses]


@pytest.fixture
def ask(codex: Path, empty_home: dict[str, str], project: Path) -> Ask:
    """Return a function that runs Codex on a script, with the hook as `fdstore hook install` writes it."""
    tool_server = Path(__file__).parent / "long_tool_server.py"
    reports = {
        "command": sys.executable,
        "args": [str(tool_server)],
        "default_tools_approval_mode": "approve",
    }

    def run(calls: list[Asked], url: str | None) -> ScriptedResponses:
        with scripted_responses(calls) as model:
            config = write_config(empty_home, model, "reports", **reports)
            if url is not None:
                environment = {**empty_home, "SCRIPTED_KEY": "x", "FDSTORE_URL": url}
                run_fdstore("hook", "install", "codex", "--yes", env=environment)
                # Codex waits for such servers before the first turn
                config.write_text(config.read_text().replace(OUR_SERVER, f"{OUR_SERVER}required = true\n"))
            run_codex(codex, empty_home, project, "go", "hook-trust")
        return model

    return run


REPORT = Asked("mcp__reports", "report", {})
STRUCTURED = Asked("mcp__reports", "report", {"structured": True})


def test_two_megabytes_of_an_mcp_server_enter_as_a_stub_and_a_page_is_read_exactly(ask, server):
    read = Asked("mcp__fdstore", "read_fd", {"fd": "fd:1", "start": 200})

    model = ask([REPORT, read, STRUCTURED], server.url)

    stub, page, structured = model.outputs
    assert '<fd_result fd="fd:1" ' in stub
    assert 'total_lines="34000"' in stub
    assert len(stub) < 6000
    with fdstore.connect(server.url) as store:
        text = store.process("shop").read("fd:1", start=200).text
        whole = store.process("shop").read("fd:1", read_all=True).text
    assert whole == TEXT
    assert text in page
    assert '<fd_result fd="fd:2" ' in structured


def test_without_a_store_the_turn_is_what_it_is_without_the_hook(ask):
    with_hook = ask([REPORT, STRUCTURED], "redis://127.0.0.1:1").outputs
    without = ask([REPORT, STRUCTURED], None).outputs

    bodies = [[text.partition("Output:")[2] for text in outputs] for outputs in (with_hook, without)]
    assert bodies[0] == bodies[1]
    assert len(bodies[0]) == 2
    assert all(len(text) > 9000 for text in bodies[0])
