"""A client of the Messages API: the body of a request, and an answer from the events of its stream.

The SDK is a client of HTTP alone here: `tries` retries, `answer` builds the answer.
"""

from __future__ import annotations

from typing import Any

import anthropic
import httpx2

from fdstore.agents.loop.answer import AnswerBuilder
from fdstore.agents.loop.conversation import Assistant
from fdstore.agents.loop.models.base import ModelFailed, ModelRequest, takes_deferred_tools
from fdstore.agents.loop.models.sdk_errors import SdkErrors
from fdstore.agents.loop.models.tries import OnEvent, Tries, broke_off, is_server_url
from fdstore.agents.loop.program_file import DEFAULT_MAX_TOKENS
from fdstore.http.client import GuardedTransport

NO_URL = "ANTHROPIC_BASE_URL is not the URL of a server, as https://HOST:PORT: correct or unset it"
ADVICE = {
    401: "check ANTHROPIC_API_KEY",
    403: "check what ANTHROPIC_API_KEY may use",
    404: "check [model] name and ANTHROPIC_BASE_URL",
}
ERRORS = SdkErrors(
    root=anthropic.AnthropicError,
    api=anthropic.APIError,
    status=anthropic.APIStatusError,
    connection=anthropic.APIConnectionError,
    advice=ADVICE,
)


def _connections() -> httpx2.AsyncClient:
    # without a transport of ours the SDK would read the proxies of the environment here
    return anthropic.DefaultAsyncHttpxClient(transport=GuardedTransport())


class AnthropicModel:
    """A client of the Messages API. Reads `$ANTHROPIC_API_KEY` and `$ANTHROPIC_BASE_URL`, as the SDK does.

    Safe to share between threads. Makes no connection and reads no proxy before the first request. Raises
    `ModelFailed` if no key is set, or if the URL cannot be one of a server.
    """

    def __init__(self, *, api_key: str | None = None, base_url: str | None = None) -> None:
        try:
            client = anthropic.AsyncAnthropic(
                api_key=api_key, base_url=base_url, max_retries=0, http_client=_connections()
            )
        except anthropic.AnthropicError as error:
            raise ModelFailed(str(error)) from error
        except (httpx2.InvalidURL, ValueError) as error:
            raise ModelFailed(NO_URL) from error
        if not is_server_url(client.base_url):
            raise ModelFailed(NO_URL)
        # checked here, because the SDK would raise a bare TypeError at the first request
        headers = {name.lower() for name, value in client.default_headers.items() if value}
        if client.credentials is None and headers.isdisjoint({"x-api-key", "authorization"}):
            raise ModelFailed(
                "no key for the Messages API: set ANTHROPIC_API_KEY; "
                "`python -m fdstore.testing` runs a scripted model, which needs no key"
            )
        self.takes_deferred_tools = takes_deferred_tools("anthropic", client.base_url.host)
        self._tries = Tries(client, _connections, ERRORS)

    def close(self) -> None:
        """End its requests, which then raise `ModelFailed`, and close its connections."""
        self._tries.close()

    def query(self, request: ModelRequest) -> Assistant:
        """Implements `Model.query`, with streamed requests."""
        body = _body(request)

        async def ask(
            client: anthropic.AsyncAnthropic, timeout: httpx2.Timeout, on_event: OnEvent
        ) -> Assistant:
            builder = AnswerBuilder()
            async with await client.messages.create(**body, stream=True, timeout=timeout) as stream:
                async for event in stream:
                    on_event(builder.add(event.to_dict(mode="json")))
            if not builder.is_whole:
                raise broke_off()
            return builder.finish()

        return self._tries.query(request, ask)


def missing_key() -> str:
    """Return why no model can be asked in this environment, such as for lack of a key; "" if one can."""
    try:
        AnthropicModel().close()
    except ModelFailed as error:
        return str(error)
    return ""


def _body(request: ModelRequest) -> dict[str, Any]:
    """Return the body of a request, as keyword arguments of the SDK."""
    parameters = dict(request.parameters)
    body: dict[str, Any] = {
        "model": request.model,
        "max_tokens": parameters.pop("max_tokens", DEFAULT_MAX_TOKENS),
        "messages": request.messages,
        "extra_body": parameters,
    }
    if request.system:
        body["system"] = request.system
    if request.tools:
        body["tools"] = request.tools
    if request.prompt_cache:
        # of the whole request: a marker in a message would move, and so change the bytes of the prefix
        ttl = {} if request.prompt_cache is True else {"ttl": request.prompt_cache}
        body["cache_control"] = {"type": "ephemeral", **ttl}
    return body
