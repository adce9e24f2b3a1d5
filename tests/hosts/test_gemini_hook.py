"""The hook in the real Gemini CLI: what the model would see is asserted on the requests to its API."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import fdstore
from fdstore.local.redis_server import PrivateServer
from tests.hosts.scripted_gemini import Part, ScriptedGemini, call

SETTINGS = {
    "general": {"enableAutoUpdate": False},
    "privacy": {"usageStatisticsEnabled": False},
    "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
    "tools": {"allowed": ["run_shell_command"]},
}

Ask = Callable[..., list[str]]


@pytest.fixture(scope="module")
def server() -> Iterator[PrivateServer]:
    with PrivateServer() as started:
        yield started


@pytest.fixture
def ask(gemini: Path, node: Path, empty_home: dict[str, str], tmp_path: Path) -> Ask:
    """Return a function that runs Gemini CLI on a script, with the hook as `fdstore hook install` writes it,
    and returns the results that the model saw."""
    project = tmp_path / "shop"
    project.mkdir()
    (project / "fdstore.toml").write_text('process = "shop"\n')
    settings = Path(empty_home["HOME"]) / ".gemini" / "settings.json"
    settings.parent.mkdir()

    def run(*script: Part, url: str | None) -> list[str]:
        settings.write_text(json.dumps(SETTINGS))
        if url is not None:
            subprocess.run(
                [sys.executable, "-m", "fdstore", "hook", "install", "gemini", "--yes"],
                env={**empty_home, "FDSTORE_URL": url},
                check=True,
                capture_output=True,
            )
        with ScriptedGemini(*script) as model:
            done = subprocess.run(
                [node, gemini, "-p", "go", "-m", "gemini-2.5-flash"],
                cwd=project,
                env={**empty_home, "GEMINI_API_KEY": "x", "GOOGLE_GEMINI_BASE_URL": model.base_url},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
            return model.results

    return run


def test_a_long_output_of_a_command_enters_as_a_stub_and_a_page_is_read_exactly(
    ask: Ask, server: PrivateServer
) -> None:
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


def test_without_a_store_the_turn_is_what_it_is_without_the_hook(ask: Ask) -> None:
    numbers = call("run_shell_command", command="seq 1 3000")

    [with_hook] = ask(numbers, url="redis://127.0.0.1:1")
    [without] = ask(numbers, url=None)

    group = re.compile(r"Process Group PGID: \d+")
    assert group.sub("", with_hook) == group.sub("", without)
    assert len(without) > 8000
