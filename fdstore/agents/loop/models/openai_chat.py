"""A client of Chat Completions, which most servers of models speak."""

from __future__ import annotations

from fdstore.agents.loop.conversation import Assistant
from fdstore.agents.loop.models.base import ModelRequest
from fdstore.agents.loop.models.openai_chat_form import OPTIONAL, ChatAnswerBuilder, chat_body, events_of
from fdstore.agents.loop.models.openai_client import KEY_NAME, Api, OpenAIClient

API = Api("/chat/completions", chat_body, ChatAnswerBuilder, events_of, OPTIONAL)


class OpenAIChatModel:
    """A client of Chat Completions, see `OpenAIClient`. Safe to share between threads."""

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
