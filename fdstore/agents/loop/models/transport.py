"""The connections of a client of a model: to one server, which must answer with a stream of events.

A key is sent with each request, under names that the HTTP library does not know to be secret: it removes
`Authorization` when a server redirects to another one, and keeps `x-api-key`. So here a redirect to another
server is refused, whatever it carries. A page in place of an answer, such as that of a login, is refused too:
the SDK would take it for a stream without events. An answer that is one JSON document, of a server that
ignores `stream: true`, is passed on as the events of its API.

What is read of one answer is bounded, unpacked: a stream, and each line of it, by an error; the body of an
error by a cut.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any, NamedTuple

import httpx2
import msgspec

from fdstore.http.client import GuardedTransport, UnusableSetting

_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
UNCLEAR = ("", "text/plain", "application/octet-stream", "binary/octet-stream")
"""Content types of servers that say nothing of their streams."""


JSON = "application/json"
MAX_ANSWER_BYTES = 64 << 20
"""The largest answer, unpacked. A longer one is not read to its end: no model answers so much."""
MAX_LINE_BYTES = 16 << 20
"""The longest line of an answer, which is one event. The SDKs copy an event several times."""
MAX_ERROR_BYTES = 1 << 20
"""What is read of the body of an error."""
_OF_THE_BODY = ("content-type", "content-length", "content-encoding", "transfer-encoding")

EventsOf = Callable[[dict[str, Any]], Iterable[dict[str, Any]]]
"""Returns the events of an answer that is one JSON document; none for a document that is not an answer. What
it raises for one in another form is a `LookupError`, a `TypeError` or an `AttributeError`."""


class Streams(NamedTuple):
    """How an API sends the events of an answer: the content types, and one event as it is written."""

    types: tuple[str, ...]
    written: Callable[[dict[str, Any]], bytes]


def _as_server_sent(event: dict[str, Any]) -> bytes:
    name = f"event: {event['type']}\n" if "type" in event else ""
    return name.encode() + b"data: " + msgspec.json.encode(event) + b"\n\n"


BINARY = "application/vnd.amazon.eventstream"
"""A stream without lines."""
SERVER_SENT = Streams(("text/event-stream", BINARY), _as_server_sent)


class WrongServer(UnusableSetting):
    """What answers is not the API of a model. Trying again does not help."""


class AnswerTooLong(UnusableSetting):
    """What answers sends more than a model can. Trying again does not help."""


class _Bounded(httpx2.AsyncByteStream):
    """The body of a response, unpacked, up to its bound. An answer is passed on in whole lines if it has
    lines: the SDKs would copy a long one with each of its pieces. Who reads on after a pause, to use the
    connection again, reads the rest."""

    def __init__(self, response: httpx2.Response, *, has_lines: bool) -> None:
        self._response = response
        self._pieces = response.aiter_bytes()
        self._is_error = response.is_error
        self._has_lines = has_lines and not self._is_error
        self._left = MAX_ERROR_BYTES if self._is_error else MAX_ANSWER_BYTES

    async def __aiter__(self) -> AsyncIterator[bytes]:
        line: list[bytes] = []
        line_bytes = 0
        async for piece in self._pieces:
            self._left -= len(piece)
            if self._left < 0 and self._is_error:
                yield piece[: self._left]
                return
            if self._left < 0:
                raise AnswerTooLong(f"the server sends an answer of more than {MAX_ANSWER_BYTES >> 20} MiB")
            if not self._has_lines:
                yield piece
                continue
            end = max(piece.rfind(b"\n"), piece.rfind(b"\r")) + 1
            if end:
                yield b"".join([*line, piece[:end]])
                line, line_bytes = [], 0
            line.append(piece[end:])
            line_bytes += len(piece) - end
            if line_bytes > MAX_LINE_BYTES:
                raise AnswerTooLong(f"the server sends an event of more than {MAX_LINE_BYTES >> 20} MiB")
        if line_bytes:
            yield b"".join(line)

    async def aclose(self) -> None:
        await self._response.aclose()


class ModelTransport(GuardedTransport):
    """The connections of one client. `stated` names what states the URL of the server, for errors;
    `events_of` and `streams` are those of its API."""

    def __init__(self, stated: str, events_of: EventsOf, streams: Streams = SERVER_SENT) -> None:
        super().__init__()
        self._streams = streams
        self._stated = stated
        self._events_of = events_of
        self._server: httpx2.URL | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if any(_CONTROL.search(value) for _, value in request.headers.raw):
            # the HTTP library would quote it in its error, and it may be a key
            raise WrongServer("a key or a header has characters that cannot be sent, such as a line end")
        server = _server_of(request.url)
        if self._server is None:
            self._server = server
        if server != self._server:
            raise WrongServer(
                f"the server redirects to another one, {server}, which gets no request: if it is right, write"
                f" it in {self._stated}"
            )
        response = await super().handle_async_request(request)
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if response.status_code == 200 and kind not in (*self._streams.types, *UNCLEAR):
            streamed = await self._streamed(response) if kind == JSON else None
            await response.aclose()
            if streamed is not None:
                return streamed
            raise WrongServer(
                f"the server answered 200 with {kind[:100]}, not with a stream of events: what is there is"
                f" not the API of a model; check {self._stated}"
            )
        return httpx2.Response(
            response.status_code,
            headers=_without(response.headers, "content-length", "content-encoding"),
            stream=_Bounded(response, has_lines=kind != BINARY),
            extensions=response.extensions,
        )

    async def _streamed(self, response: httpx2.Response) -> httpx2.Response | None:
        """Return an answer that is one JSON document as a stream of events; None if it is not an answer, or
        too long for one."""
        document = bytearray()
        async for piece in response.aiter_bytes():
            document += piece
            if len(document) > MAX_ANSWER_BYTES:
                return None
        try:
            body = msgspec.json.decode(document, type=dict[str, Any])
            events = [self._streams.written(each) for each in self._events_of(body)]
        except (msgspec.DecodeError, LookupError, TypeError, AttributeError, RecursionError):
            return None
        if not events:
            return None
        headers = _without(response.headers, *_OF_THE_BODY)
        return httpx2.Response(
            200, headers=[*headers, ("content-type", self._streams.types[0])], content=b"".join(events)
        )


def _without(headers: httpx2.Headers, *names: str) -> list[tuple[str, str]]:
    return [pair for pair in headers.multi_items() if pair[0].lower() not in names]


def _server_of(url: httpx2.URL) -> httpx2.URL:
    return httpx2.URL(scheme=url.scheme, host=url.host, port=url.port)
