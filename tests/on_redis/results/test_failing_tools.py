"""Any exception from a user's function becomes an error result; agent, task and worker continue."""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from fdstore import Toolset, aio
from fdstore.client import Process, Store
from fdstore.errors import InvalidArgument
from fdstore.testing import call, say
from tests.elements import only
from tests.on_redis.running_agents import running
from tests.waiting import PATIENCE_S


class RustPanic(BaseException):
    """Like the exception that pyo3 raises when Rust code panics."""


class UnprintableError(Exception):
    """An exception whose `__str__` fails."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


class NotesFail(Exception):
    """An exception whose notes cannot be read."""

    @property
    def __notes__(self) -> list[str]:
        raise RuntimeError("no notes")


class ArgsFail(Exception):
    """An exception whose arguments cannot be read."""

    @property
    def args(self) -> tuple[Any, ...]:  # type: ignore[override]
        raise RuntimeError("no arguments")


class CauseFails(Exception):
    """An exception whose cause cannot be read."""

    @property
    def __cause__(self) -> BaseException:  # type: ignore[override]
        raise RuntimeError("no cause")


class NothingReadable(Exception):
    """An exception of which nothing can be read."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(f"no {name}")


def notes_fail() -> str:
    """Raise an exception whose notes cannot be read."""
    raise NotesFail("no such day")


def args_fail() -> str:
    """Raise an exception whose arguments cannot be read."""
    raise ArgsFail("no such day")


def cause_fails() -> str:
    """Raise an exception whose cause cannot be read."""
    raise CauseFails("no such day")


def nothing_readable() -> str:
    """Raise an exception of which nothing can be read."""
    raise NothingReadable("no such day")


def panics() -> str:
    """Fails as the Rust code of an extension does."""
    raise RustPanic("index out of bounds")


def cancels() -> str:
    """Fails as a library that runs an event loop of its own does."""
    raise asyncio.CancelledError("its own task was cancelled")


def unspeakable() -> str:
    """Raise an exception that cannot be converted to a string."""
    raise UnprintableError


async def cancelled_later() -> str:
    """A coroutine that is cancelled."""
    raise asyncio.CancelledError("its own task was cancelled")


def several() -> str:
    """Fail as a task group does, with a note."""
    error = ExceptionGroup("2 pages", [ValueError("no page 1"), ExceptionGroup("more", [KeyError(2)])])
    error.add_note("pages are counted from 1")
    raise error


FAILING = {
    "several": (
        "ExceptionGroup: 2 pages (2 sub-exceptions)\npages are counted from 1\n"
        "  ValueError: no page 1\n  ExceptionGroup: more (1 sub-exception)\n    KeyError: 2"
    ),
    "panics": "RustPanic: index out of bounds",
    "cancels": "CancelledError: its own task was cancelled",
    "cancelled_later": "CancelledError: its own task was cancelled",
    "unspeakable": "UnprintableError",
    "notes_fail": "NotesFail: no such day",
    "args_fail": "ArgsFail: no such day",
    "cause_fails": "CauseFails: no such day",
    "nothing_readable": "NothingReadable: no such day",
}


@pytest.mark.parametrize("name", FAILING)
def test_a_base_exception_from_a_function_does_not_end_the_agent(
    store: Store, tmp_path: Path, name: str
) -> None:
    with running(store, [call(name), say("I know.")], tmp_path) as agents:
        agents.launch(python=(f"{__name__}:{name}",))

        assert agents.attempt("solo") == "ended"

        [result] = agents.results()
        assert (result.content, result.is_error) == (FAILING[name], True)
        assert (agents.record().state, agents.answer()) == ("exited", "I know.")


@pytest.mark.parametrize("name", FAILING)
def test_a_base_exception_from_a_function_does_not_cancel_the_task(redis_url: str, name: str) -> None:
    async def main() -> tuple[str, int]:
        async with await aio.connect(redis_url) as store:
            tools = aio.Toolset(await store.process("triage"), python=[globals()[name]])
            result = await tools.call(name, {})
            task = asyncio.current_task()
            return result.content, task.cancelling() if task else -1

    assert asyncio.run(main()) == (FAILING[name], 0)


def empty() -> list[dict[str, str]]:
    """Return a block without a text, as some MCP servers do."""
    return [{"type": "text", "text": ""}]


def test_an_agent_goes_on_after_a_tool_that_returned_an_empty_block(store: Store, tmp_path: Path) -> None:
    with running(store, [call("empty"), say("I know.")], tmp_path) as agents:
        agents.launch(python=(f"{__name__}:empty",))

        assert agents.attempt("solo") == "ended"

        assert [each.content for each in agents.results()] == [[{"type": "text", "text": "(no output)"}]]
        assert agents.answer() == "I know."


def test_a_typed_error_of_a_function_has_its_notes(proc: Process) -> None:
    def function() -> str:
        error = InvalidArgument("day", "there is no 31 June")
        error.add_note("see the calendar")
        raise error

    result = Toolset(proc, python=[function]).call("function", {})

    assert only(result.content).message == "day: there is no 31 June\nsee the calendar"


def test_a_task_that_awaits_a_function_can_be_cancelled_while_it_runs(redis_url: str) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def waits() -> str:
        """Wait."""
        begun.set()
        go_on.wait(PATIENCE_S)
        return "late"

    async def main() -> str:
        async with await aio.connect(redis_url) as store:
            tools = aio.Toolset(await store.process("triage"), python=[waits])
            task = asyncio.create_task(tools.call("waits", {}, call_id="toolu_1"))
            await asyncio.to_thread(begun.wait, 30)
            task.cancel()
            try:
                await asyncio.wait_for(asyncio.shield(task), PATIENCE_S)
            except asyncio.CancelledError:
                return "cancelled"
            finally:
                go_on.set()
        return "not cancelled"

    assert asyncio.run(main()) == "cancelled"


def test_ctrl_c_during_a_function_is_not_reported_as_its_error(proc: Process) -> None:
    def interrupted() -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Toolset(proc, python=[interrupted]).call("interrupted", {})


@pytest.mark.parametrize(
    "line", ["raise SystemExit('no licence')", "class P(BaseException): pass\nraise P('no licence')"]
)
def test_a_tool_module_that_fails_on_import_fails_its_agent_with_the_error(
    store: Store, tmp_path: Path, line: str
) -> None:
    (tmp_path / "broken_tools_module.py").write_text(line)
    with running(store, [], tmp_path) as agents:
        agents.launch(python=("broken_tools_module:tool",), tools_path=str(tmp_path))
        try:
            assert agents.attempt("solo") == "ended"
        finally:
            sys.modules.pop("broken_tools_module", None)

        record = agents.record()
        assert record.state == "failed"
        assert "cannot be imported here" in (record.reason or "")
        assert "no licence" in (record.reason or "")
