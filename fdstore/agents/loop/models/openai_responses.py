"""A client of the Responses API, which carries the encrypted reasoning of OpenAI's models."""

from __future__ import annotations

from fdstore.agents.loop.conversation import Assistant
from fdstore.agents.loop.models.base import ModelRequest
from fdstore.agents.loop.models.openai_client import KEY_NAME, Api, OpenAIClient
from fdstore.agents.loop.models.openai_responses_form import (
    OPTIONAL,
    ResponseBuilder,
    events_of,
    responses_body,
)

API = Api("/responses", responses_body, ResponseBuilder, events_of, OPTIONAL)


class OpenAIResponsesModel:
    """A client of the Responses API, see `OpenAIClient`. Safe to share between threads."""

    takes_deferred_tools = False

    def __init__(
        self, *, api_key: str | None = None, base_url: str | None = None, key_name: str = KEY_NAME
    ) -> None:
        self._client = OpenAIClient(API, api_key=api_key, base_url=base_url, key_name=key_name)

    def close(self) -> None:
        """End its requests, which then raise `ModelFailed`, and close its connections."""
        self._client.close()

    def query(self, request: ModelRequest) -> Assistant:
        """Implements `Model.query`. Prompts are cached by the servers, without marks."""
        return self._client.query(request)
