"""The scripted model: the APIs of models on loopback, which answer real agents from one script.

A request is checked for its key, its JSON and its API's rules, and then answered from the script. Connections
are served by threads rather than an event loop because scripts are plain functions, and one may wait for
another agent's request before it returns.

An exception of the script's own function is a bug in the test, not in the agent: the agent gets HTTP 500
immediately, and the exception is raised again when the model is closed.
"""

from __future__ import annotations

import itertools
import secrets
import threading
from collections.abc import Collection
from importlib import import_module
from types import TracebackType
from typing import Any, Self

import msgspec

from fdstore.model.providers import PROVIDERS, SPEAKERS
from fdstore.testing import wire
from fdstore.testing.connection import POLL_SECONDS, HttpRequest, Listener
from fdstore.testing.dialects import Dialect, Quirk, Sending
from fdstore.testing.replies import Fail, Held, Json, Reply, Slow, Turn
from fdstore.testing.requests import Request
from fdstore.testing.rules import Feature, RequestRefused, check_calls, check_count, check_features
from fdstore.testing.script import Script, ScriptPosition, ScriptState
from fdstore.testing.wire import HttpAnswer

DIALECTS: dict[str, Dialect] = {api: import_module(f"fdstore.testing.{api}_api").DIALECT for api in SPEAKERS}
"""By the names of their APIs, as the table of providers has them: each is a module, `NAME_api`."""
MESSAGES = DIALECTS["messages"]
_KEYLESS = frozenset(DIALECTS[api].path for api, name in SPEAKERS.items() if not PROVIDERS[name].keys)
"""Paths of the APIs that want no key. One that is sent must be right nevertheless."""
_BY_PATH = {each.path: each for each in DIALECTS.values()}
COUNT_TOKENS = "/v1/messages/count_tokens"

API_KEY = "scripted-model-key"
MAX_REQUEST_BYTES = 32 << 20
"""The API's own limit for a request."""


class ScriptedModel:
    """A model that answers from a script, listening from construction until `close`. It serves the Messages
    API at `base_url`, and Chat Completions and the Responses API of OpenAI at `openai_base_url`.

    `script` is a sequence of replies, a function `(Request) -> Reply`, or a mapping from a text in the system
    prompt to either of them; the first key that matches is used. A function may be called from several
    threads concurrently. `port` 0 takes any free one.

        with ScriptedModel([call("add", a=1, b=2), say("It is 3.")]) as model:
            client = anthropic.Anthropic(base_url=model.base_url, api_key=model.api_key)
            ...
        assert model.requests[1].tool_results()[0].text == "3"

    The agent gets HTTP 400 after the last reply of a script, for a request that breaks a rule of the API, and
    for a system prompt without a script; these requests are recorded in `requests`. Conversations stored by
    the server (the beta `thread` field) are refused as the API does, and the SDK's tool runner then sends the
    whole conversation; such requests are not recorded, nor are token counts.

    `refuses` makes it a server that knows less: requests with what it names get HTTP 400. Of the Messages API
    these are `"defer_loading"` and `"tool_reference"`, of Chat Completions `"max_completion_tokens"`,
    `"stream_options"` and `"reasoning_content"`, of the Responses API `"include"`. `quirks` are what servers
    that speak Chat Completions do differently, see `Quirk`.
    """

    def __init__(
        self,
        script: Script,
        *,
        port: int = 0,
        refuses: Collection[Feature] = (),
        quirks: Collection[Quirk] = (),
    ) -> None:
        self._refuses = refuses
        self._quirks = frozenset(quirks)
        self._cast = ScriptState(script)
        self._requests: list[Request] = []
        self._errors: list[BaseException] = []
        self._arrived = threading.Condition()
        self._closing = threading.Event()
        # `map` over `count` advances atomically, which a generator shared by threads does not
        self._request_ids = map("req_{:04d}".format, itertools.count(1))
        self._message_ids = map("msg_{:04d}".format, itertools.count(1))
        # unique across all models and test runs, as in the real API
        run = secrets.token_hex(4)
        self._call_ids = map(f"toolu_{run}_{{:04d}}".format, itertools.count(1))
        self._listener = Listener(self._respond, port)
        self.base_url = f"http://127.0.0.1:{self._listener.port}"
        self.openai_base_url = self.url_of("openai")
        self.api_key = API_KEY

    def __repr__(self) -> str:
        return f"ScriptedModel({self.base_url}, {len(self.requests)} requests)"

    @property
    def environ(self) -> dict[str, str]:
        """Environment variables that direct the SDKs of another process to this model."""
        found: dict[str, str] = {}
        for provider in SPEAKERS.values():
            row = PROVIDERS[provider]
            found |= {row.url: self.url_of(provider), **dict.fromkeys(row.keys[:1], self.api_key)}
        return found

    def url_of(self, provider: str) -> str:
        """Return its URL for the SDK of a provider."""
        return self.base_url + DIALECTS[PROVIDERS[provider].api].below

    @property
    def requests(self) -> tuple[Request, ...]:
        """All requests so far, in order of arrival."""
        with self._arrived:
            return tuple(self._requests)

    @property
    def errors(self) -> tuple[BaseException, ...]:
        """Exceptions raised by the script's functions so far; `close` raises the first."""
        with self._arrived:
            return (*self._errors, *self._listener.errors)

    def wait_for(self, count: int, seconds: float = 30.0) -> tuple[Request, ...]:
        """Wait until there are at least `count` requests, and return all. Raises `TimeoutError` after
        `seconds`.

        After `model.wait_for(2)` the agent has sent its first tool result: the moment to kill a worker, or to
        inspect what it stored.
        """
        with self._arrived:
            if not self._arrived.wait_for(lambda: len(self._requests) >= count, seconds):
                there = len(self._requests)
                raise TimeoutError(f"{there} of {count} requests arrived within {seconds:g} s")
            return tuple(self._requests)

    def close(self) -> None:
        """Stop listening, drop open connections, and raise the first exception of a script function, if any.

        Further calls do nothing.
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
            # A script's error takes precedence over that of the block, which is often a consequence of its
            # HTTP 500 and stays visible as the context.
            self.close()

    def _stop(self) -> bool:
        """Stop the listener. Return False if it was stopped before."""
        if self._closing.is_set():
            return False
        self._closing.set()
        self._listener.close()
        return True

    def _respond(self, call: HttpRequest) -> HttpAnswer | None:
        request_id = next(self._request_ids)
        dialect = _BY_PATH.get(call.path, MESSAGES)
        try:
            answer = self._answer(call, dialect, request_id)
        except RequestRefused as refused:
            answer = dialect.refused(400, str(refused), request_id)
        if answer is None:
            return None
        return msgspec.structs.replace(answer, headers={**answer.headers, "request-id": request_id})

    def _answer(self, call: HttpRequest, dialect: Dialect, request_id: str) -> HttpAnswer | None:
        if call.method != "POST" or call.path not in (*_BY_PATH, COUNT_TOKENS):
            return dialect.refused(
                404, f"the scripted model has no {call.method} {call.path[:200]}", request_id
            )
        # x-api-key is sent by curl and the SDK of Anthropic, a bearer token by other clients.
        sent, token = call.headers.get("x-api-key"), call.headers.get("authorization")
        is_open = call.path in _KEYLESS and sent is None and token is None
        if not is_open and self.api_key != sent and f"Bearer {self.api_key}" != token:
            return dialect.refused(401, "invalid API key", request_id)
        if len(call.body) > MAX_REQUEST_BYTES:
            return dialect.refused(413, f"the request exceeds {MAX_REQUEST_BYTES} bytes", request_id)
        if dialect is MESSAGES and "anthropic-version" not in call.headers:
            raise RequestRefused("anthropic-version: the header is required")
        raw = _decode(call.body)
        if call.path == COUNT_TOKENS:
            check_count(raw)
            return wire.document({"input_tokens": wire.tokens(len(call.body))})
        if dialect is MESSAGES and raw.get("thread") is not None:
            details = {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}
            message = "the scripted model keeps no threads; use thread=False"
            return dialect.refused(400, message, request_id, details)
        request = dialect.read(raw, call.headers)
        reply = self._reply(request, dialect)
        return self._make_answer(reply, request, dialect, wire.tokens(len(call.body)), request_id)

    def _reply(self, request: Request, dialect: Dialect) -> Reply:
        fault = self._fault(request.raw, dialect)
        # One lock around both, so that the n-th request is answered by the n-th reply.
        with self._arrived:
            self._requests.append(request)
            self._arrived.notify_all()
            if fault is not None:
                raise fault
            line = self._cast.place(request)
        return self._run_script(line, request)

    def _fault(self, raw: Json, dialect: Dialect) -> RequestRefused | None:
        try:
            check_features(raw, self._refuses)
            dialect.check(raw)
        except RequestRefused as refused:
            return refused
        return None

    def _run_script(self, line: ScriptPosition, request: Request) -> Reply:
        try:
            return line.reply(request)
        except RequestRefused:
            raise
        # also pytest's outcomes, which are no Exceptions: they must not break the connection
        except BaseException as error:  # noqa: BLE001
            with self._arrived:
                self._errors.append(error)
            message = f"the script raised {type(error).__name__}: {error}"
            return Fail(status=500, type="api_error", message=message, should_retry=False)

    def _make_answer(
        self, reply: Reply, request: Request, dialect: Dialect, input_tokens: int, request_id: str
    ) -> HttpAnswer | None:
        if isinstance(reply, Slow):
            if self._closing.wait(reply.seconds):
                return None
            reply = reply.reply
        if isinstance(reply, Held):
            answer = self._make_answer(reply.reply, request, dialect, input_tokens, request_id)
            until = reply.until
            return answer and msgspec.structs.replace(
                answer, hold_at=reply.after_events, hold=lambda: self._is_set(until)
            )
        if isinstance(reply, Fail):
            return dialect.failed(reply, request_id)
        turn = reply if isinstance(reply, Turn) else reply.reply
        check_calls(turn, request)
        sending = Sending(
            id=next(self._message_ids),
            turn=request.turn_number,
            model=request.raw["model"],
            call_ids=self._call_ids,
            input_tokens=input_tokens,
        )
        finished = dialect.finish(turn, sending)
        if isinstance(reply, Turn):
            return dialect.whole(finished, request.raw, self._quirks)
        return dialect.broken(finished, request.raw, self._quirks, reply, request_id)

    def _is_set(self, until: threading.Event) -> bool:
        """Wait until the event is set. Return False if the model closes first."""
        while not self._closing.is_set():
            if until.wait(POLL_SECONDS):
                return True
        return False


def _decode(body: bytes) -> Json:
    try:
        raw: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise RequestRefused(f"the request body is not valid JSON: {error}") from error
    if not isinstance(raw, dict):
        raise RequestRefused("the request body must be a JSON object")
    return raw
