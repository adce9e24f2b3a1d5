"""Read the errors of the SDKs of providers: what failed, in words, and whether the next try may succeed.

The SDKs of Anthropic and OpenAI come from one generator, so their errors have the same classes and fields,
and both send requests with httpx2, whose errors a cut stream raises bare. What differs is declared in
`SdkErrors`. Overload, rate limits, time-outs and lost connections may pass; a server may say otherwise by its
header `x-should-retry`.
"""

from __future__ import annotations

import math
import re
import time
from email.utils import parsedate_to_datetime
from typing import Any

import httpx2
import msgspec

from fdstore.agents.loop.models.base import DeferralRefused, ModelFailed, ModelRequest, PromptTooLong
from fdstore.agents.loop.models.server_names import ServerNames
from fdstore.http.client import UnusableSetting
from fdstore.model.ends import LESS_TO_READ

RETRIED_STATUS = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
RETRIED_TYPES = frozenset(
    {
        *("overloaded_error", "rate_limit_error", "api_error", "timeout_error"),
        *("server_error", "rate_limit_exceeded", "server_overloaded"),
    }
)
FINAL_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
"""Types and codes of errors that do not pass, though their status says so."""
LONGEST_RETRY_AFTER_S = 300.0
TOO_LONG = frozenset({"request_too_large", "context_length_exceeded", "exceed_context_size_error"})
"""Types and codes of errors that refuse a conversation for its length."""
_TOO_LONG = re.compile(
    r"prompt is too long|exceeds? (?:the )?(?:model'?s? |available )?(?:context|maximum input)"
    r"|maximum (?:context|prompt) length|exceeds the maximum number of tokens"
    r"|reduce the length of the (?:messages|prompt)|context_length_exceeded",
    re.IGNORECASE,
)
_DEFERRAL = re.compile(r"defer_loading|tool[_ ]reference", re.IGNORECASE)


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """A failed try: why, whether the next one may succeed, and the pause that the server asks for, 0 if none.
    `raised` is the error of one that may not; `is_absent`: nothing listens at the URL."""

    reason: str
    may_pass: bool
    is_absent: bool
    retry_after_s: float
    raised: type[ModelFailed]


class SdkErrors(msgspec.Struct, frozen=True, kw_only=True):
    """The errors of one SDK.

    root, api, status, connection  its classes of all errors, of those of the API, of those with a status, of
                                   those that wrap one of the HTTP library; () if none do
    """

    root: type[Exception]
    api: type[Exception]
    status: type[Exception]
    connection: type[Exception] | tuple[()] = ()

    @property
    def caught(self) -> tuple[type[Exception], ...]:
        """The classes of the errors that `read` takes."""
        return (self.root, httpx2.HTTPError)

    @property
    def of_connections(self) -> tuple[type[Exception], ...]:
        """The classes of the errors of a connection that is lost, or for which time is over."""
        of_sdk = (self.connection,) if isinstance(self.connection, type) else self.connection
        return (TimeoutError, httpx2.TransportError, *of_sdk)

    def read(
        self, error: Exception, request: ModelRequest, timeout: httpx2.Timeout, names: ServerNames
    ) -> Failure:
        """Return what an error means for a request that was sent with these time-outs."""
        return Failure(
            reason=self._reason(error, timeout, names),
            may_pass=self._may_pass(error),
            is_absent=isinstance(self._cause(error), httpx2.ConnectError),
            retry_after_s=_retry_after_s(_response(error).headers) if self._has_status(error) else 0.0,
            raised=self._raised(error, request),
        )

    def _is_of_api(self, error: Exception) -> bool:
        """Return whether a server sent the error: as its answer, or in the middle of one."""
        return self._has_status(error) or (isinstance(error, self.api) and bool(_body(error)))

    def _has_status(self, error: Exception) -> bool:
        return isinstance(error, self.status)

    def _may_pass(self, error: Exception) -> bool:
        if self._has_status(error):
            should_retry = _response(error).headers.get("x-should-retry")
            if should_retry in ("true", "false"):
                return bool(should_retry == "true")
            if FINAL_CODES.intersection((_type(error), _code(error))):
                return False
            return _status(error) in RETRIED_STATUS or _type(error) in RETRIED_TYPES
        if isinstance(error, self.api) and _type(error) in RETRIED_TYPES:
            return True
        if isinstance(
            self._cause(error), (UnusableSetting, httpx2.LocalProtocolError, httpx2.UnsupportedProtocol)
        ):
            return False
        return isinstance(error, (self.connection, httpx2.TransportError))

    def _raised(self, error: Exception, request: ModelRequest) -> type[ModelFailed]:
        if not self._is_of_api(error):
            return ModelFailed
        if self._is_too_long(error):
            return PromptTooLong
        is_deferring = any("defer_loading" in tool for tool in request.tools)
        is_refused = _status(error) == 400 and _DEFERRAL.search(_message(error))
        return DeferralRefused if is_deferring and is_refused else ModelFailed

    def _is_too_long(self, error: Exception) -> bool:
        """Return whether a conversation was refused for its length: by the API, or by another server that
        speaks it."""
        status = _status(error)
        if status == 413:  # says it by itself, also without a word that is known: of a proxy, say
            return True
        is_said = TOO_LONG.intersection((_type(error), _code(error))) or _TOO_LONG.search(_message(error))
        return status in (200, 400) and bool(is_said)

    def _cause(self, error: Exception) -> BaseException:
        """Return the error of the HTTP library, if the SDK wrapped one."""
        return (error.__cause__ if isinstance(error, self.connection) else None) or error

    def _reason(self, error: Exception, timeout: httpx2.Timeout, names: ServerNames) -> str:
        if self._is_of_api(error):
            status = _status(error)
            # an error in mid-stream has status 200
            kind = " ".join(str(part) for part in (status, _type(error)) if part not in (200, None))
            text = f"the model answered {kind}: {_message(error)}"[:450].removesuffix(".")
            too_long = LESS_TO_READ if self._is_too_long(error) else ""
            advice = names.advice(status, _asked(error)) or too_long
            return f"{text}; {advice}" if advice else text
        cause = self._cause(error)
        if isinstance(cause, (UnusableSetting, httpx2.LocalProtocolError)):
            return f"the model could not be asked: {cause}"[:500]
        if isinstance(error, (self.connection, httpx2.TransportError)):
            return f"the model could not be reached: {_what_happened(cause, timeout)}"[:500]
        return f"the model could not be asked: {error}"[:500]


def _response(error: Any) -> httpx2.Response:
    response: httpx2.Response = error.response
    return response


def _asked(error: Any) -> httpx2.URL:
    url: httpx2.URL = error.request.url
    return url


def _status(error: Any) -> int:
    """Return the status of the response; 200 for an error in the middle of it."""
    return int(getattr(error, "status_code", 200))


def _body(error: Any) -> dict[str, Any]:
    """Return the API's `{"type": ..., "message": ...}`; {} if the response has another form."""
    body = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, dict) else None
    return inner if isinstance(inner, dict) else {}


def _type(error: Any) -> str | None:
    kind = _body(error).get("type")
    return kind if isinstance(kind, str) else None


def _code(error: Any) -> str | None:
    code = _body(error).get("code")
    return code if isinstance(code, str) else None


def _message(error: Any) -> str:
    return str(_body(error).get("message", error.message))


def _retry_after_s(headers: httpx2.Headers) -> float:
    """Return the pause that a server asks for: a number or, in `retry-after`, a date."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        asked_s = _seconds(headers.get(name, "")) * scale
        if not math.isnan(asked_s):
            return min(max(0.0, asked_s), LONGEST_RETRY_AFTER_S)
    return 0.0


def _seconds(value: str) -> float:
    """Return a header's number or, of a date, the seconds until then; not a number for anything else."""
    try:
        return float(value)
    except ValueError:
        pass
    try:
        return parsedate_to_datetime(value).timestamp() - time.time()
    except (ValueError, OverflowError):
        return math.nan


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
