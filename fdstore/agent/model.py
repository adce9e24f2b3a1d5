"""The model: one request to the Messages API, streamed, repeated when its failure may pass.

Always streamed, because the SDK refuses long answers otherwise. A stream that is cut raises an
error of the HTTP library, not of the SDK, so both are caught; one that a proxy ends in good order
raises nothing, so an answer counts only when its last event came. Overload, rate limits and lost
connections are tried again with growing pauses (or those the server asks for) until the agent's time
is over; anything else is the agent's end, in words that say what to do.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any, Protocol

import anthropic
import httpx2

from fdstore.agent.conversation import Assistant
from fdstore.text.surrogates import join_surrogates
from fdstore.tools.storing import storable

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0
LONGEST_SILENCE_S = 600.0
CONNECT_TIMEOUT_S = 5.0
RETRIED_STATUS = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
RETRIED_TYPES = frozenset({"overloaded_error", "rate_limit_error", "api_error", "timeout_error"})
ADVICE = {
    401: "check ANTHROPIC_API_KEY",
    403: "check what ANTHROPIC_API_KEY may use",
    404: "check [model] name and ANTHROPIC_BASE_URL",
}


class Listener(Protocol):
    """Who reads an answer while it is given. Both may raise, which ends the request."""

    def hear(self, text: str) -> None:
        """Takes the next bit of its text; an empty one for everything else that comes."""

    def break_off(self) -> None:
        """The answer broke off, and is asked for again."""


class ModelFailed(Exception):
    """The model cannot be had; the text says why. Not repeated."""

    def __init__(self, text: str) -> None:
        super().__init__(storable(text))


class Model:
    """A client of the Messages API. `$ANTHROPIC_API_KEY` and `$ANTHROPIC_BASE_URL` hold, as in the SDK.

    Safe to share between threads. Raises `ModelFailed` when there is no key.
    """

    def __init__(self, *, api_key: str | None = None, base_url: str | None = None) -> None:
        try:
            self._client = anthropic.Anthropic(api_key=api_key, base_url=base_url, max_retries=0)
        except anthropic.AnthropicError as error:
            raise ModelFailed(str(error)) from error
        # asked now, because the SDK would raise a bare TypeError at the first request
        headers = {name.lower() for name, value in self._client.default_headers.items() if value}
        if self._client.credentials is None and headers.isdisjoint({"x-api-key", "authorization"}):
            self._client.close()
            raise ModelFailed("there is no key for the Messages API: set ANTHROPIC_API_KEY")

    def close(self) -> None:
        self._client.close()

    def ask(
        self,
        *,
        model: str,
        system: str,
        messages: list[dict[str, Any]],
        tools: list[dict[str, Any]],
        parameters: dict[str, Any],
        until_s: float,
        pause: Callable[[float], None],
        listener: Listener | None = None,
    ) -> Assistant:
        """One answer. Tries again until `until_s` (of `time.monotonic`); `pause` waits between tries
        and may raise to give up. `listener` gets its text as it comes.

        Raises `ModelFailed`.
        """
        more = {name: value for name, value in parameters.items() if name != "max_tokens"}
        request: dict[str, Any] = {
            "model": model,
            "max_tokens": parameters.get("max_tokens", 8192),
            "messages": messages,
            "extra_body": more,
        }
        if system:
            request["system"] = system
        if tools:
            request["tools"] = tools
        wait_s = FIRST_PAUSE_S
        while True:
            # silence must not outlast the agent's time by much
            silence_s = min(max(until_s - time.monotonic(), 1.0), LONGEST_SILENCE_S)
            timeout = httpx2.Timeout(silence_s, connect=min(silence_s, CONNECT_TIMEOUT_S))
            try:
                with self._client.messages.stream(**request, timeout=timeout) as stream:
                    last = ""
                    for event in stream:
                        last = event.type
                        if listener is not None:
                            listener.hear(event.text if event.type == "text" else "")
                    if last != "message_stop":
                        raise httpx2.RemoteProtocolError("the answer broke off")
                    return _answer(stream.current_message_snapshot)
            except (anthropic.AnthropicError, httpx2.HTTPError) as error:
                if not _may_pass(error):
                    raise ModelFailed(_reason(error)) from error
                asked_s = _asked_pause_s(error)
                now_s = time.monotonic()
                chosen_s = asked_s if asked_s is not None else wait_s * random.uniform(0.75, 1.25)
                if now_s + chosen_s >= until_s:
                    raise ModelFailed(f"{_reason(error)}; the agent's time was over") from error
            except ValueError as error:
                # an event or a tool's arguments that are no JSON
                raise ModelFailed(f"the model's answer cannot be read: {error}"[:500]) from error
            if listener is not None:
                listener.break_off()
            pause(chosen_s)
            wait_s = min(wait_s * 2, LONGEST_PAUSE_S)


def _answer(message: Any) -> Assistant:
    blocks = _storable(message.to_dict(mode="json")["content"])
    usage = message.usage
    return Assistant(
        content=[{name: value for name, value in block.items() if value is not None} for block in blocks],
        stop_reason=message.stop_reason,
        # what the API read from its cache, or wrote there, is not in input_tokens
        input_tokens=(usage.input_tokens or 0)
        + (usage.cache_creation_input_tokens or 0)
        + (usage.cache_read_input_tokens or 0),
        output_tokens=usage.output_tokens or 0,
    )


def _storable(value: Any) -> Any:
    """A JSON value of the API in texts that UTF-8 can hold. Escaped in JSON, a character beyond 16 bits is
    two halves. Where they came in two events they are put together; a half that is alone is made visible."""
    match value:
        case str():
            return storable(join_surrogates(value))
        case list():
            return [_storable(each) for each in value]
        case dict():
            return {_storable(name): _storable(each) for name, each in value.items()}
    return value


def _may_pass(error: Exception) -> bool:
    if isinstance(error, anthropic.APIStatusError):
        said = error.response.headers.get("x-should-retry")
        if said in ("true", "false"):
            return said == "true"
        return error.status_code in RETRIED_STATUS or _type_of(error) in RETRIED_TYPES
    if isinstance(error, anthropic.APIError) and _type_of(error) in RETRIED_TYPES:
        return True
    return isinstance(error, (anthropic.APIConnectionError, httpx2.TransportError))


def _said(error: anthropic.APIError) -> dict[str, Any]:
    """`{"type": ..., "message": ...}` of the API's answer, as far as it has that form."""
    body = error.body
    inner = body.get("error", body) if isinstance(body, dict) else None
    return inner if isinstance(inner, dict) else {}


def _type_of(error: anthropic.APIError) -> str | None:
    return _said(error).get("type")


def _asked_pause_s(error: Exception) -> float | None:
    headers = error.response.headers if isinstance(error, anthropic.APIStatusError) else {}
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return min(max(0.0, float(headers[name]) * scale), 300.0)
        except (KeyError, ValueError):
            continue
    return None


def _reason(error: Exception) -> str:
    if isinstance(error, anthropic.APIStatusError):
        said = _said(error)
        # an error in mid-stream comes under the status 200
        kind = " ".join(
            str(part) for part in (error.status_code, said.get("type")) if part not in (200, None)
        )
        advice = ADVICE.get(error.status_code)
        text = f"the model answered {kind}: {said.get('message', error.message)}"[:450]
        return f"{text}; {advice}" if advice else text
    if isinstance(error, (anthropic.APIConnectionError, httpx2.TransportError)):
        return f"the model could not be reached: {error.__cause__ or error}"[:500]
    return f"the model could not be asked: {error}"[:500]
