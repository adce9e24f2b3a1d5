"""Ends of an agent: its last answer, or a limit of its program or its tree."""

from __future__ import annotations

import pytest

from fdstore.agents.loop.conversation import Assistant, Conversation, Start
from fdstore.agents.loop.ends import end_after, reached_limit
from fdstore.agents.loop.program_limits import Limits
from fdstore.model.lifecycle import ProcessEnd
from fdstore.tools.process_task import SpawnTask

LIMITS = Limits(max_turns=2, wall_seconds=60, token_budget=100)
UNTIL_S = 1_000.0
OF_TREE = ("tree_model_calls", 30, 31)


def answer(tokens: int = 0, stop_reason: str | None = "end_turn") -> Assistant:
    return Assistant(
        content=[{"type": "text", "text": "Done."}], stop_reason=stop_reason, output_tokens=tokens
    )


def conversation(*answers: Assistant) -> Conversation:
    return Conversation([SpawnTask(query="Count."), Start(system="", content="Count."), *answers])


@pytest.mark.parametrize(
    ("stop_reason", "exit_code", "reason"),
    [
        ("end_turn", 0, ""),
        ("stop_sequence", 0, ""),
        ("max_tokens", 1, "stop_reason max_tokens"),
        ("refusal", 1, "stop_reason refusal"),
        (None, 1, "stop_reason None"),
    ],
)
def test_only_a_normal_stop_reason_is_exit_code_0(
    stop_reason: str | None, exit_code: int, reason: str
) -> None:
    found = end_after(answer(stop_reason=stop_reason), "Done.")

    assert found == ProcessEnd("exited", exit_code, reason, "Done.")


@pytest.mark.parametrize(
    ("answers", "now_s", "of_tree", "reason"),
    [
        ([], 999.9, None, None),
        ([answer(99)], 999.9, None, None),
        ([answer(), answer()], 0, OF_TREE, "max_turns: 2 answers were given"),
        ([answer(100)], UNTIL_S, OF_TREE, "wall_seconds: 60 s are over"),
        ([answer(100)], 0, OF_TREE, "token_budget: 100 tokens are used"),
        ([answer(99)], 0, OF_TREE, "tree_model_calls: this tree has used 31 answers of models of 30"),
    ],
    ids=["no answer", "under all", "turns", "time", "tokens", "tree"],
)
def test_the_first_limit_that_is_reached_gives_the_reason(
    answers: list[Assistant], now_s: float, of_tree: tuple[str, int, int] | None, reason: str | None
) -> None:
    assert reached_limit(LIMITS, conversation(*answers), UNTIL_S, now_s, of_tree) == reason


def test_without_a_budget_any_number_of_tokens_may_be_used() -> None:
    limits = Limits(max_turns=2, wall_seconds=60, token_budget=None)

    assert reached_limit(limits, conversation(answer(10**9)), UNTIL_S, 0, None) is None
