"""The client of a model, with a clock and pauses of the test."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fdstore.agents.loop.conversation import Assistant
from fdstore.agents.loop.models.base import Model, ModelRequest
from fdstore.testing import ScriptedModel
from tests.dialects import model_of

HELLO = [{"role": "user", "content": "Hello"}]
ADD = {"name": "add", "description": "Adds.", "input_schema": {"type": "object", "properties": {}}}


class ClientUnderTest:
    """A model client on a scripted model, and its pauses between retries."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.pauses: list[float] = []

    def query(self, *, within_s: float = 60.0, **more: Any) -> Assistant:
        request = {
            "model": "any",
            "system": "Be brief.",
            "messages": HELLO,
            "tools": [],
            "parameters": {"max_tokens": 100},
            "pause": self.pauses.append,
            "check": lambda: None,
            **more,
        }
        return self.model.query(ModelRequest(until_s=time.monotonic() + within_s, **request))


@contextmanager
def open_client(scripted: ScriptedModel) -> Iterator[ClientUnderTest]:
    """Yield a client of this test's API."""
    with model_of(scripted) as model:
        yield ClientUnderTest(model)
