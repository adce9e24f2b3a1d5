"""The scripted model: a Messages API on loopback that plays a script to real agents.

A request passes its key, its JSON, the API's rules and the script, and comes out as an answer.
Connections are served by threads rather than an event loop because scripts are plain functions,
and one may wait for another agent's request before it decides.

What the script's own function raises is a mistake in the test, not in the agent: the agent gets
HTTP 500 at once, and the exception is raised again when the model is closed.
"""

from __future__ import annotations

import itertools
import secrets
import threading
from types import TracebackType
from typing import Any, Self

import msgspec

from fdstore.testing import wire
from fdstore.testing.connection import POLL_SECONDS, Call, Listener
from fdstore.testing.replies import Fail, Held, Json, Reply, Slow, Turn
from fdstore.testing.requests import Request, read_request
from fdstore.testing.rules import Refused, check_count, check_creation
from fdstore.testing.script import Cast, Line, Script
from fdstore.testing.wire import Answer

API_KEY = "scripted-model-key"
MAX_REQUEST_BYTES = 32 << 20
"""The API's own limit for a request."""


class ScriptedModel:
    """A Messages API that says what a script says, listening from construction until `close`.

    `script` is a sequence of replies, a function `(Request) -> Reply`, or a mapping from a text
    that the system prompt contains to either of them; the first key that fits is taken. A function
    may be called from several threads at once.

        with ScriptedModel([call("add", a=1, b=2), say("It is 3.")]) as model:
            client = anthropic.Anthropic(base_url=model.base_url, api_key=model.api_key)
            ...
        assert model.requests[1].tool_results()[0].text == "3"

    A script that is over, a request that breaks a rule of the API and a system prompt without a
    script are HTTP 400 to the agent and stay in `requests`. Conversations held by the server (the
    beta `thread` field) are declined in the API's own way, on which the SDK's tool runner sends the
    whole conversation; those requests are not kept, nor are token counts.
    """

    def __init__(self, script: Script) -> None:
        self._cast = Cast(script)
        self._requests: list[Request] = []
        self._errors: list[BaseException] = []
        self._arrived = threading.Condition()
        self._closing = threading.Event()
        # `map` over `count` advances atomically, which a generator shared by threads does not
        self._request_ids = map("req_{:04d}".format, itertools.count(1))
        self._message_ids = map("msg_{:04d}".format, itertools.count(1))
        # no two models of any test give out the same one, as the real API does not
        run = secrets.token_hex(4)
        self._call_ids = map(f"toolu_{run}_{{:04d}}".format, itertools.count(1))
        self._listener = Listener(self._respond)
        self.base_url = f"http://127.0.0.1:{self._listener.port}"
        self.api_key = API_KEY

    def __repr__(self) -> str:
        return f"ScriptedModel({self.base_url}, {len(self.requests)} requests)"

    @property
    def environ(self) -> dict[str, str]:
        """The environment that sends the SDK of another process here."""
        return {"ANTHROPIC_BASE_URL": self.base_url, "ANTHROPIC_API_KEY": self.api_key}

    @property
    def requests(self) -> tuple[Request, ...]:
        """Every request so far, in the order of arrival."""
        with self._arrived:
            return tuple(self._requests)

    @property
    def errors(self) -> tuple[BaseException, ...]:
        """What the script's functions raised so far; `close` raises the first."""
        with self._arrived:
            return (*self._errors, *self._listener.errors)

    def wait_for(self, count: int, seconds: float = 30.0) -> tuple[Request, ...]:
        """The requests, once there are at least `count`; `TimeoutError` after `seconds`.

        After `model.wait_for(2)` the agent has sent its first tool result: the moment to kill a
        worker, or to look at what it stored.
        """
        with self._arrived:
            if not self._arrived.wait_for(lambda: len(self._requests) >= count, seconds):
                there = len(self._requests)
                raise TimeoutError(f"{there} of {count} requests arrived within {seconds:g} s")
            return tuple(self._requests)

    def close(self) -> None:
        """Stop listening, drop open connections, and raise what a script function raised, if any.

        A second call does nothing.
        """
        if self._stop() and self.errors:
            first, *others = self.errors
            for other in others:
                first.add_note(f"the script also raised {type(other).__name__}: {other}")
            raise first

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, KeyboardInterrupt | SystemExit):
            self._stop()
        else:
            # A script's error comes before that of the block: what an agent makes of its HTTP 500
            # is a consequence, and stays visible as the context.
            self.close()

    def _stop(self) -> bool:
        """Whether the model was open until now."""
        if self._closing.is_set():
            return False
        self._closing.set()
        self._listener.close()
        return True

    def _respond(self, call: Call) -> Answer | None:
        request_id = next(self._request_ids)
        try:
            answer = self._answer(call, request_id)
        except Refused as refused:
            answer = wire.error(400, str(refused), request_id)
        if answer is None:
            return None
        return msgspec.structs.replace(answer, headers={**answer.headers, "request-id": request_id})

    def _answer(self, call: Call, request_id: str) -> Answer | None:
        if call.method != "POST" or call.path not in ("/v1/messages", "/v1/messages/count_tokens"):
            return wire.error(404, f"the scripted model has no {call.method} {call.path[:200]}", request_id)
        # As `curl` gives the key, or as the SDK does.
        if self.api_key != call.headers.get("x-api-key") and (
            f"Bearer {self.api_key}" != call.headers.get("authorization")
        ):
            return wire.error(401, "invalid API key", request_id)
        if len(call.body) > MAX_REQUEST_BYTES:
            return wire.error(413, f"the request exceeds {MAX_REQUEST_BYTES} bytes", request_id)
        if "anthropic-version" not in call.headers:
            raise Refused("anthropic-version: the header is required")
        raw = _decoded(call.body)
        if call.path != "/v1/messages":
            check_count(raw)
            return wire.document({"input_tokens": wire.tokens(len(call.body))})
        if raw.get("thread") is not None:
            details = {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}
            return wire.error(
                400, "the scripted model keeps no threads; use thread=False", request_id, details
            )
        request = read_request(raw, call.headers)
        reply = self._reply(request)
        return self._performed(reply, request, wire.tokens(len(call.body)), request_id)

    def _reply(self, request: Request) -> Reply:
        fault = _fault(request.raw)
        # One lock around both, so that the n-th request is answered by the n-th reply.
        with self._arrived:
            self._requests.append(request)
            self._arrived.notify_all()
            if fault is not None:
                raise fault
            line = self._cast.place(request)
        return self._spoken(line, request)

    def _spoken(self, line: Line, request: Request) -> Reply:
        failed = _Failed()
        with failed:
            return line.reply(request)
        error = failed.error
        if isinstance(error, Refused):
            raise error
        if error is not None:
            with self._arrived:
                self._errors.append(error)
        message = f"the script raised {type(error).__name__}: {error}"
        return Fail(status=500, type="api_error", message=message, should_retry=False)

    def _performed(self, reply: Reply, request: Request, input_tokens: int, request_id: str) -> Answer | None:
        if isinstance(reply, Slow):
            if self._closing.wait(reply.seconds):
                return None
            reply = reply.reply
        if isinstance(reply, Held):
            answer = self._performed(reply.reply, request, input_tokens, request_id)
            until = reply.until
            return answer and msgspec.structs.replace(
                answer, hold_at=reply.after_events, hold=lambda: self._is_set(until)
            )
        if isinstance(reply, Fail):
            return wire.failure(reply, request_id)
        finished = wire.message(
            reply if isinstance(reply, Turn) else reply.reply,
            id=next(self._message_ids),
            model=request.raw["model"],
            call_ids=self._call_ids,
            input_tokens=input_tokens,
        )
        streamed = bool(request.raw.get("stream"))
        if isinstance(reply, Turn):
            return wire.whole(finished, streamed=streamed)
        return wire.broken(finished, reply, request_id, streamed=streamed)

    def _is_set(self, until: threading.Event) -> bool:
        """Waits until the event is set; False when the model closes before."""
        while not self._closing.is_set():
            if until.wait(POLL_SECONDS):
                return True
        return False


class _Failed:
    """A block that ends with its error noted. A script function may raise anything, also the
    outcomes of pytest, which are no `Exception`s, and must not take the connection with it."""

    error: BaseException | None = None

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self.error = error
        return True


def _decoded(body: bytes) -> Json:
    try:
        raw: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Refused(f"the request body is not valid JSON: {error}") from error
    if not isinstance(raw, dict):
        raise Refused("the request body must be a JSON object")
    return raw


def _fault(raw: Json) -> Refused | None:
    try:
        check_creation(raw)
    except Refused as refused:
        return refused
    return None
