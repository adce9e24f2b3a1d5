"""Relay between HTTP, on loopback, and an MCP server by HTTP.

Every request is passed on with its path, headers and body, and gets the operator's headers if it is for the
configured path. Answers that are not JSON or a stream of events
pass as they come. Host and Origin are checked here, since a web page that reaches this port by a trick of DNS
must reach no server; the server sees its own host, and no Origin.

An answer usually comes in the response to its request, and is matched there: the ids of two clients may be
equal. A client that has lost the connection gets the rest of the stream by a GET, so the requests of each
session are remembered too.
"""

from __future__ import annotations

import asyncio
import socket
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import suppress
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import httpx2
from msgspec import Raw
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse

from fdstore.errors import InvalidArgument
from fdstore.hosts.gateway.acting import Treatment
from fdstore.hosts.gateway.descriptors import Descriptors
from fdstore.hosts.gateway.http_connection import body_of, media_type, read_message, upstream_client
from fdstore.hosts.gateway.http_programs import OF_ONE_REQUEST, HttpPrograms, disconnected
from fdstore.hosts.gateway.json_parts import object_at, parts_of
from fdstore.hosts.gateway.json_scan import Buffer
from fdstore.hosts.gateway.messages import (
    MAX_MESSAGE_BYTES,
    TOO_LONG,
    TooLong,
    error_answer,
    longer,
)
from fdstore.hosts.gateway.rewriting import (
    CallOurTool,
    CancelOurTool,
    Expand,
    Forward,
    Rewriter,
    Separate,
    TakenBack,
)
from fdstore.hosts.gateway.sse import EventSplitter, data_of, with_data
from fdstore.http.address import LOOPBACK_NAMES, PortRefused, listen, origin_of, parse_address
from fdstore.http.callers import calls_one_of
from fdstore.http.server import HttpServer

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from fdstore.hosts.gateway.code.programs import Programs

T = TypeVar("T")

MAX_SESSIONS = 1000
CLIENT_META = "io.modelcontextprotocol/clientInfo"

_OF_THE_CONNECTION = {
    *(b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"te", b"trailer"),
    *(b"transfer-encoding", b"upgrade"),
}
_NOT_PASSED_ON = _OF_THE_CONNECTION | {b"host", b"origin", b"content-length", b"accept-encoding"}


class HttpRelay:
    """An ASGI application before one server.

    url            endpoint of the server. A request for its path goes to it, others to the same origin
    headers        added to requests for the path of `url`, in place of the client's of the same name. They
                   may be secrets that clients do not have, as may the login in `url`: other paths, which the
                   operator did not think of, get neither, unless an option names them
    programs       with --code: those of the clients' models
    """

    def __init__(
        self,
        url: str,
        descriptors: Descriptors,
        headers: Mapping[str, str],
        *,
        programs: Programs | None = None,
    ) -> None:
        self._url = httpx2.URL(url)
        self._trusted_paths = {self._url.path, *descriptors.options.header_path}
        self._treatment = Treatment(descriptors, programs)
        self._headers = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        self._sessions: OrderedDict[str, Rewriter] = OrderedDict()
        # No limit of connections, as each listener holds one. Clients get redirects and cookies themselves:
        # the next request may be another client's.
        self._client = upstream_client(cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())))
        self._programs = None if programs is None else HttpPrograms(programs, self._client)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        with suppress(ClientDisconnect):
            response = await self._respond(request)
            await response(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        """Close the connections to the server at the end."""
        while (await receive())["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        await self._client.aclose()
        await send({"type": "lifespan.shutdown.complete"})

    async def _respond(self, request: Request) -> Response:
        if not calls_one_of(LOOPBACK_NAMES, request.headers.get("host"), request.headers.get("origin")):
            return _error(403, "this Host or Origin is not allowed: the gateway serves this machine only")
        body = await _body(request)
        if isinstance(body, TooLong):
            return _error(413, TOO_LONG, body.id)
        name = request.headers.get("mcp-session-id", "")
        session = self._session(name or _client_of(request, body))
        rewriter = self._treatment.rewriter(session.offer)
        if request.method != "POST":
            return await self._pass_on(request, body, session if request.method == "GET" else None)
        decision = rewriter.to_server(body)
        if isinstance(decision, Separate):
            return _refused_batch(decision)
        if isinstance(decision, CallOurTool):
            if self._programs is not None and decision.tool in self._programs.of_gateway.tools:
                session.to_server(body)  # so that it knows what is cancelled
                headers = self._session_headers(request)
                return await self._programs.respond(request, decision, name, self._target(request), headers)
            answer = await asyncio.to_thread(self._treatment.answer, decision)
            return Response(answer, media_type="application/json")
        kept = session.to_server(body)
        for each in kept.decisions if isinstance(kept, Separate) else [kept]:
            if self._programs is not None and isinstance(each, CancelOurTool):
                self._programs.cancel(name, each.key)
        if isinstance(kept, CancelOurTool | TakenBack):
            return Response(status_code=202)
        if isinstance(decision, Expand):
            expanded = await self._expanded(request, body, decision, session, has_session=bool(name))
            if isinstance(expanded, Response):
                return expanded
            body = expanded
        return await self._pass_on(request, body, rewriter, session)

    async def _expanded(
        self, request: Request, body: bytes, decision: Expand, session: Rewriter, *, has_session: bool
    ) -> bytes | Response:
        """Return a request with stored content in its arguments, or else the response for the client: the
        answer, or nothing if it takes the request back meanwhile. Raises `ClientDisconnect`."""
        key = decision.call.key
        is_passed_on = _is_in_header(request)
        if is_passed_on or not has_session:  # without one the ids of two clients may be equal
            session.release(key)
        if is_passed_on:
            return body
        try:
            expanding = asyncio.to_thread(self._treatment.expand, body, decision)
            expanded, mistake = await _unless_it_leaves(request, expanding)
        finally:
            is_taken_back = not session.release(key) and has_session
        if is_taken_back:
            return Response(status_code=202)
        if expanded is None:
            session.forget(key)
            return Response(mistake, media_type="application/json")
        return bytes(expanded)

    def _session(self, name: str) -> Rewriter:
        """Return the rewriter of a session, which knows its requests without an answer, and whether its host
        was shown our tools."""
        found = self._sessions.pop(name, None) or self._treatment.rewriter(self._treatment.offer.for_host())
        self._sessions[name] = found
        if len(self._sessions) > MAX_SESSIONS:
            self._sessions.popitem(last=False)
        return found

    async def _pass_on(
        self, request: Request, body: bytes, rewriter: Rewriter | None, session: Rewriter | None = None
    ) -> Response:
        """Return the response of the server, with the answers that `rewriter` knows rewritten."""
        try:
            response = await self._send(request, body)
        except httpx2.HTTPError as error:
            return _error(502, f"the MCP server cannot be reached: {type(error).__name__}: {error}")
        except httpx2.InvalidURL as error:
            return _error(400, f"this path cannot be passed on: {error}")
        headers = [(name.lower(), value) for name, value in response.headers.raw]
        headers = [pair for pair in headers if pair[0] not in _OF_THE_CONNECTION]
        kind = media_type(response) if "content-encoding" not in response.headers else ""
        chunks = _chunks(response)
        content: AsyncIterator[bytes | memoryview] = chunks
        if rewriter is not None and kind == "text/event-stream":
            content = self._events(chunks, rewriter, session)
            headers = [pair for pair in headers if pair[0] != b"content-length"]
        elif rewriter is not None and kind == "application/json":
            try:
                whole = await _unless_it_leaves(request, body_of(chunks))
            except httpx2.HTTPError as error:
                return _error(502, f"the connection to the MCP server broke: {type(error).__name__}: {error}")
            if whole is None:
                return _error(200, TOO_LONG, rewriter.first_unanswered)
            answer = await self._rewritten(whole, rewriter, session)
            shown = Response(memoryview(answer), status_code=response.status_code)
            shown.raw_headers = [
                *(pair for pair in headers if pair[0] != b"content-length"),
                (b"content-length", str(len(answer)).encode()),
            ]
            return shown
        streamed = StreamingResponse(content, status_code=response.status_code)
        streamed.raw_headers = headers
        return streamed

    async def _send(self, request: Request, body: bytes) -> httpx2.Response:
        """Send a request on, and return the response once its headers are here. A client that disconnects
        meanwhile takes its request back. Raises `httpx2.HTTPError`, `ClientDisconnect`."""
        headers = self._headers_for(request)
        built = self._client.build_request(
            request.method, self._target(request), headers=headers, content=body or None
        )
        return await _unless_it_leaves(request, self._client.send(built, stream=True))

    def _headers_for(self, request: Request) -> list[tuple[bytes, bytes]]:
        """Return the headers of a client's request as the server gets them."""
        given = self._headers if request.scope["path"] in self._trusted_paths else []
        names = {name for name, _ in given} | _NOT_PASSED_ON
        headers = [pair for pair in request.headers.raw if pair[0] not in names]
        return [*headers, *given, (b"accept-encoding", b"identity")]

    def _session_headers(self, request: Request) -> dict[str, str]:
        """Return those that its other requests have, too."""
        headers = ((name.decode(), value.decode("latin-1")) for name, value in self._headers_for(request))
        return {name: value for name, value in headers if name not in OF_ONE_REQUEST}

    def _target(self, request: Request) -> httpx2.URL:
        query = request.scope.get("query_string", b"")
        path = request.scope["path"]
        if path != self._url.path:
            login = (
                self._url
                if path in self._trusted_paths
                else self._url.copy_with(username=None, password=None)
            )
            return login.copy_with(raw_path=request.scope["raw_path"] + (b"?" + query if query else b""))
        joined = b"&".join(filter(None, (self._url.query, query)))
        return self._url.copy_with(query=joined or None)

    async def _events(
        self, chunks: AsyncIterator[bytes], rewriter: Rewriter, session: Rewriter | None
    ) -> AsyncIterator[bytes | memoryview]:
        owed = None if rewriter is session else rewriter.first_unanswered
        splitter = EventSplitter(owed)
        with suppress(httpx2.HTTPError):  # a client continues a stream that broke off
            async for chunk in chunks:
                for event in splitter.feed(chunk):
                    data = data_of(event)
                    shown = data and await self._rewritten(data, rewriter, session)
                    yield memoryview(event) if shown is data or not shown else with_data(event, shown)
        if rest := splitter.rest():
            yield rest

    async def _rewritten(self, data: Buffer, rewriter: Rewriter, session: Rewriter | None) -> Buffer:
        message = await read_message(data)
        decision = rewriter.from_server(message)
        self._treatment.look_at(message)
        if session is not None:
            session.forget_answered(message)
        if isinstance(decision, Forward):
            return data
        return await asyncio.to_thread(self._treatment.rewrite, message, decision)


async def _body(request: Request) -> bytes | TooLong:
    """Return the body of a request. One that is too long is read to its end and not kept: many clients read
    no answer before. Raises `ClientDisconnect`."""
    body: bytearray | TooLong = bytearray()
    async for chunk in request.stream():
        body = longer(body, chunk, MAX_MESSAGE_BYTES)
    return body if isinstance(body, TooLong) else bytes(body)


async def _chunks(response: httpx2.Response) -> AsyncIterator[bytes]:
    """Yield the body as it comes. A server that breaks off ends it, as the client would see it directly."""
    try:
        async for chunk in response.aiter_raw():
            yield chunk
    finally:
        await response.aclose()


def _client_of(request: Request, body: bytes) -> str:
    """Return what tells a client apart that has no session: its program, and since 2026-07-28 what it says of
    itself in each request."""
    said = object_at(object_at(parts_of(body) or {}, "params"), "_meta").get(CLIENT_META, b"")
    return f"{request.headers.get('user-agent', '')} {bytes(said).decode('utf-8', 'replace')}"


def _is_in_header(request: Request) -> bool:
    """Return whether a header repeats an argument with `{{fd:3}}`, as tools may ask since 2026-07-28. Servers
    refuse a request whose headers and body differ, so it passes as it is."""
    return any(name.startswith("mcp-param-") and "{{" in value for name, value in request.headers.items())


async def _unless_it_leaves(request: Request, awaited: Coroutine[Any, Any, T]) -> T:
    """Return what is awaited, for a client that waits for it. Raises `ClientDisconnect` after it was given up
    for one that does not."""
    working = asyncio.ensure_future(awaited)
    leaving = asyncio.ensure_future(disconnected(request))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        for task in (working, leaving):
            task.cancel()


def _refused_batch(batch: Separate) -> Response:
    """Refuse a batch with calls that the gateway answers or changes: it has one response, that of the server
    or that of the gateway."""
    problem = (
        "the gateway passes no batch on with a call of its tools or with {{fd:N}}: send each message alone"
    )
    fields = [each.fields or {} for each in batch.messages]
    ids = [each["id"] for each in fields if "id" in each and "method" in each]
    answers = b",".join(error_answer(id, problem) for id in ids)
    return Response(b"[" + answers + b"]", media_type="application/json")


def _error(status: int, message: str, id: Raw | None = None) -> Response:
    answer = error_answer(id or Raw(b"null"), message)
    return Response(answer, status_code=status, media_type="application/json")


def listening_socket(address: str) -> socket.socket:
    """Return a socket that listens on HOST:PORT; port 0 is any free one. Raises `InvalidArgument`, also for a
    host that others could reach: the gateway has no passwords."""
    host, port = parse_address(address)
    if host not in ("127.0.0.1", "localhost", "::1"):
        raise InvalidArgument("listen", "the host must be 127.0.0.1, localhost or [::1]")
    try:
        return listen(host, port)
    except PortRefused as error:
        raise InvalidArgument("listen", str(error)) from error


def serve(relay: HttpRelay, listening: socket.socket, url: str, report: Callable[[str], None]) -> None:
    """Serve until a signal comes. Raises `InvalidArgument` for limits in the environment that are no
    numbers."""
    server = HttpServer(relay, date=False)
    report(f"listening on {origin_of(listening)}{urlsplit(url).path}")
    asyncio.run(server.serve(sockets=[listening]))
