"""The model: one request to the Messages API, streamed, repeated when its failure may pass.

Always streamed, because the SDK refuses long answers otherwise. A stream that is cut raises an
error of the HTTP library, not of the SDK, so both are caught; one that a proxy ends in good order
raises nothing, so an answer counts only when its last event came. Overload, rate limits and lost
connections are tried again with growing pauses (or those the server asks for) until the agent's time
is over, or there was no answer for `[model] give_up_seconds`. An answer that cannot be read, or that calls a
tool with what is not JSON, is asked for again a few times; then such a call is left to the agent, which
tells its model. Anything else is the end of the agent, in words that say what to do.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any, Protocol

import anthropic
import httpx2
import msgspec

from fdstore.agent.answer import AnswerBuilder
from fdstore.agent.conversation import Assistant
from fdstore.tools.wrapping import storable

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0
LONGEST_SILENCE_S = 600.0
CONNECT_TIMEOUT_S = 5.0
READABLE_TRIES = 3
"""How many answers are asked for while they cannot be read, or their calls are not JSON."""

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


class Retry(msgspec.Struct, frozen=True):
    """A try that failed and is repeated: the how manyth of its request it was, after how many seconds the
    next one comes, and why."""

    number: int
    pause_s: float
    reason: str

    def __str__(self) -> str:
        return storable(f"try {self.number}: {self.reason}; asking again in {self.pause_s:.1f} s")


class _Heard:
    """When something was last heard of the model; at first, when it was asked."""

    def __init__(self) -> None:
        self.at = time.monotonic()


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
        # checked here, because the SDK would raise a bare TypeError at the first request
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
        give_up_s: float = 600.0,
        report: Callable[[Retry], None] | None = None,
    ) -> Assistant:
        """One answer. Tries again until `until_s` (of `time.monotonic`), or for `give_up_s` after the first
        failure, silence before it included; `pause` waits between tries and may raise to give up, and before
        each pause `report` gets why. `listener` gets its text as it comes. The tokens of answers that were
        asked for again because a call was malformed are counted with those of the one returned.

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
        unreadable = input_tokens = output_tokens = tries = 0
        failing_since: float | None = None
        while True:
            tries += 1
            heard = _Heard()
            give_up_at = (failing_since or heard.at) + give_up_s
            # silence must not outlast the agent's time by much
            silence_s = min(max(min(until_s, give_up_at) - heard.at, 1.0), LONGEST_SILENCE_S)
            timeout = httpx2.Timeout(silence_s, connect=min(silence_s, CONNECT_TIMEOUT_S))
            chosen_s = wait_s * random.uniform(0.75, 1.25)
            try:
                answer = self._streamed(request, timeout, heard, listener)
                input_tokens += answer.input_tokens
                output_tokens += answer.output_tokens
                unreadable += 1
                is_over = unreadable >= READABLE_TRIES or time.monotonic() + chosen_s >= until_s
                if not answer.malformed or is_over:
                    return msgspec.structs.replace(
                        answer, input_tokens=input_tokens, output_tokens=output_tokens
                    )
                reason = "the model called a tool with what is not JSON"
            except (anthropic.AnthropicError, httpx2.HTTPError) as error:
                if not _may_pass(error):
                    raise ModelFailed(_reason(error)) from error
                asked_s = _asked_pause_s(error)
                chosen_s = asked_s if asked_s is not None else chosen_s
                reason = _reason(error)
                failing_since = heard.at if failing_since is None else failing_since
                if time.monotonic() + chosen_s >= until_s:
                    raise ModelFailed(f"{reason}; the agent's time was over") from error
                if time.monotonic() + chosen_s >= failing_since + give_up_s:
                    limit = f"{give_up_s:g} s ([model] give_up_seconds)"
                    raise ModelFailed(f"{reason}; no answer within {limit}, tries: {tries}") from error
            except ValueError as error:
                # an event that is not JSON, or lacks what it must have
                unreadable += 1
                reason = f"the model's answer cannot be read: {error}"[:500]
                if unreadable >= READABLE_TRIES or time.monotonic() + chosen_s >= until_s:
                    raise ModelFailed(reason) from error
            if listener is not None:
                listener.break_off()
            if report is not None:
                report(Retry(tries, chosen_s, reason))
            pause(chosen_s)
            wait_s = min(wait_s * 2, LONGEST_PAUSE_S)

    def _streamed(
        self, request: dict[str, Any], timeout: httpx2.Timeout, heard: _Heard, listener: Listener | None
    ) -> Assistant:
        builder = AnswerBuilder()
        with self._client.messages.create(**request, stream=True, timeout=timeout) as stream:
            for event in stream:
                heard.at = time.monotonic()
                text = builder.add(event.to_dict(mode="json"))
                if listener is not None:
                    listener.hear(text)
        if not builder.is_whole:
            raise httpx2.RemoteProtocolError("the answer broke off")
        return builder.finish()


def missing_key() -> str:
    """Return why no model can be asked in this environment, "" if one can, as far as is known here."""
    try:
        Model().close()
    except ModelFailed as error:
        return str(error)
    return ""


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
