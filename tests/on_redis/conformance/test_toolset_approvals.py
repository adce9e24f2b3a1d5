"""Toolset(approve=...): a function of the user's is asked before calls that change something."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

import fdstore
import fdstore.aio
from fdstore import PersonAnswer, Question, Toolset
from fdstore.client import Process
from fdstore.errors import InvalidArgument
from tests.waiting import wait_until

ran: list[str] = []


def deploy(target: str) -> str:
    """Deploy it."""
    ran.append(target)
    return f"deployed {target}"


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    ran.clear()


def decide(question: Question) -> bool | PersonAnswer:
    match question.arguments.get("target"):
        case "one" | "note":
            return True
        case "all":
            return PersonAnswer(approved=False, reason="Too much.", by="ann")
        case "many":
            return PersonAnswer(approved=True, arguments={"target": "few"}, by="ann")
    return False


async def decide_awaited(question: Question) -> bool | PersonAnswer:
    await asyncio.sleep(0)
    return decide(question)


EXPECTED = {
    "one": ("deployed one", False),
    "all": (
        '<person_answer who="ann" approved="false">\nThe call was not run: Too much.\n</person_answer>',
        True,
    ),
    "other": (
        '<person_answer approved="false">\nThe call was not run.\n</person_answer>',
        True,
    ),
}


@pytest.mark.parametrize("approve", [decide, decide_awaited])
def test_the_function_decides_which_calls_run(proc: Process, approve: Callable[..., Any]) -> None:
    tools = Toolset(proc, python=[deploy], approve=approve)

    for target, expected in EXPECTED.items():
        result = tools.call("deploy", {"target": target}, call_id=target)
        assert (result.content, result.is_error) == expected
    changed = tools.call("deploy", {"target": "many"}, call_id="many")
    again = tools.call("deploy", {"target": "one"}, call_id="one")

    assert changed.content.endswith('changed to: {"target":"few"}\n</person_answer>\ndeployed few')
    assert again.content == "deployed one"
    assert ran == ["one", "few"]


@pytest.mark.parametrize("approve", [decide, decide_awaited])
def test_the_function_may_be_awaited_in_the_loop_of_the_caller(
    redis_url: str, approve: Callable[..., Any]
) -> None:
    loops = []

    async def main() -> list[tuple[Any, bool]]:
        async def asked(question: Question) -> bool | PersonAnswer:
            loops.append(asyncio.get_running_loop())
            found = approve(question)
            return await found if asyncio.iscoroutine(found) else found

        async with await fdstore.aio.connect(redis_url) as store:
            tools = fdstore.aio.Toolset(await store.process("awaited"), python=[deploy], approve=asked)
            results = [await tools.call("deploy", {"target": target}) for target in EXPECTED]
            assert set(loops) == {asyncio.get_running_loop()}
            return [(each.content, each.is_error) for each in results]

    assert asyncio.run(main()) == list(EXPECTED.values())


def test_nobody_is_asked_about_calls_that_only_read(proc: Process) -> None:
    proc.create("one")
    tools = Toolset(proc, enabled=["read_fd", "write_fd"], approve=lambda question: False)

    assert not tools.call("read_fd", {"fd": "fd:1"}).is_error
    assert tools.call("write_fd", {"data": "two"}).is_error
    assert len(proc.list()) == 1


def test_code_asks_as_the_model_does(proc: Process) -> None:
    asked = []

    def approve(question: Question) -> bool:
        asked.append((question.tool, question.in_code))
        return question.tool == "run_python"

    tools = Toolset(proc, enabled=["run_python"], python=[deploy], approve=approve)

    result = tools.call("run_python", {"code": "await deploy(target='all')"})

    assert result.is_error
    assert "PermissionError: The call was not run." in result.content
    assert asked == [("run_python", False), ("deploy", True)]
    assert ran == []


def test_references_are_replaced_before_the_function_is_asked(proc: Process) -> None:
    proc.create("the target")
    asked: list[dict[str, Any]] = []

    def approve(question: Question) -> bool:
        asked.append(question.arguments)
        return True

    Toolset(proc, python=[deploy], approve=approve).call("deploy", {"target": "{{fd:1}}"})

    assert asked == [{"target": "the target"}]
    assert ran == ["the target"]


def test_what_is_no_answer_runs_nothing(proc: Process) -> None:
    tools = Toolset(proc, python=[deploy], approve=lambda question: "yes")  # type: ignore[arg-type,return-value]

    result = tools.call("deploy", {"target": "one"})

    assert result.is_error
    assert "must return a bool or a PersonAnswer" in result.content
    assert ran == []
    with pytest.raises(InvalidArgument, match="a function is needed"):
        Toolset(proc, approve="yes")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "fields",
    [
        {"approved": "no"},
        {"approved": 1},
        {"approved": True, "arguments": ["one"]},
        {"approved": True, "arguments": {1: "one"}},
        {"approved": True, "arguments": {"target": {"one"}}},
        {"approved": True, "arguments": {"target": float("nan")}},
        {"approved": True, "arguments": {"target": "\ud83d"}},
        {"approved": True, "arguments": {"target": object()}},
        {"approved": True, "reason": "It is late."},
        {"approved": False, "reason": 7},
        {"approved": False, "reason": "\ud83d"},
        {"approved": True, "by": "\ud83d"},
    ],
)
def test_an_answer_of_values_that_it_cannot_have_runs_nothing(proc: Process, fields: dict[str, Any]) -> None:
    tools = Toolset(proc, python=[deploy], approve=lambda question: PersonAnswer(**fields))

    result = tools.call("deploy", {"target": "one"})

    assert result.is_error
    assert 'type="invalid_argument"' in result.content
    assert ran == []


def test_a_loop_of_ones_own_may_offer_ask_person(proc: Process) -> None:
    tools = Toolset(proc, enabled=["ask_person"])
    results: list[Any] = []
    thread = threading.Thread(
        target=lambda: results.append(tools.call("ask_person", {"question": "Which?"}, call_id="1"))
    )
    thread.start()
    store = proc.store
    wait_until(lambda: store.questions(), what="a question")
    store.answer(proc.id, "red", by="ann")
    thread.join()

    assert results[0].content.endswith(">\nred\n</person_answer>")
