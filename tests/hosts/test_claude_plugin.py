"""The plugin in the real Claude Code: what the model would see is asserted on the requests to its API."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

import fdstore
from fdstore.local.redis_server import PrivateServer
from fdstore.store.processes import savings
from fdstore.testing import ScriptedModel, call, say
from fdstore.testing.replies import Reply
from fdstore.testing.requests import Request
from tests.hosts.conftest import run_fdstore, run_host
from tests.outages import SilentServer

READ_FD = "mcp__plugin_fdstore_fdstore__read_fd"
HANGS_S = 15
"""A turn that takes longer waits for a store; without any, it takes some tenths of a second."""
NUMBERS = "".join(f"{number}\n" for number in range(1, 300_001))


Ask = Callable[..., ScriptedModel]


@pytest.fixture
def ask(claude: Path, empty_home: dict[str, str], project: Path, server: PrivateServer) -> Ask:
    """Return a function that runs Claude Code in the project with the plugin, on a script."""
    environment = {**empty_home, "FDSTORE_URL": server.url}

    def run(
        script: Callable[[Request], Reply],
        *,
        store: str = server.url,
        plugin: bool = True,
        allowed: str = "Bash,Agent,mcp__reports__report",
    ) -> ScriptedModel:
        environment["FDSTORE_URL"] = store
        directory = run_fdstore("claude-plugin", env=environment)
        options = ["--output-format", "json", "--allowedTools", allowed]
        if plugin:
            options += ["--plugin-dir", directory]
        with ScriptedModel(script) as model:
            run_host(claude, "-p", "go", *options, env={**environment, **model.environ}, cwd=project)
        return model

    return run


def steps(*replies: Reply) -> Callable[[Request], Reply]:
    """Return the script of one agent. Claude Code asks for a title with a request of its own, without
    tools."""

    def script(request: Request) -> Reply:
        if "Bash" not in request.tools:
            return say("a title")
        return replies[request.turn_number] if request.turn_number < len(replies) else say("done")

    return script


def results(model: ScriptedModel) -> list[str]:
    """Return the results of tools that the model saw, of its longest conversation."""
    longest = max(model.requests, key=lambda request: request.turn_number)
    return [result.text for result in longest.tool_results()]


def test_two_megabytes_of_bash_enter_as_a_stub_and_a_page_of_the_middle_is_read_exactly(ask, server):
    model = ask(
        steps(
            call("Bash", command="seq 1 300000", description="count"),
            call(READ_FD, fd="fd:1", start=250),
            call("Bash", command="seq 1 3", description="count"),
        )
    )

    stub, page, short = results(model)
    assert stub.startswith('<fd_result fd="fd:1" pages="')
    assert f'total_lines="300000" total_chars="{len(NUMBERS)}"' in stub
    assert len(stub) < 6000
    assert 'source="Bash: seq 1 300000"' in stub
    assert "\n300000\n" in stub
    assert short == "1\n2\n3"
    with fdstore.connect(server.url) as store:
        stored = store.process("shop").read("fd:1", start=250).text
        rows = store.run(savings.read_savings(store.prefix, "shop")).rows
    assert stored in NUMBERS
    assert f"\n{stored}\n</fd_content>" in page
    assert {row.tool for row in rows if row.kept} == {"Bash"}
    assert sum(row.kept_chars for row in rows) > 1_900_000


def test_subagents_and_later_sessions_share_the_descriptors_of_the_project(ask):
    counting = steps(call("Bash", command="seq 1 30000", description="count"), say("counted"))
    task = {"description": "count", "prompt": "COUNT", "subagent_type": "general-purpose"}
    asking = steps(call("Agent", **task, run_in_background=False))

    def script(request: Request) -> Reply:
        return (counting if "COUNT" in json.dumps(request.messages[0]) else asking)(request)

    model = ask(script)

    [seen] = [
        result.text
        for request in model.requests
        if "COUNT" in json.dumps(request.messages[0])
        for result in request.tool_results()
    ]
    fd = re.match(r'<fd_result fd="(fd:\d+)"', seen)
    assert fd
    [line] = results(ask(steps(call(READ_FD, fd=f"{fd[1]}#L29999"))))
    assert "\n29999\n" in line


@pytest.mark.parametrize("structured", [False, True])
def test_two_megabytes_of_another_mcp_server_enter_as_a_stub_and_so_do_some_rows(ask, project, structured):
    config = {
        "reports": {"command": sys.executable, "args": [str(Path(__file__).parent / "long_tool_server.py")]}
    }
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": config}))

    report = "mcp__reports__report"
    model = ask(steps(call(report, structured=structured), call(report, structured=structured, rows=300)))

    for stub, lines in zip(results(model), (34000, 300), strict=True):
        assert stub.startswith("<fd_result")
        assert len(stub) < 6000
        assert f'total_lines="{lines}"' in stub


def test_the_plugin_can_be_installed_for_every_session_and_removed(ask, claude, empty_home):
    def plugin(*words: str) -> str:
        return run_host(claude, "plugin", *words, env=empty_home)

    directory = run_fdstore("claude-plugin", env=empty_home)
    counted = steps(call("Bash", command="seq 1 300000", description="count"), call(READ_FD, fd="fd:1#L7"))

    plugin("marketplace", "add", directory)
    plugin("install", "fdstore@fdstore")
    stub, line = results(ask(counted, plugin=False))
    plugin("uninstall", "fdstore@fdstore")
    plugin("marketplace", "remove", "fdstore")

    assert stub.startswith("<fd_result")
    assert "\n7\n" in line
    assert "fdstore" not in plugin("list")


def test_a_plugin_lets_the_model_read_without_a_question_and_not_write(ask):
    write = READ_FD.replace("read_fd", "write_fd")
    counted = call("Bash", command="seq 1 30000", description="count")

    stub, refused, listed = results(
        ask(steps(counted, call(write, text="x"), call(READ_FD.replace("read_fd", "list_fds"))))
    )

    assert stub.startswith("<fd_result")
    assert "permission" in refused
    assert listed.startswith("<fd_list")


def test_the_hook_as_a_command_does_the_same_without_the_plugin(ask, empty_home, project, server):
    serve = ["-P", "-m", "fdstore", "mcp", "--url", server.url]
    config = {"mcpServers": {"fdstore": {"command": sys.executable, "args": serve}}}
    (project / ".mcp.json").write_text(json.dumps(config))
    run_fdstore("hook", "install", "claude", "--yes", env={**empty_home, "FDSTORE_URL": server.url})

    count, read = call("Bash", command="seq 1 20001", description="count"), "mcp__fdstore__search_fd"
    [first] = results(ask(steps(count), plugin=False))
    fd = re.match(r'<fd_result fd="(fd:\d+)"', first)
    assert fd
    stub, found = results(ask(steps(count, call(read, fd=fd[1], pattern="^20000$")), plugin=False))

    assert stub.startswith("<fd_result")
    assert "20000:20000" in found
    assert 'total_lines="20001"' in stub


def test_without_a_store_the_turn_is_what_it_is_without_the_plugin(ask):
    script = steps(
        call("Bash", command="seq 1 20000", description="count"),
        call("Bash", command="seq 1 2000", description="count"),
    )

    with_plugin = results(ask(script, store="redis://127.0.0.1:1"))
    without = results(ask(script, plugin=False))

    persisted = re.compile(r"saved to: \S+")
    assert [persisted.sub("", each) for each in with_plugin] == [persisted.sub("", each) for each in without]
    assert len(without[1]) > 8000


def test_a_store_that_never_answers_holds_up_no_small_output_and_one_long_one(ask):
    asked: list[float] = []
    turns = steps(
        call("Bash", command="true", description="nothing"),
        call("Bash", command="true", description="nothing"),
        call("Bash", command="seq 1 20000", description="count"),
        call("Bash", command="seq 1 20000", description="count"),
    )

    def timed(request: Request) -> Reply:
        if "Bash" in request.tools:
            asked.append(time.monotonic())
        return turns(request)

    with SilentServer() as silent:
        ask(timed, store=silent.url)

    took = [later - earlier for earlier, later in pairwise(asked)]
    print("seconds of each turn:", *(f"{each:.2f}" for each in took))
    assert len(took) == 4
    assert max(took) < HANGS_S


def test_claude_code_finds_nothing_wrong_with_the_plugin(claude, empty_home):
    directory = run_fdstore("claude-plugin", env=empty_home)

    checked = run_host(claude, "plugin", "validate", directory, env=empty_home)

    assert "refuses a submission" not in checked
