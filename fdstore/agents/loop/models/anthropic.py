"""A client of the Messages API: the body of a request, and an answer from the events of its stream.

The SDK is a client of HTTP alone here: `tries` retries, `answer` builds the answer.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import anthropic
import httpx2

from fdstore.agents.loop.answer import AnswerBuilder, events_of
from fdstore.agents.loop.conversation import Assistant
from fdstore.agents.loop.models.base import ModelFailed, ModelRequest
from fdstore.agents.loop.models.message_blocks import without_kept
from fdstore.agents.loop.models.sdk_errors import SdkErrors
from fdstore.agents.loop.models.server_names import KEY_HEADERS, ServerNames
from fdstore.agents.loop.models.transport import ModelTransport
from fdstore.agents.loop.models.tries import OnEvent, Tries, is_server_url, read_events
from fdstore.agents.loop.program_file import DEFAULT_MAX_TOKENS
from fdstore.model.model_servers import no_key
from fdstore.model.providers import PROVIDERS

ERRORS = SdkErrors(
    root=anthropic.AnthropicError,
    api=anthropic.APIError,
    status=anthropic.APIStatusError,
    connection=anthropic.APIConnectionError,
)
CUSTOM_HEADERS = "ANTHROPIC_CUSTOM_HEADERS"
UNMARKED = ("thinking", "redacted_thinking")
"""Blocks that take no mark."""
NO_KEY = "none"
"""What is sent to a server that wants no key: the SDK insists on one."""


class MessagesModel:
    """A client of the Messages API, over one of the clients of the SDK, which `make` makes of these options.

    Safe to share between threads. Makes no connection and reads no proxy before the first request. Raises
    `ModelFailed` if the SDK misses something, or if the URL cannot be one of a server.
    """

    def __init__(
        self,
        provider: str,
        make: Callable[..., Any],
        *,
        api_key: str | None,
        base_url: str | None,
        key_name: str,
    ) -> None:
        names = ServerNames(provider, base_url, key_name)

        def connections() -> httpx2.AsyncClient:
            # without a transport of ours the SDK would read the proxies of the environment here
            return anthropic.DefaultAsyncHttpxClient(transport=ModelTransport(names.url, events_of))

        headers = _headers_for(base_url, api_key)
        try:
            self._client = client = make(
                base_url=base_url, max_retries=0, http_client=connections(), default_headers=headers
            )
        except (httpx2.InvalidURL, anthropic.AnthropicError, ValueError) as error:
            raise ModelFailed(self.problem_of(error, names)) from error
        if not is_server_url(client.base_url):
            raise ModelFailed(names.no_url)
        sent = client.default_headers.items()
        self._headers = {name.lower(): value for name, value in sent if isinstance(value, str) and value}
        names.check_headers(self._headers)
        row = PROVIDERS[provider]
        self._row = row
        self.takes_deferred_tools = row.takes_deferred_tools(client.base_url.host)
        self._tries = Tries(client, connections, ERRORS, names)

    def problem_of(self, error: Exception, names: ServerNames) -> str:
        """Return what an error means that the SDK raised when its client was made."""
        return str(error) if isinstance(error, anthropic.AnthropicError) else names.no_url

    def close(self) -> None:
        """End its requests, which then raise `ModelFailed`, and close its connections."""
        self._tries.close()

    def query(self, request: ModelRequest) -> Assistant:
        """Implements `Model.query`, with streamed requests."""
        body = _body(request, marks_blocks=self._row.marks_blocks)

        async def ask(client: Any, timeout: httpx2.Timeout, on_event: OnEvent) -> Assistant:
            builder = AnswerBuilder()
            with self.signing_in():
                answer = await client.messages.create(**body, stream=True, timeout=timeout)
            async with answer as stream:
                await read_events(
                    stream, lambda event: builder.add(_as_sent(event)), builder, on_event, ERRORS
                )
            return builder.finish()

        return self._tries.query(request, ask)

    def signing_in(self) -> AbstractContextManager[None]:
        """Translate the errors of what signs requests."""
        return nullcontext()


class AnthropicModel(MessagesModel):
    """A client of the Messages API. Reads `$ANTHROPIC_API_KEY` and `$ANTHROPIC_BASE_URL`, as the SDK does.

    A server that is given by `base_url` gets the key given beside it ("": none), and nothing that the SDK
    reads from the environment. `key_name` names what has the key, for errors. Raises `ModelFailed`.
    """

    def __init__(
        self, *, api_key: str | None = None, base_url: str | None = None, key_name: str = "ANTHROPIC_API_KEY"
    ) -> None:
        make = partial(anthropic.AsyncAnthropic, api_key=NO_KEY if api_key == "" else api_key)
        super().__init__("anthropic", make, api_key=api_key, base_url=base_url, key_name=key_name)
        # checked here, because the SDK would raise a bare TypeError at the first request
        if self._client.credentials is None and self._headers.keys().isdisjoint(KEY_HEADERS):
            raise ModelFailed(no_key("the Messages API", "ANTHROPIC_API_KEY"))


def _as_sent(event: Any) -> Any:
    """Return an event of the SDK as the server sent it. What is not an object, the SDK passes on as it is."""
    return event.to_dict(mode="python", warnings=False) if isinstance(event, anthropic.BaseModel) else event


def _headers_for(base_url: str | None, api_key: str | None) -> dict[str, Any] | None:
    """Return the headers for a server that is given: the key under both names, since servers differ in which
    they read, and none of those that the environment has for the SDK's own server."""
    if base_url is None:
        return None
    named = os.environ.get(CUSTOM_HEADERS, "").split("\n")
    own: dict[str, Any] = {line.partition(":")[0].strip(): anthropic.omit for line in named if ":" in line}
    return own | ({} if not api_key else {"Authorization": f"Bearer {api_key}", "X-Api-Key": api_key})


def _body(request: ModelRequest, *, marks_blocks: bool) -> dict[str, Any]:
    """Return the body of a request, as keyword arguments of the SDK. `marks_blocks`: the server takes marks
    of its cache in blocks alone."""
    parameters = dict(request.parameters)
    body: dict[str, Any] = {
        "model": request.model,
        "max_tokens": parameters.pop("max_tokens", DEFAULT_MAX_TOKENS),
        "messages": without_kept(request.messages),
        "extra_body": parameters,
    }
    if request.system:
        body["system"] = request.system
    if request.tools:
        body["tools"] = request.tools
    if request.prompt_cache:
        ttl = {} if request.prompt_cache is True else {"ttl": request.prompt_cache}
        mark = {"cache_control": {"type": "ephemeral", **ttl}}
        if marks_blocks:
            _mark_blocks(body, mark)
        else:
            # of the whole request: a mark in a message would move, and so change the bytes of the prefix
            body |= mark
    return body


def _mark_blocks(body: dict[str, Any], mark: dict[str, Any]) -> None:
    """Mark the ends of what is cached: of the system prompt, after the tools, and of the messages."""
    if "system" in body:
        body["system"] = [{"type": "text", "text": body["system"], **mark}]
    *before, last = body["messages"]
    content = last["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    if blocks and blocks[-1].get("type") not in UNMARKED:
        blocks[-1] = {**blocks[-1], **mark}
        body["messages"] = [*before, {**last, "content": blocks}]
