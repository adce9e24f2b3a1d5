"""`run_python` of `fdstore mcp --allow python`: what code may do, and what it does not delay or replace."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from fdstore.client import Process, Store
from fdstore.hosts.hooks.plugin import PYTHON_SKILL, write_plugin
from fdstore.hosts.mcp.protocol_errors import NotPermitted
from fdstore.hosts.mcp.server import build_server
from fdstore.hosts.mcp.toolsets import PROGRAMS_AT_ONCE, ToolOptions
from fdstore.store.tokens import add_token, new_secret
from fdstore.wire.operation import Operation
from tests.conftest import interpreters_of
from tests.elements import only
from tests.on_redis.hosts.mcp.served import calling, served
from tests.on_redis.hosts.mcp.sessions import ERAS, talk, text_of, toolsets_at
from tests.waiting import PATIENCE_S, wait_until

PYTHON = frozenset({"read", "python"})
WRITING = frozenset({"read", "write", "python"})
LINES = "".join(f"line {number}\n" for number in range(1, 200_001))
ENDLESS = "while True: pass"


def interpreters() -> set[int]:
    """Return the interpreters that this process has started."""
    return interpreters_of(os.getpid())


async def run(client: Client, code: str, **options: Any) -> str:
    """Run code, and return what it shows."""
    result = await client.call_tool("run_python", {"code": code}, **options)
    assert not result.is_error, text_of(result)
    return only(text_of(result)).body.rstrip("\n")


async def failure(client: Client, code: str) -> str:
    """Run code that fails, and return what the model sees."""
    result = await client.call_tool("run_python", {"code": code})
    assert result.is_error
    return text_of(result)


def has_suspended(proc: Process) -> bool:
    """Return whether the program of a process waits, without an interpreter."""
    [head] = proc.store.run(reading(("HGET", proc.handle.keys.python, "head")))
    return b'"snapshot":"' in (head or b"")


def reading(command: tuple[str, ...]) -> Operation[list[Any]]:
    return (yield [command])


async def until(is_so: Callable[[], Any]) -> None:
    """Wait for something that this process does not hear of."""
    await asyncio.to_thread(wait_until, is_so)


async def cancelled(call: Awaitable[Any]) -> None:
    """Cancel a call once its interpreter runs, as a host does, and wait for the end of the interpreter."""
    before = interpreters()
    task = asyncio.ensure_future(call)
    await until(lambda: interpreters() - before)
    started = interpreters() - before
    task.cancel()
    await asyncio.wait([task])
    await until(lambda: not started & interpreters())


def test_without_the_permission_the_tool_is_neither_listed_nor_run(redis_url: str) -> None:
    async def work(client: Client) -> tuple[list[str], Any]:
        names = [tool.name for tool in (await client.list_tools()).tools]
        return names, only(await failure(client, "1"))

    names, error = talk(redis_url, work)

    assert "run_python" not in names
    assert error["type"] == "permission_error"
    assert str(NotPermitted("run_python", "python")) in error.message


def test_code_stores_texts_only_with_the_permission_to_write(redis_url: str, proc: Process) -> None:
    code = "try:\n    create('a', name='b')\nexcept PermissionError as error:\n    print(error)"

    async def refused(client: Client) -> tuple[str, str]:
        [tool] = [each for each in (await client.list_tools()).tools if each.name == "run_python"]
        return str(tool.description), await run(client, code)

    async def stored(client: Client) -> tuple[str, str]:
        [tool] = [each for each in (await client.list_tools()).tools if each.name == "run_python"]
        return str(tool.description), await run(client, "create('a', name='b').text()")

    description, said = talk(redis_url, refused, permissions=PYTHON)
    assert "create(" not in description
    assert said.startswith("permission_error: code may not call create here")
    assert proc.list() == []

    description, text = talk(redis_url, stored, permissions=WRITING)
    assert "create(" in description
    assert text == "'a'"
    assert [each.fd for each in proc.list()] == ["name:b"]


def test_code_runs_commands_only_with_the_permission_to_pipe(redis_url: str, proc: Process) -> None:
    proc.create(LINES)
    code = "try: await pipe([['sort']], fd('fd:1#L1-9'))\nexcept PermissionError as error: print(error)"

    async def work(client: Client) -> tuple[str, str]:
        [tool] = [each for each in (await client.list_tools()).tools if each.name == "run_python"]
        return str(tool.description), await run(client, code)

    description, said = talk(redis_url, work, permissions=WRITING, options=ToolOptions(commands=("sort",)))

    assert "pipe(" not in description
    assert said.startswith("permission_error: code may not call pipe here")
    assert [each.fd for each in proc.list()] == ["fd:1"]


def test_a_command_that_is_refused_leaves_no_part_of_its_input(redis_url: str, proc: Process) -> None:
    proc.create(LINES)

    async def work(client: Client) -> str:
        return await failure(client, "await pipe([['rm', '-r', '/']], fd('fd:1#L1-9'))")

    said = talk(redis_url, work, permissions=WRITING | {"pipe"}, options=ToolOptions(commands=("sort",)))

    assert "rm" in said
    assert [each.fd for each in proc.list()] == ["fd:1"]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("fd('other/fd:1').text()", "ValueError: "),
        ("fd('fdstore://other/fd:1').text()", "ValueError: "),
        ("fd('name:other/secret').text()", "not_found: "),
        ("fd('name:../secret').text()", "not_found: "),
        ("_fdstore_read('other/fd:1', 'all', 1, 1)", ""),
        ("await ask('Why?')", "no model is named for it"),
        ("await spawn('reader', 'Why?')", "reader"),
    ],
)
def test_code_reaches_nothing_but_the_texts_of_its_process(
    redis_url: str, store: Store, code: str, said: str
) -> None:
    other = store.process("other")
    other.create("secret")
    other.put("secret", "secret")

    async def work(client: Client) -> str:
        return await failure(client, code)

    shown = talk(redis_url, work, permissions=WRITING)

    assert said in shown
    assert "secret" not in shown.replace("name:../secret", "").replace("name:other/secret", "")


@pytest.mark.parametrize("era", ERAS)
def test_a_call_that_its_host_cancels_ends_at_once_and_the_session_before_it_stays(
    redis_url: str, era: str
) -> None:
    async def work(client: Client) -> str:
        await run(client, "kept = 7")
        await cancelled(client.call_tool("run_python", {"code": f"kept = 8\n{ENDLESS}"}))
        return await run(client, "kept")

    assert talk(redis_url, work, era=era, permissions=PYTHON) == "7"


@pytest.mark.parametrize("era", ERAS)
def test_a_pipeline_that_a_cancelled_call_waits_for_is_cancelled(
    redis_url: str, store: Store, proc: Process, execute: Any, era: str
) -> None:
    proc.create(LINES)

    def pipelines() -> list[str]:
        return [each.state for each in store.processes() if each.kind == "pipeline"]

    async def work(client: Client) -> str:
        await run(client, "kept = 7")
        code = "kept = 8\nawait pipe([['sort']], fd('fd:1#L1-9'))"
        call = asyncio.create_task(client.call_tool("run_python", {"code": code}))
        await until(lambda: pipelines() == ["ready"] and has_suspended(proc))
        call.cancel()
        await asyncio.wait([call])
        await until(lambda: pipelines() == ["cancelled"])
        return await run(client, "kept")

    options = ToolOptions(commands=("sort",))
    assert talk(redis_url, work, era=era, permissions=WRITING | {"pipe"}, options=options) == "7"
    execute("DEL", "fdq:fdstore:queue")  # a wake-up that no worker received


def test_a_client_over_http_that_leaves_ends_its_program(redis_url: str, proc: Process) -> None:
    async def leave(url: str) -> None:
        async with calling(url) as client:
            await client.call_tool("run_python", {"code": ENDLESS})

    async def main() -> str:
        async with served(redis_url, permissions=PYTHON) as url:
            await cancelled(leave(url))
            async with calling(url) as client:
                return await run(client, "1 + 1")

    assert asyncio.run(main()) == "2"


def test_programs_of_one_process_wait_for_each_other_and_none_is_lost(redis_url: str) -> None:
    async def main() -> str:
        toolsets = toolsets_at(redis_url, permissions=PYTHON)
        async with Client(build_server(toolsets)) as one, Client(build_server(toolsets)) as other:
            await run(one, "n = 0")
            adding = [run(client, "n += 1") for client in (one, other) * 4]
            await asyncio.gather(*adding)
            return await run(one, "n")

    assert asyncio.run(main()) == "8"


def test_a_call_that_waits_for_its_turn_can_be_cancelled(redis_url: str) -> None:
    async def work(client: Client) -> str:
        before = interpreters()
        running = asyncio.create_task(client.call_tool("run_python", {"code": ENDLESS}))
        await until(lambda: interpreters() - before)
        waiting = asyncio.create_task(run(client, "never = 1"))
        waiting.cancel()
        await asyncio.wait([waiting])
        running.cancel()
        await asyncio.wait([running])
        return await run(client, "'never' in dir() if False else 2")

    assert talk(redis_url, work, permissions=PYTHON) == "2"


def test_a_program_that_runs_delays_no_other_tool_and_no_other_process(redis_url: str, store: Store) -> None:
    secrets = {name: new_secret() for name in ("busy", "calm")}
    for name, secret in secrets.items():
        store.run(add_token(store.prefix, secret, name, name, WRITING))
        store.process(name).create(LINES)

    async def main() -> tuple[str, str]:
        async with (
            served(redis_url, with_tokens=True, permissions=WRITING) as url,
            calling(url, secrets["busy"]) as busy,
            calling(url, secrets["calm"]) as calm,
        ):
            before = interpreters()
            endless = asyncio.create_task(busy.call_tool("run_python", {"code": ENDLESS}))
            await until(lambda: interpreters() - before)
            found = await busy.call_tool("search_fd", {"fd": 1, "pattern": "line 77$"})
            total = await run(calm, "fd(1).total_lines")
            assert not endless.done()
            endless.cancel()
            await asyncio.wait([endless])
            return only(text_of(found)).body, total

    assert PROGRAMS_AT_ONCE > 1
    assert asyncio.run(asyncio.wait_for(main(), PATIENCE_S)) == ("77:line 77", "200000")


def test_a_client_hears_how_many_calls_its_code_has_made(redis_url: str, proc: Process) -> None:
    told: list[tuple[float, float | None]] = []

    async def note(done: float, total: float | None, message: str | None) -> None:
        told.append((done, total))

    async def work(client: Client) -> None:
        await run(client, "for _ in range(500): fds()", progress_callback=note)

    talk(redis_url, work, permissions=PYTHON)

    assert told[-1] == (500, None)
    assert told == sorted(told)


def test_code_of_another_server_that_is_replaced_says_so(redis_url: str) -> None:
    async def main() -> str:
        servers = [build_server(toolsets_at(redis_url, permissions=WRITING)) for _ in range(2)]
        async with Client(servers[0]) as one, Client(servers[1]) as other:
            before = interpreters()
            # its clock is a call of the host, which is recorded before the text is stored
            first = asyncio.create_task(
                one.call_tool(
                    "run_python",
                    {"code": "import time\nwhile True:\n    time.time()\n    create('a', name='a')"},
                )
            )
            await until(lambda: interpreters() - before)
            await run(other, "1")
            return text_of(await first)

    said = only(asyncio.run(main()))

    assert said["type"] == "fenced"
    assert "another call of run_python has replaced this one" in said.message


def test_the_example_of_the_plugins_skill_is_right(redis_url: str, proc: Process, tmp_path: Path) -> None:
    skill = (write_plugin(tmp_path, with_python=True) / PYTHON_SKILL / "SKILL.md").read_text()
    [code] = re.findall(r"^```python\n(.*?)^```$", skill, re.MULTILINE | re.DOTALL)
    for _ in range(2):
        proc.create("a short one")
    tests = [f"test_{module}.py::test_{number}" for module in ("a", "b") for number in range(40)]
    proc.create("".join(f"{'PASSED' if '_a' in test else 'FAILED'} {test}\n" for test in tests))

    async def work(client: Client) -> str:
        return await run(client, code)

    assert talk(redis_url, work, permissions=WRITING) == "40 [('test_b.py', 40)]"
