"""Copies of an agent on real worker processes: at once, in order, and through the death of a worker."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fdstore.local.redis_server import PrivateServer
from fdstore.testing import Request, call, fail, say, slow
from tests.elements import elements
from tests.waiting import wait_until
from tests.with_workers.conftest import StartAgentWorker, agent_workers
from tests.with_workers.test_spawn import Stage, staged

TOGETHER_S = 20.0


@pytest.fixture(scope="module")
def crew(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A stage with one worker that the tests share."""
    folder = tmp_path_factory.mktemp("forks")
    with PrivateServer() as server, agent_workers(folder) as start, staged(server, folder) as made:
        start(made.url, made.model, concurrency=4)
        yield made


@pytest.fixture
def stage(agents_server: PrivateServer, tmp_path: Any) -> Iterator[Stage]:
    """A stage of this test alone, without a worker."""
    with staged(agents_server, tmp_path) as made:
        yield made


def copy_of(request: Request) -> int:
    """Which copy asks; 0 for the original."""
    told = [result.text for result in request.tool_results() if result.text.startswith("You are copy ")]
    return int(told[-1].split()[3]) if told else 0


def forking(
    prompts: list[str], copies: Callable[[int, Request], Any], last: Any = None
) -> Callable[..., Any]:
    """A script: the original reads, forks and ends; `copies` says what each copy says."""

    def script(request: Request) -> Any:
        number = copy_of(request)
        if number:
            return copies(number, request)
        replies = [call("lines", count=3000), call("fork", prompts=prompts), last or say("Done.")]
        return replies[request.turn_number]

    return script


def test_copies_run_at_the_same_time_and_answer_in_prompt_order(crew: Stage) -> None:
    crew.program("root", tools="read_fd fork")
    together = threading.Barrier(3)
    ended: list[int] = []

    def copy(number: int, request: Request) -> Any:
        if "fd_content" in request.last_text():
            ended.append(number)
            return slow(say(f"Copy {number} read."), 0.3 * (3 - number))
        together.wait(TOGETHER_S)  # none goes on before all three have asked
        return call("read_fd", fd="fd:1", start=number)

    crew.act({"ROOT": forking(["one", "two", "three"], copy)})
    root = crew.run()

    parts = elements(crew.results(root)[1].content)
    assert sorted(ended) == [1, 2, 3]
    assert [part.body for part in parts] == ["Copy 1 read.", "Copy 2 read.", "Copy 3 read."]
    assert [part["process"] for part in parts] == [f"{root}.1", f"{root}.2", f"{root}.3"]
    assert crew.answer(root) == "Done."
    # by reference: the tree holds the one text once, whoever read it
    assert crew.store.tree(root).fds == 1
    for number in (1, 2, 3):
        page = crew.store.process(root).read("fd:1", start=number).text
        assert f"\n{page}\n" in crew.results(f"{root}.{number}")[0].content


def test_the_place_of_the_original_is_free_while_its_copies_run(
    stage: Stage, start_agent_worker: StartAgentWorker
) -> None:
    stage.program("root", tools="read_fd fork")
    start_agent_worker(stage.url, stage.model, concurrency=1)
    seen: list[str] = []

    def copy(number: int, request: Request) -> Any:
        seen.append(stage.record(stage.redis.zrange("fdstore:trees", 0, 0)[0]).state)
        return say(f"Copy {number}.")

    stage.act({"ROOT": forking(["a", "b"], copy)})
    root = stage.run()

    assert seen == ["waiting", "waiting"]
    assert stage.answer(root) == "Done."


def test_a_copy_has_the_same_prompt_and_history_and_is_offered_no_fork(crew: Stage) -> None:
    crew.program("root", tools="read_fd fork spawn", links="root")
    crew.act({"ROOT": forking(["Look."], lambda number, request: say("Looked."))})

    crew.run("long question " * 2000)

    first, copy = crew.requests[0], next(each for each in crew.requests if copy_of(each))
    second = next(each for each in crew.requests if each.turn_number == 1 and not copy_of(each))
    assert first.raw["system"] == copy.raw["system"]
    assert copy.messages[: len(second.messages)] == second.messages
    assert set(second.tools) - set(copy.tools) == {"fork", "spawn"}


def test_one_failing_copy_does_not_harm_the_others(crew: Stage) -> None:
    crew.program("root", tools="read_fd fork")

    def copy(number: int, request: Request) -> Any:
        return fail(400, "invalid_request_error", "no") if number == 2 else say(f"Copy {number}.")

    crew.act({"ROOT": forking(["a", "b", "c"], copy)})
    root = crew.run()

    states = [part["state"] for part in elements(crew.results(root)[1].content)]
    assert states == ["exited", "failed", "exited"]
    assert crew.answer(root) == "Done."


def test_copies_of_a_killed_worker_are_run_again_and_none_is_made_twice(
    stage: Stage, start_agent_worker: StartAgentWorker
) -> None:
    stage.program("root", tools="read_fd fork")
    first = start_agent_worker(stage.url, stage.model, concurrency=4)
    killed = threading.Event()

    def copy(number: int, request: Request) -> Any:
        return say(f"Copy {number}.") if killed.is_set() else slow(say("Too late."), 600)

    stage.act({"ROOT": forking(["a", "b"], copy)})
    root = stage.launch()
    wait_until(lambda: sum(copy_of(request) > 0 for request in stage.requests) == 2)
    first.kill()
    killed.set()
    for number in (1, 2):
        stage.lease_runs_out(f"{root}.{number}")
    start_agent_worker(stage.url, stage.model, concurrency=4)
    stage.wait(root)

    assert [member.id for member in stage.store.tree(root).members] == [root, f"{root}.1", f"{root}.2"]
    assert [stage.record(f"{root}.{number}").losses for number in (1, 2)] == [1, 1]
    assert [part.body for part in elements(stage.results(root)[1].content)] == ["Copy 1.", "Copy 2."]
