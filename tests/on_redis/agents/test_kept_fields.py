"""What a provider wants back is sent back byte for byte: by later attempts, and by copies."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fdstore.testing import Request, call, say, signed, think, turn
from tests.dialects import every_openai
from tests.on_redis.running_agents import AgentsOf, tool

pytestmark = every_openai

SIGNATURE = "EpwB+/==\N{SNOWMAN}\u2028"
FIRST = signed(call("echo", words="a"), extra_content={"google": {"thought_signature": SIGNATURE}})
WORK = [
    turn(think("Let me\n\tsee \N{SNOWMAN}."), say("I begin."), FIRST),
    turn(
        think("Two copies."), signed(call("fork", prompts=["One.", "Two."]), extra_content={"n": [1.5, None]})
    ),
    turn(think("Over."), say("Done.")),
]


def script(request: Request) -> Any:
    if request.last_text().endswith(("One.", "Two.")):
        return say("As a copy.")
    return WORK[request.turn_number]


def conversation(request: Request) -> list[Any]:
    """Return what a request has of the conversation."""
    return list(request.raw.get("messages") or request.raw["input"])


@pytest.mark.parametrize("crashes", [(), (9,), (12,)], ids=str)
def test_reasoning_and_signatures_are_the_same_in_every_request(
    agents_of: AgentsOf, crashes: tuple[int, ...]
) -> None:
    agents = agents_of(script)
    agents.launch(tools=("fork",), python=(tool("echo"),))
    agents.crash(*crashes)
    agents.run_all("solo")

    assert (agents.record().state, agents.answer()) == ("exited", "Done.")
    requests = agents.model.requests
    last = conversation(max(requests, key=lambda request: request.turn_number))
    # the scripted model refuses reasoning that was altered or left out of its place
    for request in requests:
        sent = conversation(request)
        shared = [a for a, b in zip(sent, last, strict=False) if a == b]
        assert len(shared) >= len(sent) - 2  # a copy goes on with the result of its own
    copies = [request for request in requests if request.last_text().endswith(("One.", "Two."))]
    assert len(copies) >= 2
    for request in (*copies, requests[-1]):
        text = json.dumps(conversation(request), ensure_ascii=False)
        assert json.dumps({"google": {"thought_signature": SIGNATURE}}, ensure_ascii=False) in text
        assert json.dumps({"n": [1.5, None]}) in text
        assert "scripted-" in text
