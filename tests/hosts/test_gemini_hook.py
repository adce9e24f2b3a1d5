"""The hook in the real Gemini CLI: what the model would see is asserted on the requests to its API."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import fdstore
from tests.hosts.conftest import run_fdstore, run_host
from tests.hosts.scripted_gemini import Part, call, results_in, scripted_gemini

SETTINGS = {
    "general": {"enableAutoUpdate": False},
    "privacy": {"usageStatisticsEnabled": False},
    "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
    "tools": {"allowed": ["run_shell_command"]},
}

Ask = Callable[..., list[str]]


@pytest.fixture
def ask(gemini: Path, node: Path, empty_home: dict[str, str], project: Path) -> Ask:
    """Return a function that runs Gemini CLI on a script, with the hook as `fdstore hook install` writes it,
    and returns the results that the model saw."""
    settings = Path(empty_home["HOME"]) / ".gemini" / "settings.json"
    settings.parent.mkdir()

    def run(*script: Part, url: str | None) -> list[str]:
        settings.write_text(json.dumps(SETTINGS))
        if url is not None:
            run_fdstore("hook", "install", "gemini", "--yes", env={**empty_home, "FDSTORE_URL": url})
        with scripted_gemini(*script) as (api, requests):
            environment = {"GEMINI_API_KEY": "x", "GOOGLE_GEMINI_BASE_URL": api}
            command = (node, gemini, "-p", "go", "-m", "gemini-2.5-flash")
            run_host(*command, env={**empty_home, **environment}, cwd=project)
            return results_in(requests[-1])

    return run


def test_a_long_output_of_a_command_enters_as_a_stub_and_a_page_is_read_exactly(ask, server):
    stub, page, short = ask(
        call("run_shell_command", command="seq 1 20000"),
        call("mcp_fdstore_read_fd", fd="fd:1", start=20),
        call("run_shell_command", command="seq 1 3"),
        url=server.url,
    )

    assert '<fd_result fd="fd:1" pages="28" ' in stub
    assert "the call has succeeded" in stub
    assert len(stub) < 6000
    with fdstore.connect(server.url) as store:
        text = store.process("shop").read("fd:1", start=20).text
    assert f"\n{text}\n</fd_content>" in page
    assert "fd_result" not in short


def test_without_a_store_the_turn_is_what_it_is_without_the_hook(ask):
    numbers = call("run_shell_command", command="seq 1 3000")

    [with_hook] = ask(numbers, url="redis://127.0.0.1:1")
    [without] = ask(numbers, url=None)

    group = re.compile(r"Process Group PGID: \d+")
    assert group.sub("", with_hook) == group.sub("", without)
    assert len(without) > 8000
