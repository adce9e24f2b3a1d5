"""A client of the OpenAI SDK, for OpenAI itself and every server that speaks one of its APIs.

The SDK sends requests and decodes the events of a stream; their JSON is read as it came, by the pure modules
`openai_chat_form` and `openai_responses_form`. Servers know different parts of these APIs. What one refuses
by its name (`OPTIONAL` of these modules) is left out, or named otherwise, for as long as the client lives. If
a server counts no tokens, they are estimated, which the answer says.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Collection
from typing import Any, Protocol

import httpx2
import msgspec
import openai

from fdstore.agents.loop.conversation import Assistant
from fdstore.agents.loop.models.base import ModelFailed, ModelRequest
from fdstore.agents.loop.models.message_blocks import KEPT
from fdstore.agents.loop.models.openai_responses_form import ResponseFailed
from fdstore.agents.loop.models.sdk_errors import SdkErrors
from fdstore.agents.loop.models.server_names import ServerNames
from fdstore.agents.loop.models.transport import EventsOf, ModelTransport
from fdstore.agents.loop.models.tries import OnEvent, Tries, is_server_url, read_events
from fdstore.model.model_servers import no_key
from fdstore.text.tokens import estimate_tokens
from fdstore.tools.clearing import estimated_tokens

log = logging.getLogger("fdstore.agent")

KEY_NAME = "OPENAI_API_KEY"
ERRORS = SdkErrors(
    root=openai.OpenAIError,
    api=openai.APIError,
    status=openai.APIStatusError,
    connection=openai.APIConnectionError,
)
_NOT_KNOWN = frozenset({400, 422})
_OF_ITS_SIZE = re.compile(r"too (?:large|many|long|high|big)|at most|maximum|exceed|must be", re.IGNORECASE)


class Builder(Protocol):
    """Builds an answer from the events of a stream."""

    is_whole: bool
    has_usage: bool

    def add(self, event: Any) -> str: ...

    def finish(self) -> Assistant: ...


class Api(msgspec.Struct, frozen=True):
    """One API: its path below the base URL, its body for a request, its answers, the events of one that is a
    single JSON document, and the parts of the body that a server may refuse by their names."""

    path: str
    body: Callable[[ModelRequest, Collection[str]], dict[str, Any]]
    builder: Callable[[], Builder]
    events_of: EventsOf
    optional: tuple[str, ...]


class OpenAIClient:
    """Asks models through one API.

    api_key   None: that of $OPENAI_API_KEY. "": none, for a server that wants no key
    base_url  None: that of $OPENAI_BASE_URL, or OpenAI's own. To a given one goes neither the organization
              nor the project nor a header that the variables of the SDK hold
    key_name  the variable that holds the key, as errors name it

    Raises `ModelFailed` if there is no key, or if the URL cannot be one of a server.
    """

    def __init__(self, api: Api, *, api_key: str | None, base_url: str | None, key_name: str) -> None:
        self._api = api
        self._refused: frozenset[str] = frozenset()
        self._says_estimated = False
        names = ServerNames("openai", base_url or None, key_name)

        def connections() -> httpx2.AsyncClient:
            # without a transport of ours the SDK would read the proxies of the environment here
            return openai.DefaultAsyncHttpxClient(transport=ModelTransport(names.url, api.events_of))

        try:
            client = openai.AsyncOpenAI(
                api_key=api_key,
                base_url=base_url or None,
                max_retries=0,
                http_client=connections(),
                _enforce_credentials=False,
            )
        except openai.OpenAIError as error:
            raise ModelFailed(str(error)) from error
        except (httpx2.InvalidURL, ValueError) as error:
            raise ModelFailed(names.no_url) from error
        if not is_server_url(client.base_url):
            raise ModelFailed(names.no_url)
        if not client.api_key and api_key != "":
            raise ModelFailed(no_key("the API of OpenAI", key_name))
        self._headers = _headers(client, has_own_url=bool(base_url))
        names.check_headers({"authorization": client.api_key, **self._headers})
        self._tries = Tries(client, connections, ERRORS, names)

    def close(self) -> None:
        """End its requests, which then raise `ModelFailed`, and close its connections."""
        self._tries.close()

    def query(self, request: ModelRequest) -> Assistant:
        """Implements `Model.query`, with streamed requests."""

        async def ask(client: openai.AsyncOpenAI, timeout: httpx2.Timeout, on_event: OnEvent) -> Assistant:
            while True:
                refused = self._refused
                try:
                    answer = await self._stream(client, request, refused, timeout, on_event)
                except openai.APIStatusError as error:
                    if not (named := self._named_in(error) - refused):
                        raise
                    self._refused |= named
                else:
                    return answer

        return self._tries.query(request, ask)

    async def _stream(
        self,
        client: openai.AsyncOpenAI,
        request: ModelRequest,
        refused: Collection[str],
        timeout: httpx2.Timeout,
        on_event: OnEvent,
    ) -> Assistant:
        builder = self._api.builder()
        stream = await client.post(
            self._api.path,
            cast_to=object,
            body=self._api.body(request, refused),
            options={"timeout": timeout, "headers": self._headers},
            stream=True,
            stream_cls=openai.AsyncStream[object],
        )
        async with stream:
            try:
                await read_events(stream, builder.add, builder, on_event, ERRORS)
            except ResponseFailed as failed:
                message = str(failed.body.get("message") or failed.body)
                raise openai.APIError(message, stream.response.request, body=failed.body) from failed
        answer = builder.finish()
        return answer if builder.has_usage else self._estimated(answer, request)

    def _named_in(self, error: openai.APIStatusError) -> frozenset[str]:
        """Return the optional parts that a server does not know, by its words."""
        said = f"{error.message} {error.body}"
        if error.status_code not in _NOT_KNOWN or _OF_ITS_SIZE.search(said):
            return frozenset()
        return frozenset(name for name in self._api.optional if name in said)

    def _estimated(self, answer: Assistant, request: ModelRequest) -> Assistant:
        """Return an answer with an estimate of its tokens."""
        if not self._says_estimated:
            self._says_estimated = True
            log.warning("%s: its server counts no tokens; they are estimated", request.model)
        tools = msgspec.json.encode(request.tools).decode("utf-8")
        sent = [request.system, tools, *(message["content"] for message in request.messages)]
        shown = [{name: each for name, each in block.items() if name != KEPT} for block in answer.content]
        return msgspec.structs.replace(
            answer,
            is_estimated=True,
            input_tokens=estimated_tokens(sent),
            output_tokens=estimate_tokens(msgspec.json.encode(shown).decode("utf-8")),
        )


def _headers(client: openai.AsyncOpenAI, *, has_own_url: bool) -> dict[str, Any]:
    """Return the headers of each request that differ from those of the SDK."""
    headers: dict[str, Any] = {}
    if has_own_url:
        lines = os.environ.get("OPENAI_CUSTOM_HEADERS", "").split("\n")
        names = ["OpenAI-Organization", "OpenAI-Project", *(line.partition(":")[0].strip() for line in lines)]
        headers |= {name: openai.Omit() for name in names if name}
    if has_own_url or not client.api_key:
        headers["Authorization"] = f"Bearer {client.api_key}" if client.api_key else openai.Omit()
    return headers
