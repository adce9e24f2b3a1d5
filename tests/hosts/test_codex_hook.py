"""The hook in the real Codex: what the model would see is asserted on the requests to its API."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import fdstore
from fdstore.local.redis_server import PrivateServer
from tests.hosts.long_tool_server import TEXT
from tests.hosts.scripted_responses import Asked, ScriptedResponses, scripted_responses

CONFIG = """\
# a comment of the user
model = "gpt-5.2-codex"
model_provider = "scripted"

[model_providers.scripted]
name = "scripted"
base_url = "{base_url}"
wire_api = "responses"
env_key = "SCRIPTED_KEY"

[mcp_servers.reports]
command = "{python}"
args = ["{server}"]
required = true
default_tools_approval_mode = "approve"
"""

OUR_SERVER = "[mcp_servers.fdstore]\n"

Ask = Callable[..., ScriptedResponses]


@pytest.fixture(scope="module")
def server() -> Iterator[PrivateServer]:
    with PrivateServer() as started:
        yield started


@pytest.fixture
def ask(codex: Path, empty_home: dict[str, str], tmp_path: Path) -> Ask:
    """Return a function that runs Codex on a script, with the hook as `fdstore hook install` writes it."""
    project = tmp_path / "shop"
    project.mkdir()
    (project / "fdstore.toml").write_text('process = "shop"\n')
    config = Path(empty_home["HOME"]) / ".codex" / "config.toml"
    config.parent.mkdir()
    tool_server = Path(__file__).parent / "long_tool_server.py"

    def run(calls: list[Asked], url: str | None) -> ScriptedResponses:
        environment = {**empty_home, "SCRIPTED_KEY": "x"}
        with scripted_responses(calls) as model:
            config.write_text(
                CONFIG.format(base_url=model.base_url, python=sys.executable, server=tool_server)
            )
            if url is not None:
                install = [sys.executable, "-m", "fdstore", "hook", "install", "codex", "--yes"]
                subprocess.run(
                    install, env={**environment, "FDSTORE_URL": url}, check=True, capture_output=True
                )
                # Codex waits for such servers before the first turn
                installed = config.read_text()
                config.write_text(installed.replace(OUR_SERVER, f"{OUR_SERVER}required = true\n"))
            done = subprocess.run(
                [
                    codex,
                    "exec",
                    "--json",
                    "--skip-git-repo-check",
                    "--dangerously-bypass-hook-trust",
                    "go",
                ],
                cwd=project,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return model

    return run


REPORT = Asked("mcp__reports", "report", {})
STRUCTURED = Asked("mcp__reports", "report", {"structured": True})


def test_two_megabytes_of_an_mcp_server_enter_as_a_stub_and_a_page_is_read_exactly(
    ask: Ask, server: PrivateServer
) -> None:
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


def test_without_a_store_the_turn_is_what_it_is_without_the_hook(ask: Ask) -> None:
    with_hook = ask([REPORT, STRUCTURED], "redis://127.0.0.1:1").outputs
    without = ask([REPORT, STRUCTURED], None).outputs

    bodies = [[text.partition("Output:")[2] for text in outputs] for outputs in (with_hook, without)]
    assert bodies[0] == bodies[1]
    assert len(bodies[0]) == 2
    assert all(len(text) > 9000 for text in bodies[0])
