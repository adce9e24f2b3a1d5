"""llama.cpp's server with a small real model, by the Messages API and by Chat Completions.

What the model says does not matter: that it is asked, streamed, counted, stopped and refused as it should be.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from fdstore.agents.loop.models.base import ModelFailed, PromptTooLong
from fdstore.agents.loop.models.providers import open_model
from fdstore.model.model_servers import ModelServer
from tests.acceptance.conftest import Command
from tests.models.conftest import ServerOf
from tests.unit.agents.loop.model_client import ADD, ClientUnderTest
from tests.waiting import PATIENCE_S

PROVIDERS = pytest.mark.parametrize("provider", ["anthropic", "openai"])
WORDS = "The quick brown fox jumps over the lazy dog. "


def server_for(provider: str, url: str, variable: str | None = None) -> ModelServer:
    version = "/v1" if provider == "openai" else ""
    return ModelServer(provider=provider, base_url=url + version, api_key_env=variable)


@contextmanager
def client_of(server: ModelServer, environ: dict[str, str] | None = None) -> Iterator[ClientUnderTest]:
    model: Any = open_model(server, environ or {})
    try:
        yield ClientUnderTest(model)
    finally:
        model.close()


class Heard:
    """A listener that keeps what it hears."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.began = threading.Event()

    def on_text(self, text: str) -> None:
        if text:
            self.texts.append(text)
            self.began.set()

    def on_retry(self) -> None:
        self.texts.clear()


@PROVIDERS
def test_an_answer_arrives_in_pieces_and_is_counted(server: str, provider: str) -> None:
    heard = Heard()

    with client_of(server_for(provider, server)) as client:
        answer = client.query(parameters={"max_tokens": 24}, listener=heard)

    assert answer.text
    assert "".join(heard.texts) == answer.text
    assert len(heard.texts) > 3
    assert answer.input_tokens > 5
    assert 1 <= answer.output_tokens <= 24
    assert answer.stop_reason in ("max_tokens", "end_turn")


@PROVIDERS
def test_a_request_that_is_given_up_ends_at_once_and_the_next_one_is_answered(
    server: str, provider: str
) -> None:
    class GiveUp(Exception):
        pass

    heard = Heard()

    def check() -> None:
        if heard.began.is_set():
            raise GiveUp

    question = [{"role": "user", "content": "Count from one to a thousand, in words."}]
    with client_of(server_for(provider, server)) as client:
        with pytest.raises(GiveUp):
            client.query(
                messages=question, parameters={"max_tokens": 4000}, listener=heard, check=check, within_s=600
            )
        began = time.monotonic()
        assert client.query(parameters={"max_tokens": 4}).output_tokens <= 4

    assert time.monotonic() - began < PATIENCE_S


@PROVIDERS
def test_a_long_prompt_that_takes_its_time_is_waited_for(server: str, provider: str) -> None:
    question = [{"role": "user", "content": WORDS * 250 + "How many words are there?"}]

    with client_of(server_for(provider, server)) as client:
        answer = client.query(messages=question, parameters={"max_tokens": 4}, within_s=600)

    assert answer.input_tokens > 2000


@PROVIDERS
def test_a_conversation_beyond_its_context_is_known_to_be_too_long(
    server_of: ServerOf, provider: str
) -> None:
    url = server_of(1024)
    question = [{"role": "user", "content": WORDS * 300}]

    with client_of(server_for(provider, url)) as client, pytest.raises(PromptTooLong):
        client.query(messages=question, within_s=600)


@PROVIDERS
def test_tools_are_taken_and_the_answer_has_calls_or_text(server: str, provider: str) -> None:
    """A small model calls no tool, or one with arguments that are not JSON, which the agent tells it."""
    question = [{"role": "user", "content": "Call the tool add."}]

    with client_of(server_for(provider, server)) as client:
        answer = client.query(messages=question, tools=[ADD], parameters={"max_tokens": 64}, within_s=600)

    assert answer.text or answer.calls


@PROVIDERS
def test_a_wrong_key_is_refused_by_its_name_and_the_right_one_is_taken(
    server_of: ServerOf, provider: str
) -> None:
    server = server_for(provider, server_of(1024, "right-key"), "LLAMA_KEY")

    with client_of(server, {"LLAMA_KEY": "wrong-key"}) as client:
        with pytest.raises(ModelFailed, match=r"401 .*check LLAMA_KEY") as refused:
            client.query()
        assert "wrong-key" not in str(refused.value)
    with client_of(server, {"LLAMA_KEY": "right-key"}) as client:
        assert client.query(parameters={"max_tokens": 4}).output_tokens


@PROVIDERS
def test_ask_answers_about_a_stored_text(server: str, provider: str, command: Command) -> None:
    (command.folder / "notes.txt").write_text("The release is on Friday. Ann wrote the plan.\n")

    ended = command(
        *("ask", "When is the release?", "notes.txt", "--model", "smollm2", "--provider", provider),
        *("--base-url", server_for(provider, server).base_url or "", "--budget", "60k"),
    )

    assert ended.code == 0, ended.err
    assert ended.out.strip()
