"""Forks of an agent on real worker processes: concurrent, and answered in order."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from fdstore.testing import Request, call, say, slow
from tests.dialects import every_dialect
from tests.elements import elements
from tests.waiting import PATIENCE_S
from tests.with_workers.agent_harness import AgentHarness


def fork_number(request: Request) -> int:
    """Return the number of the fork that sent the request; 0 for the parent."""
    told = [result.text for result in request.tool_results() if result.text.startswith("You are copy ")]
    return int(told[-1].split()[3]) if told else 0


def forking(
    prompts: list[str], copies: Callable[[int, Request], Any], last: Any = None
) -> Callable[..., Any]:
    """Return a script: the parent reads, forks and ends; `copies` answers for each fork."""

    def script(request: Request) -> Any:
        number = fork_number(request)
        if number:
            return copies(number, request)
        replies = [call("lines", count=3000), call("fork", prompts=prompts), last or say("Done.")]
        return replies[request.turn_number]

    return script


@every_dialect
def test_forks_run_concurrently_and_answer_in_prompt_order(shared_harness: AgentHarness) -> None:
    shared_harness.program("root", tools="read_fd fork")
    together = threading.Barrier(3)
    ended: list[int] = []

    def copy(number: int, request: Request) -> Any:
        if "fd_content" in request.last_text():
            ended.append(number)
            return slow(say(f"Copy {number} read."), 0.3 * (3 - number))
        together.wait(PATIENCE_S)  # passes only when all three have asked
        return call("read_fd", fd="fd:1", start=number)

    shared_harness.set_script({"ROOT": forking(["one", "two", "three"], copy)})
    root = shared_harness.run()

    parts = elements(shared_harness.results(root)[1].content)
    assert sorted(ended) == [1, 2, 3]
    assert [part.body for part in parts] == ["Copy 1 read.", "Copy 2 read.", "Copy 3 read."]
    assert [part["process"] for part in parts] == [f"{root}.1", f"{root}.2", f"{root}.3"]
    assert shared_harness.answer(root) == "Done."
    # by reference: the tree stores the text once, for all readers
    assert shared_harness.store.tree(root).fds == 1
    for number in (1, 2, 3):
        page = shared_harness.store.process(root).read("fd:1", start=number).text
        assert f"\n{page}\n" in shared_harness.results(f"{root}.{number}")[0].content
