"""The SDK of Anthropic as the client of a scripted model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anthropic

from fdstore.testing import Script, ScriptedModel

HELLO: list[Any] = [{"role": "user", "content": "Hello"}]
READ_FD: Any = {
    "name": "read_fd",
    "input_schema": {"type": "object", "properties": {"fd": {"type": "string"}}},
}


@contextmanager
def client_of(model: ScriptedModel, retries: int = 0) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(
        base_url=model.base_url, api_key=model.api_key, max_retries=retries, timeout=20
    ) as client:
        yield client


@contextmanager
def playing(script: Script, retries: int = 0) -> Iterator[tuple[ScriptedModel, anthropic.Anthropic]]:
    with ScriptedModel(script) as model, client_of(model, retries) as client:
        yield model, client


def created(client: anthropic.Anthropic, **changes: Any) -> anthropic.types.Message:
    return client.messages.create(**{"model": "m", "max_tokens": 100, "messages": HELLO, **changes})


def streamed(client: anthropic.Anthropic, **changes: Any) -> anthropic.types.Message:
    with client.messages.stream(**{"model": "m", "max_tokens": 100, "messages": HELLO, **changes}) as stream:
        return stream.get_final_message()


def event_names(client: anthropic.Anthropic) -> Iterator[str]:
    with client.messages.with_streaming_response.create(
        model="m", max_tokens=9, messages=HELLO, stream=True
    ) as response:
        for line in response.iter_lines():
            if line.startswith("event: "):
                yield line.removeprefix("event: ")
