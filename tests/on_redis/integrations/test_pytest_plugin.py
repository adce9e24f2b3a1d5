"""The fixtures that users' tests of agents get."""

from __future__ import annotations

from pathlib import Path

import pytest

import fdstore
import fdstore.aio
from fdstore.testing import Request, call, fail, say
from tests.dialects import current, every_dialect

READER = """
[model]
name = "any"

[prompt]
system = "You read logs."

[tools]
enabled = ["read_fd"]

[preload]
files = ["build.log"]
"""

LEAD = """
[model]
name = "any"

[prompt]
system = "You lead."

[tools]
enabled = ["spawn"]

[linked_programs]
reader = "reader.toml"
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program that reads a log."""
    lines = "".join(f"line {number} of the build\n" for number in range(1, 5001))
    (tmp_path / "build.log").write_text(lines)
    named = f'name = "any"\n{current().in_program()}'
    (tmp_path / "reader.toml").write_text(READER.replace('name = "any"\n', named))
    return tmp_path / "reader.toml"


@every_dialect
def test_an_agent_runs_and_what_it_was_shown_is_known(fdstore_agent, program: Path) -> None:
    run = fdstore_agent(program, [call("read_fd", fd="fd:1#L120"), say("done")], "What is line 120?")

    assert (run.answer, run.record.state, run.record.exit_code) == ("done", "exited", 0)
    run.assert_shown("line 120 of the build", "What is line 120?")
    run.assert_not_shown("line 4000 of the build")
    assert [result.is_error for result in run.results()] == [False]
    assert run.process.read("fd:1#L4000").text == "line 4000 of the build\n"
    with pytest.raises(AssertionError, match=r"no model was shown 'line 4000'; the last of 2 requests"):
        run.assert_shown("line 4000")
    with pytest.raises(AssertionError, match="a model was shown 'line 120'"):
        run.assert_not_shown("line 120")


@every_dialect
def test_a_tree_runs_without_workers(fdstore_agent, program: Path) -> None:
    (program.parent / "lead.toml").write_text(LEAD)

    def lead(request: Request):
        if request.turn_number == 0:
            return call("spawn", program_name="reader", query="read line 7")
        return say(request.tool_results()[0].text)

    script = {"You lead.": lead, "You read logs.": [call("read_fd", fd="fd:1#L7"), say("it is seven")]}
    run = fdstore_agent(program.parent / "lead.toml", script, "Go.")

    assert "it is seven" in run.answer
    run.assert_shown("line 7 of the build")
    assert len(run.requests) == 4


def test_a_model_that_fails_ends_the_run(fdstore_agent, program: Path) -> None:
    run = fdstore_agent(program, [fail(400)], "Go.")

    assert run.record.state == "failed"
    assert run.answer == ""


@pytest.mark.parametrize("_of_two", [1, 2])
def test_each_test_has_a_store_of_its_own(fdstore_store: fdstore.Store, _of_two: int) -> None:
    assert fdstore_store.trees() == []
    fdstore_store.process("triage").create("one")


def test_the_tested_code_meets_the_store_of_the_test(fdstore_store: fdstore.Store) -> None:
    with fdstore.connect() as met:
        met.process("triage").create("of the tested code")

    assert [tree.id for tree in fdstore_store.trees()] == ["triage"]


@pytest.mark.anyio
async def test_an_awaited_store_is_that_of_the_test(
    fdstore_store: fdstore.Store, fdstore_async_store: fdstore.aio.Store
) -> None:
    await (await fdstore_async_store.process("triage")).create("awaited")

    assert fdstore_store.process("triage").read("fd:1").text == "awaited"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
