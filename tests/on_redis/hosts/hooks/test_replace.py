"""The output in a host's event is stored, and the host is answered in time, whatever the store does."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fdstore
from fdstore import FDConfig, ToolPolicy
from fdstore.client import Store
from fdstore.errors import FDStoreError, StoreUnavailable
from fdstore.hosts.hooks.host_tool import hook_tool
from fdstore.hosts.hooks.hosts import HOSTS, read_event
from fdstore.hosts.hooks.replace import replaced
from fdstore.hosts.mcp.access import Access
from fdstore.hosts.mcp.toolsets import ToolOptions, Toolsets
from fdstore.hosts.project import Project, project_of
from fdstore.store.processes import savings
from tests.hook_events import after_bash

LONG = "a line of a long log\n" * 1000


@pytest.fixture
def project(tmp_path: Path) -> Path:
    directory = tmp_path / "shop"
    directory.mkdir()
    (directory / "fdstore.toml").write_text('process = "shop"\n')
    return directory


@pytest.fixture
def connect(redis_url: str) -> Callable[[], Store]:
    return lambda: fdstore.connect(redis_url)


def bash(project: Path, stdout: str = LONG, **response: Any) -> dict[str, Any]:
    event = after_bash(stdout, cwd=str(project))
    event["tool_response"] |= response
    return event


def answered(event: dict[str, Any], connect: Callable[[], Store], config: Path, **deadline: float) -> Any:
    project = project_of(event["cwd"])
    output = HOSTS["claude"](event, project.config.direct_chars)
    return None if output is None else replaced(output, project, connect, config, **deadline)


def stdout_of(answer: Any) -> str:
    return str(answer["hookSpecificOutput"]["updatedToolOutput"]["stdout"])


def test_an_output_is_stored_in_the_process_of_the_project_once(
    store: Store, connect: Any, project: Path
) -> None:
    answers = [answered(bash(project), connect, project) for _ in range(2)]

    assert stdout_of(answers[0]) == stdout_of(answers[1])
    shop = store.process("shop")
    [stored] = shop.list()
    assert (shop.read("fd:1", read_all=True).text, stored.source) == (LONG, "Bash: make test")
    [row] = store.run(savings.read_savings(store.prefix, "shop")).rows
    assert (row.session, row.tool, row.kept) == ("0ab1", "Bash", 1)


def test_the_size_of_fdstore_toml_decides(connect: Any, project: Path) -> None:
    (project / "fdstore.toml").write_text('process = "shop"\nmax_direct_output_chars = 30000\n')

    assert answered(bash(project), connect, project) is None
    assert answered(bash(project, LONG * 2), connect, project) is not None


def test_a_kept_file_is_stored_whole_and_bytes_are_shown(store: Store, connect: Any, project: Path) -> None:
    kept = project / ".claude" / "projects" / "p" / "0ab1" / "tool-results" / "b1.txt"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(LONG.encode() * 10 + b"\xff\n")
    event = bash(project, persistedOutputPath=str(kept), persistedOutputSize=210_002)

    answer = answered(event, connect, project / ".claude")

    assert "persistedOutputPath" not in json.dumps(answer)
    assert store.process("shop").read("fd:1", read_all=True).text == LONG * 10 + "\\xff\n"


def test_a_store_that_never_answers_is_given_up_at_the_deadline(project: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"redis://127.0.0.1:{silent.getsockname()[1]}"

        with pytest.raises(StoreUnavailable, match=r"longer than 0\.2 s"):
            answered(bash(project), lambda: fdstore.connect(url), project, deadline_s=0.2)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'"x"', b"\xff", b"[" * 100_000])
def test_what_is_no_event_is_a_typed_error(data: bytes) -> None:
    with pytest.raises(FDStoreError, match="event"):
        read_event(data)


def test_the_tool_of_the_plugin_answers_the_same_and_logs_what_fails(
    redis_url: str, project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    event = bash(project)
    arguments = {**event, "tool_response": json.dumps(event["tool_response"])}

    async def main() -> tuple[str, str, str]:
        async with await fdstore.aio.connect(redis_url) as store:
            tools = fdstore.aio.Toolset(await store.process("shop"))

            async def opened() -> fdstore.aio.Toolset:
                return tools

            async def down() -> fdstore.aio.Toolset:
                raise StoreUnavailable("127.0.0.1", "it refuses connections")

            tool = hook_tool(opened, 8000, project)
            made_up = {**arguments, "tool_response": '{"stdout": "", "persistedOutputPath": "/etc/passwd"}'}
            return (
                str(await tool.run(arguments)),
                str(await tool.run(made_up)),
                str(await hook_tool(down, 8000, project).run(arguments)),
            )

    answer, refused, failed = asyncio.run(main())

    assert stdout_of(json.loads(answer)).startswith('<fd_result fd="fd:1"')
    assert (refused, failed) == ("{}", "{}")
    assert "stays as it is: store_unavailable" in caplog.text


def test_a_policy_may_name_a_tool_of_the_host(connect: Any, project: Path) -> None:
    config = FDConfig(tool={"Bash": ToolPolicy(preview="tail", preview_chars=100)})
    output = HOSTS["claude"](bash(project), 8000)
    assert output is not None

    answer = replaced(output, Project(process="shop", config=config), connect, project)

    shown = stdout_of(answer)
    assert "<tail>" in shown
    assert "<preview" not in shown


def test_the_server_of_a_host_takes_a_policy_for_a_tool_of_the_host(redis_url: str) -> None:
    async def main() -> str:
        config = FDConfig(tool={"Bash": ToolPolicy(inline="always")})
        access = Access(process="shop", permissions=frozenset({"read"}))
        toolsets = Toolsets(lambda: fdstore.aio.connect(redis_url), access, ToolOptions(config=config))
        try:
            tools = await toolsets.toolset()
            return str((await tools.offload(LONG, source="Bash: make")).content)
        finally:
            await toolsets.close()

    assert asyncio.run(main()) == LONG
