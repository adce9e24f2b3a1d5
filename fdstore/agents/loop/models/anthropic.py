"""A client of the Messages API: one streamed request, retried while its failure may be transient.

Requests are always streamed, because the SDK refuses long answers otherwise. A stream that is cut raises an
error of the HTTP library, not of the SDK, so both are caught. One that a proxy closes cleanly raises nothing,
so an answer is complete only when its last event arrived. Overload, rate limits and lost connections are
retried with exponential backoff (or after the server's `retry-after`) until the agent's time limit, or until
`[model] give_up_seconds` pass without an answer. An answer that cannot be parsed, or that calls a tool with
arguments that are not JSON, is requested again up to `READABLE_TRIES` times in all; then a malformed call is
returned, and the agent reports it to its model. Any other failure ends the agent, with a text that says what
to do. A caller that gives up ends its request at once (see `request_loop`).
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import anthropic
import httpx2
import msgspec

from fdstore.agents.loop.answer import AnswerBuilder
from fdstore.agents.loop.conversation import Assistant
from fdstore.agents.loop.models.base import (
    DeferralRefused,
    Listener,
    ModelFailed,
    ModelRequest,
    PromptTooLong,
    Retry,
    takes_deferred_tools,
)
from fdstore.agents.loop.models.request_loop import Requests
from fdstore.agents.loop.program_file import DEFAULT_MAX_TOKENS
from fdstore.http.client import GuardedTransport, UnusableSetting
from fdstore.model.records import TokenUsage

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0
LONGEST_SILENCE_S = 600.0
CONNECT_TIMEOUT_S = 5.0
REQUESTS_PER_CLIENT = 16
"""Maximum number of concurrent requests per client of the SDK. The HTTP library scans all connections of a
client twice per request: with one client for 200 agents, that took a third of a worker's processor."""
READABLE_TRIES = 3
"""Maximum number of answers requested while they cannot be parsed or contain malformed calls."""

RETRIED_STATUS = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
RETRIED_TYPES = frozenset({"overloaded_error", "rate_limit_error", "api_error", "timeout_error"})
NO_URL = "ANTHROPIC_BASE_URL is not the URL of a server, as https://HOST:PORT: correct or unset it"
_TOO_LONG = re.compile(
    r"prompt is too long|exceeds? (?:the )?(?:model'?s? )?(?:context|maximum input)|maximum context length"
    r"|context_length_exceeded",
    re.IGNORECASE,
)
_DEFERRAL = re.compile(r"defer_loading|tool[_ ]reference", re.IGNORECASE)
ADVICE = {
    401: "check ANTHROPIC_API_KEY",
    403: "check what ANTHROPIC_API_KEY may use",
    404: "check [model] name and ANTHROPIC_BASE_URL",
}


class _LastEvent:
    """Time of the last event of a request; at first, of the request itself."""

    def __init__(self) -> None:
        self.at = time.monotonic()


def _connections() -> httpx2.AsyncClient:
    # without a transport of ours the SDK would read the proxies of the environment here
    return anthropic.DefaultAsyncHttpxClient(transport=GuardedTransport())


class _Clients:
    """Clients of the SDK with the same settings, each with up to `REQUESTS_PER_CLIENT` concurrent requests.
    Used on one event loop only."""

    def __init__(self, first: anthropic.AsyncAnthropic) -> None:
        self._requests = {first: 0}

    @contextmanager
    def one(self) -> Iterator[anthropic.AsyncAnthropic]:
        """Yield the first client that has room for a request, so that idle connections are reused."""
        client = next((c for c, count in self._requests.items() if count < REQUESTS_PER_CLIENT), None)
        if client is None:
            client = next(iter(self._requests)).copy(http_client=_connections())
        self._requests[client] = self._requests.get(client, 0) + 1
        try:
            yield client
        finally:
            self._requests[client] -= 1

    async def close(self) -> None:
        for client in self._requests:
            await client.close()


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
        url = client.base_url
        if url.scheme not in ("http", "https") or not url.host or (url.port or 0) > 65_535:
            raise ModelFailed(NO_URL)
        # checked here, because the SDK would raise a bare TypeError at the first request
        headers = {name.lower() for name, value in client.default_headers.items() if value}
        if client.credentials is None and headers.isdisjoint({"x-api-key", "authorization"}):
            raise ModelFailed(
                "no key for the Messages API: set ANTHROPIC_API_KEY; "
                "`python -m fdstore.testing` runs a scripted model, which needs no key"
            )
        self.takes_deferred_tools = takes_deferred_tools("anthropic", url.host)
        self._clients = _Clients(client)
        self._requests = Requests()

    def close(self) -> None:
        """End its requests, which then raise `ModelFailed`, and close its connections."""
        self._requests.close(self._clients.close)

    def query(self, request: ModelRequest) -> Assistant:
        """Implements `Model.query`, with streamed requests."""
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
        until_s, give_up_s, listener = request.until_s, request.give_up_s, request.listener
        backoff_s = FIRST_PAUSE_S
        used = TokenUsage()
        unreadable = tries = 0
        failing_since: float | None = None
        while True:
            tries += 1
            last_event = _LastEvent()
            give_up_at = (failing_since or last_event.at) + give_up_s
            # the read time-out must not outlast the agent's time limit by much
            silence_s = min(max(min(until_s, give_up_at) - last_event.at, 1.0), LONGEST_SILENCE_S)
            timeout = httpx2.Timeout(silence_s, connect=min(silence_s, CONNECT_TIMEOUT_S))
            pause_s = backoff_s * random.uniform(0.75, 1.25)
            try:
                answer = self._stream(body, timeout, last_event, listener, request.check)
                used += answer
                unreadable += 1
                is_final = unreadable >= READABLE_TRIES or time.monotonic() + pause_s >= until_s
                if not answer.malformed or is_final:
                    return msgspec.structs.replace(answer, **msgspec.structs.asdict(used))
                reason = "the model called a tool with arguments that are not JSON"
            except (anthropic.AnthropicError, httpx2.HTTPError) as error:
                if not _is_transient(error):
                    raise _failure(error, request)(_reason(error, timeout)) from error
                retry_after_s = _retry_after_s(error)
                pause_s = retry_after_s if retry_after_s is not None else pause_s
                reason = _reason(error, timeout)
                failing_since = last_event.at if failing_since is None else failing_since
                if time.monotonic() + pause_s >= until_s:
                    raise ModelFailed(f"{reason}; the agent's time was over") from error
                if time.monotonic() + pause_s >= failing_since + give_up_s:
                    limit = f"{give_up_s:g} s ([model] give_up_seconds)"
                    raise ModelFailed(f"{reason}; no answer within {limit}, tries: {tries}") from error
            except ValueError as error:
                # an event is not JSON or lacks a required field
                unreadable += 1
                reason = f"the model's answer cannot be read: {error}"[:500]
                if unreadable >= READABLE_TRIES or time.monotonic() + pause_s >= until_s:
                    raise ModelFailed(reason) from error
            if listener is not None:
                listener.on_retry()
            if request.report is not None:
                request.report(Retry(tries, pause_s, reason))
            request.pause(pause_s)
            backoff_s = min(backoff_s * 2, LONGEST_PAUSE_S)

    def _stream(
        self,
        body: dict[str, Any],
        timeout: httpx2.Timeout,
        last_event: _LastEvent,
        listener: Listener | None,
        check: Callable[[], None],
    ) -> Assistant:
        async def ask(pass_on: Callable[[str], None]) -> Assistant:
            builder = AnswerBuilder()
            with self._clients.one() as client:
                async with await client.messages.create(**body, stream=True, timeout=timeout) as stream:
                    async for event in stream:
                        last_event.at = time.monotonic()
                        text = builder.add(event.to_dict(mode="json"))
                        if listener is not None:
                            pass_on(text)
            if not builder.is_whole:
                raise httpx2.RemoteProtocolError("the answer broke off")
            return builder.finish()

        return self._requests.run(ask, on_text=listener.on_text if listener else None, check=check)


def missing_key() -> str:
    """Return why no model can be asked in this environment, such as for lack of a key; "" if one can."""
    try:
        AnthropicModel().close()
    except ModelFailed as error:
        return str(error)
    return ""


def _is_transient(error: Exception) -> bool:
    if isinstance(error, anthropic.APIStatusError):
        should_retry = error.response.headers.get("x-should-retry")
        if should_retry in ("true", "false"):
            return should_retry == "true"
        return error.status_code in RETRIED_STATUS or _error_type(error) in RETRIED_TYPES
    if isinstance(error, anthropic.APIError) and _error_type(error) in RETRIED_TYPES:
        return True
    if isinstance(_cause(error), (UnusableSetting, httpx2.LocalProtocolError, httpx2.UnsupportedProtocol)):
        return False
    return isinstance(error, (anthropic.APIConnectionError, httpx2.TransportError))


def _failure(error: Exception, request: ModelRequest) -> type[ModelFailed]:
    """Return the class of a failure that is final."""
    if _is_for_length(error):
        return PromptTooLong
    is_deferring = any("defer_loading" in tool for tool in request.tools)
    return DeferralRefused if is_deferring and _is_for_deferral(error) else ModelFailed


def _is_for_deferral(error: Exception) -> bool:
    """Return whether a server refuses tools that are loaded later."""
    return (
        isinstance(error, anthropic.APIStatusError)
        and error.status_code == 400
        and _DEFERRAL.search(_message(error)) is not None
    )


def _is_for_length(error: Exception) -> bool:
    """Return whether a server refuses a conversation for its length: the API, or another that speaks it."""
    if not isinstance(error, anthropic.APIStatusError) or error.status_code not in (400, 413):
        return False
    return _error_type(error) == "request_too_large" or _TOO_LONG.search(_message(error)) is not None


def _cause(error: Exception) -> BaseException:
    """Return the error of the HTTP library, if the SDK wrapped one."""
    return (error.__cause__ if isinstance(error, anthropic.APIConnectionError) else None) or error


def _error_body(error: anthropic.APIError) -> dict[str, Any]:
    """Return the API's `{"type": ..., "message": ...}`; {} if the response has another form."""
    body = error.body
    inner = body.get("error", body) if isinstance(body, dict) else None
    return inner if isinstance(inner, dict) else {}


def _error_type(error: anthropic.APIError) -> str | None:
    return _error_body(error).get("type")


def _message(error: anthropic.APIStatusError) -> str:
    return str(_error_body(error).get("message", error.message))


def _retry_after_s(error: Exception) -> float | None:
    headers = error.response.headers if isinstance(error, anthropic.APIStatusError) else {}
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return min(max(0.0, float(headers[name]) * scale), 300.0)
        except (KeyError, ValueError):
            continue
    return None


def _reason(error: Exception, timeout: httpx2.Timeout) -> str:
    if isinstance(error, anthropic.APIStatusError):
        body = _error_body(error)
        # an error in mid-stream has status 200
        kind = " ".join(
            str(part) for part in (error.status_code, body.get("type")) if part not in (200, None)
        )
        advice = ADVICE.get(error.status_code)
        text = f"the model answered {kind}: {_message(error)}"[:450]
        return f"{text}; {advice}" if advice else text
    cause = _cause(error)
    if isinstance(cause, (UnusableSetting, httpx2.LocalProtocolError)):
        return f"the model could not be asked: {cause}"[:500]
    if isinstance(error, (anthropic.APIConnectionError, httpx2.TransportError)):
        return f"the model could not be reached: {_what_happened(cause, timeout)}"[:500]
    return f"the model could not be asked: {error}"[:500]


def _what_happened(error: BaseException, timeout: httpx2.Timeout) -> str:
    """Return an error of the HTTP library in words: time-outs and broken connections have none themselves."""
    if isinstance(error, httpx2.ConnectTimeout):
        return f"no connection within {timeout.connect:g} s"
    if isinstance(error, httpx2.TimeoutException):
        return f"it was silent for {timeout.read:.3g} s"
    if text := str(error).strip():
        return text
    if isinstance(error, httpx2.NetworkError):
        return f"the connection broke ({type(error).__name__})"
    return type(error).__name__
