"""Ask a model until it answers: what the clients of all providers share.

A provider gives a client of its SDK, the errors of that SDK, and a coroutine that requests one answer and
builds it from the events of a stream. Requests are always streamed: a long answer shows signs of life, and
SDKs refuse long ones otherwise. A stream that is cut raises an error of the HTTP library, not of the SDK, so
both are caught. One that a proxy closes cleanly raises nothing, so `read_events` raises an error if the last
event is missing.

Failures that may pass are retried with exponential backoff (or after the server's `retry-after`)
until the agent's time limit, as long as the next try is within `[model] give_up_seconds` of the first failed
one. The same limit ends a try whose answer shows signs of life and does not end. An answer that cannot be
parsed, or that calls a tool with arguments that are not JSON, is requested again up to `READABLE_TRIES` times
in all; then a malformed call is returned, and the agent reports it to its model. Any other failure ends the
agent, with a text that says what to do. A caller that gives up ends its request at once (see `request_loop`).
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Generic, Protocol, Self, TypeVar

import httpx2
import msgspec

from fdstore.agents.loop.conversation import Assistant
from fdstore.agents.loop.models.base import ModelFailed, ModelRequest, Retry, TimeIsOver
from fdstore.agents.loop.models.request_loop import Requests
from fdstore.agents.loop.models.sdk_errors import SdkErrors
from fdstore.agents.loop.models.server_names import ServerNames
from fdstore.model.ends import GAVE_UP
from fdstore.model.records import TokenUsage
from fdstore.text.quantities import precise_duration

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0
LONGEST_SILENCE_S = 600.0
CONNECT_TIMEOUT_S = 5.0
REQUESTS_PER_CLIENT = 16
"""Maximum number of concurrent requests per client of the SDK. The HTTP library scans all connections of a
client twice per request: with one client for 200 agents, that took a third of a worker's processor."""
ABSENT_S = 30.0
"""How long a server at whose URL nothing listens is asked for the first answer of a conversation: then it is
more likely a wrong URL than an outage."""
QUICK_TRIES = 3
"""How many failed tries of a request a server may have repeated sooner than we would; after them it can only
ask for more time."""
SLACK_S = 1.0
"""How long after the agent's time the last try is ended: the read time-out of a silent server comes first."""
LAST_WORDS_S = 5.0
"""How long a server may take to end the stream of an answer that is whole, and to count its tokens."""
READABLE_TRIES = 3
"""Maximum number of answers requested while they cannot be parsed or contain malformed calls."""


class SdkClient(Protocol):
    """A client of an SDK."""

    @property
    def base_url(self) -> httpx2.URL: ...

    def copy(self, *, http_client: httpx2.AsyncClient) -> Self: ...

    async def close(self) -> None: ...


C = TypeVar("C", bound=SdkClient)
OnEvent = Callable[[str, bool], None]
"""Called with each event of an answer: the text that it adds, "" if none, and whether the answer is whole."""
Ask = Callable[[C, httpx2.Timeout, OnEvent], Coroutine[Any, Any, Assistant]]
"""Requests one answer. Raises an error of the SDK or of the HTTP library, and `ValueError` for an answer that
cannot be read."""


class Whole(Protocol):
    """What knows whether an answer is whole."""

    is_whole: bool


async def read_events(
    stream: AsyncIterable[Any],
    add: Callable[[Any], str],
    answer: Whole,
    on_event: OnEvent,
    errors: SdkErrors,
) -> None:
    """Add the events of a stream to an answer until the stream ends. Once the answer is whole, nothing that
    happens to the connection takes it back: a stream that is then cut, or goes on with comments, is over.
    Raises `httpx2.HTTPError` for a stream that ends before, and what `add` raises."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(None) as rest:
            async for event in stream:
                on_event(add(event), answer.is_whole)
                if answer.is_whole and rest.when() is None:
                    rest.reschedule(loop.time() + LAST_WORDS_S)
    except errors.of_connections:
        if not answer.is_whole:
            raise
    if not answer.is_whole:
        raise httpx2.RemoteProtocolError("the answer broke off")


def is_server_url(url: httpx2.URL) -> bool:
    """Return whether a URL can be that of a server."""
    return url.scheme in ("http", "https") and bool(url.host) and (url.port or 0) <= 65_535


class _LastEvent:
    """Time of the last event of a request; at first, of the request itself."""

    def __init__(self) -> None:
        self.at = time.monotonic()


class _Clients(Generic[C]):
    """Clients of the SDK with the same settings, each with up to `REQUESTS_PER_CLIENT` concurrent requests.
    Used on one event loop only."""

    def __init__(self, first: C, connections: Callable[[], httpx2.AsyncClient]) -> None:
        self._requests = {first: 0}
        self._connections = connections

    @contextmanager
    def one(self) -> Iterator[C]:
        """Yield the first client that has room for a request, so that idle connections are reused."""
        client = next((c for c, count in self._requests.items() if count < REQUESTS_PER_CLIENT), None)
        if client is None:
            client = next(iter(self._requests)).copy(http_client=self._connections())
        self._requests[client] = self._requests.get(client, 0) + 1
        try:
            yield client
        finally:
            self._requests[client] -= 1

    async def close(self) -> None:
        for client in self._requests:
            await client.close()


class Tries(Generic[C]):
    """The requests of one model. Safe to share between threads.

    client       of the SDK, which must not retry by itself
    connections  makes the connections of a further client
    names        of the server and its key
    """

    def __init__(
        self,
        client: C,
        connections: Callable[[], httpx2.AsyncClient],
        errors: SdkErrors,
        names: ServerNames,
    ) -> None:
        self._names = names
        self._clients = _Clients(client, connections)
        self._errors = errors
        self._requests = Requests()

    def close(self) -> None:
        """End its requests, which then raise `ModelFailed`, and close its connections."""
        self._requests.close(self._clients.close)

    def query(self, request: ModelRequest, ask: Ask[C]) -> Assistant:
        """Implements `Model.query`."""
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
            silence_s = min(max(min(until_s, give_up_at) - last_event.at, SLACK_S), LONGEST_SILENCE_S)
            timeout = httpx2.Timeout(silence_s, connect=min(silence_s, CONNECT_TIMEOUT_S))
            pause_s = backoff_s * random.uniform(0.75, 1.25)
            try:
                answer = self._ask(request, ask, timeout, last_event)
                used += answer
                unreadable += 1
                is_final = unreadable >= READABLE_TRIES or time.monotonic() + pause_s >= until_s
                if not answer.malformed or is_final:
                    return msgspec.structs.replace(answer, **msgspec.structs.asdict(used))
                reason = "the model called a tool with arguments that are not JSON"
            except self._errors.caught as error:
                failure = self._errors.read(error, request, timeout, self._names)
                reason = failure.reason
                if not failure.may_pass:
                    raise failure.raised(reason) from error
                asked_s = failure.retry_after_s
                pause_s = asked_s if asked_s and tries <= QUICK_TRIES else max(pause_s, asked_s)
                failing_since = last_event.at if failing_since is None else failing_since
                if time.monotonic() + pause_s >= until_s:
                    raise ModelFailed(f"{reason}; the agent's time ends before the next try") from error
                if (
                    request.is_first
                    and failure.is_absent
                    and time.monotonic() + pause_s >= failing_since + ABSENT_S
                ):
                    raise ModelFailed(f"{reason}; check {self._names.url}, tries: {tries}") from error
                if time.monotonic() + pause_s >= failing_since + give_up_s:
                    silent = precise_duration(time.monotonic() - failing_since)
                    limit = f"the next one would be after {give_up_s:g} s {GAVE_UP}"
                    raise ModelFailed(f"{reason}; no answer for {silent}, tries: {tries}; {limit}") from error
            except (ValueError, RecursionError) as error:
                # an event is not JSON, nested too deep, or lacks a required field
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

    def _ask(
        self, request: ModelRequest, ask: Ask[C], timeout: httpx2.Timeout, last_event: _LastEvent
    ) -> Assistant:
        listener = request.listener
        left_s = max(request.until_s - last_event.at, SLACK_S) + SLACK_S

        async def run(pass_on: Callable[[str], None]) -> Assistant:
            def on_event(text: str, is_whole: bool) -> None:
                last_event.at = time.monotonic()
                if is_whole:
                    limit.reschedule(None)  # `read_events` ends it soon, and the answer is kept
                if listener is not None:
                    pass_on(text)

            try:
                async with asyncio.timeout(left_s) as limit:
                    with self._clients.one() as client:
                        return await ask(client, timeout, on_event)
            except TimeoutError as error:
                if limit.expired():
                    raise TimeIsOver("the agent's time is over before the answer is whole") from error
                raise

        return self._requests.run(run, on_text=listener.on_text if listener else None, check=request.check)
