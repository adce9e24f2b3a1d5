"""The count of a provider for a request corrects the estimates of the next results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from fdstore.agents.loop.first_prompt import PRELOADED
from fdstore.client import Store
from fdstore.results.config import FDConfig
from fdstore.testing import Request, Turn, Usage, call, say, turn
from fdstore.text.tokens import estimate_tokens
from fdstore.tools.clearing import estimated_tokens
from tests.on_redis.running_agents import READER, AgentsOf, lines, tool

ESTIMATE = estimate_tokens(lines(100))
TOKENS = FDConfig(max_direct_output_tokens=ESTIMATE)


@pytest.mark.parametrize(
    ("times", "is_stored"),
    [(0.2, False), (0.98, False), (1.05, True), (40.0, True)],
)
@pytest.mark.parametrize("way", [{"prompt_cache": False}, {"deferred_tools": True}], ids=str)
@pytest.mark.parametrize("crashes", [(), (5,), (7,)], ids=str)
def test_a_threshold_in_tokens_follows_what_the_provider_counts(
    agents_of: AgentsOf,
    store: Store,
    times: float,
    is_stored: bool,
    way: dict[str, Any],
    crashes: tuple[int, ...],
) -> None:
    def script(request: Request) -> Turn:
        counted = [each for each in request.raw["tools"] if each["name"] not in request.unloaded]
        contents = [msgspec.json.encode(counted).decode(), request.system]
        sent = estimated_tokens([*contents, *(message["content"] for message in request.messages)])
        usage = Usage(input_tokens=round(sent * times))
        return turn(say("Done.") if request.turn_number else call("lines", count=100), usage=usage)

    agents = agents_of(script)
    agents.launch(tools=("read_fd",), python=(tool("lines"),), file_descriptor=TOKENS, **way)
    agents.crash(*crashes)
    agents.attempt("solo")

    [result] = agents.results()
    assert str(result.content).startswith("<fd_result ") == is_stored


@pytest.mark.parametrize(("stored", "count"), [(False, 100), (True, 210)])
def test_a_calibration_is_bounded_so_that_a_strange_usage_hides_nothing(
    agents_of: AgentsOf, stored: bool, count: int
) -> None:
    """Of a provider that counts nearly nothing: at most twice the threshold stays inline."""
    script = [turn(call("lines", count=count), usage=Usage(input_tokens=1)), say("Done.")]
    agents = agents_of(script)
    agents.launch(tools=("read_fd",), python=(tool("lines"),), file_descriptor=TOKENS)
    agents.attempt("solo")

    assert str(agents.results()[0].content).startswith("<fd_result ") == stored


@pytest.mark.parametrize(("tokens", "is_stored"), [(60, True), (200, False)])
def test_answers_of_children_and_preloads_are_judged_by_the_same_threshold(
    agents_of: AgentsOf, tmp_path: Path, tokens: int, is_stored: bool
) -> None:
    text = "many words in an answer of a child\n" * 10
    (tmp_path / "notes.txt").write_text(text)
    config = FDConfig(max_direct_output_tokens=tokens)
    program = msgspec.structs.replace(READER, file_descriptor=config, preload=(str(tmp_path / "notes.txt"),))

    def script(request: Request) -> object:
        if "READER" in request.system or request.turn_number:
            return say(text)
        return call("spawn", program_name="reader", query="go")

    agents = agents_of(script)
    agents.launch(others=(program,), tools=("read_fd", "spawn"), file_descriptor=config)
    agents.run_all("solo")
    [result] = agents.results()
    prompt = next(each.system for each in agents.model.requests if "READER" in each.system)

    assert ("<fd_result " in str(result.content)) == is_stored
    assert ("<fd_result " in prompt.partition(PRELOADED)[2]) == is_stored
