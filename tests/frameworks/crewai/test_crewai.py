"""The hooks in real crews of CrewAI, with a scripted model that keeps what it was shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from crewai import Agent, Crew, Task
from crewai.tools import tool

import fdstore
from fdstore.client import Store
from fdstore.errors import InvalidArgument
from fdstore.integrations.crewai import FdstoreCrew
from tests.frameworks.conformance.crewai import ScriptedLlm
from tests.frameworks.conformance.driver import Call


def scripted(*script: tuple[str, dict[str, Any]], native: bool = True) -> ScriptedLlm:
    return ScriptedLlm(model="scripted", script=[[Call(*each)] for each in script], is_native=native)


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CREWAI_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("CREWAI_TRACING_ENABLED", "false")
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    monkeypatch.setenv("CREWAI_STORAGE_DIR", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))


def crew_of(ours: FdstoreCrew, tools: list[Any], model: ScriptedLlm, task: str = "Go.") -> Crew:
    agent = Agent(
        role="triage", goal="find it", backstory=ours.instructions, tools=[*tools, *ours.tools], llm=model
    )
    return Crew(agents=[agent], tasks=[Task(description=task, expected_output="text", agent=agent)])


def run(ours: FdstoreCrew, tools: list[Any], model: ScriptedLlm, task: str = "Go.", **inputs: str) -> str:
    """Run a crew, and return all that its model was shown last, as one text."""
    with ours:
        crew_of(ours, tools, model, task).kickoff(inputs=inputs or None)
    return "\n".join(str(message.get("content")) for message in model.requests[-1])


@pytest.fixture
def read_log(read_log: Callable[[], str]) -> Any:
    return tool(read_log)


@pytest.mark.parametrize("native", [True, False], ids=["native", "in-text"])
def test_a_long_result_is_shown_as_its_descriptor_and_read_back_exactly(
    store: Store, read_log: Any, log_text: str, native: bool
) -> None:
    model = scripted(("read_log", {}), ("read_fd", {"fd": "fd:1#L4321"}), native=native)

    shown = run(FdstoreCrew(store, "chat-7"), [read_log], model)

    assert '<fd_result fd="fd:1" ' in shown
    assert "\nline 4321 of the build\n" in shown
    assert "line 2500 of" not in shown
    assert "search_fd" in shown
    assert store.process("chat-7").read("fd:1", read_all=True).text == log_text


def test_long_inputs_of_a_crew_are_stored(store: Store, log_text: str) -> None:
    model = scripted(("list_fds", {}))

    shown = run(
        FdstoreCrew(store, "chat-7"), [], model, "Why did {job} fail? {log}", job="build 7", log=log_text
    )

    assert "Why did build 7 fail? <fd_result " in shown
    assert "line 2500 of" not in shown
    assert [found.source for found in store.process("chat-7").list()] == ["user_input"]


def test_errors_stay_errors_and_short_results_stay_as_they_are(store: Store, log_text: str) -> None:
    @tool
    def fail() -> str:
        """Fail."""
        raise ValueError("exit code 2\n" + log_text)

    @tool
    def count() -> dict[str, int]:
        """Count."""
        return {"lines": 3}

    model = scripted(("fail", {}), ("count", {}), ("read_fd", {"fd": "fd:9"}))

    run(FdstoreCrew(store, "chat-7"), [fail, count], model)

    failed, counted, refused = (
        message["content"] for message in model.requests[-1] if message.get("role") == "tool"
    )
    assert failed.startswith("<fd_result ")
    assert "Error executing tool: exit code 2" in failed
    assert json.loads(counted.replace("'", '"')) == {"lines": 3}
    assert refused.startswith('<fd_error type="not_found"')


def test_a_crew_outside_the_block_and_crews_of_other_threads_are_not_concerned(
    store: Store, read_log: Any, log_text: str
) -> None:
    def text_of(thread: str) -> str:
        return run(FdstoreCrew(store, thread), [read_log], scripted(("read_log", {})))

    with FdstoreCrew(store, "around"), ThreadPoolExecutor(2) as pool:
        shown = list(pool.map(text_of, ["chat-7", "chat-8"]))
    outside = scripted(("read_log", {}))
    crew_of(FdstoreCrew(store), [read_log], outside).kickoff()

    assert all('<fd_result fd="fd:1" ' in each for each in shown)
    assert {tree.id for tree in store.trees()} == {"chat-7", "chat-8"}
    assert "line 2500 of" in str(outside.requests[-1])


async def test_a_store_of_asyncio_is_refused(redis_url: str) -> None:
    async with await fdstore.aio.connect(redis_url) as store:
        with pytest.raises(InvalidArgument, match="not awaited"):
            FdstoreCrew(store)


@pytest.mark.parametrize("native", [True, False], ids=["native", "text"])
def test_a_result_that_is_the_answer_is_what_the_tool_returned(
    store: Store, log_text: str, native: bool
) -> None:
    @tool("read_log", result_as_answer=True)
    def read_log() -> str:
        """Return the log."""
        return log_text

    ours = FdstoreCrew(store, "chat-7")
    with ours:
        ended = crew_of(ours, [read_log], scripted(("read_log", {}), native=native)).kickoff()

    assert ended.raw.strip() == log_text.strip()
