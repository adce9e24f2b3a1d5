"""Serve MCP over streamable HTTP.

Web pages that a browser shows can send requests to this machine, so the headers Host and Origin are checked,
whether or not callers have tokens. Without tokens a server is for this machine alone. The SDK's own check
tells small letters from large ones, and logs each header that it refuses as it came.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Sequence
from typing import Any

from mcp.server.lowlevel.server import Server
from mcp.server.transport_security import DEFAULT_MAX_REQUEST_BODY_SIZE, TransportSecuritySettings
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fdstore.errors import quoted
from fdstore.hosts.mcp.bearer import StoredTokens, StoreOutages, local_issuer
from fdstore.http.address import allowed_names, origin_of
from fdstore.http.callers import comes_from, is_called
from fdstore.http.connections import once_per_minute

log = logging.getLogger("fdstore.mcp.http")
log.addFilter(once_per_minute)

OF_CLIENTS = ("mcp.server.runner", "mcp.server.streamable_http_manager", "mcp.shared.jsonrpc_dispatcher")
"""Loggers of the SDK with messages that each request of a client can cause."""

PATH = "/mcp"
TOO_LARGE = (
    f"a request may have {DEFAULT_MAX_REQUEST_BODY_SIZE >> 20} MiB; "
    "store larger texts with put_fd(file=...), below --put-root of the server"
)


def make_app(server: Server[Any], host: str, names: Sequence[str], tokens: StoredTokens | None) -> Starlette:
    """Return the ASGI app of a server that listens on `host`. With `tokens` each request needs one."""
    called = frozenset(allowed_names(host, names))
    for logger in OF_CLIENTS:
        logging.getLogger(logger).addFilter(once_per_minute)
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        auth=None if tokens is None else local_issuer(),
        token_verifier=tokens,
    )
    app.add_middleware(StoreOutages)
    app.add_middleware(TooLargeRequests)
    app.add_middleware(KnownCallers, names=called)
    return app


class KnownCallers:
    """Middleware that refuses requests which call the server by a name that is not one of its `names`, or
    come from a web page of another server."""

    def __init__(self, app: ASGIApp, names: frozenset[str]) -> None:
        self._app, self._names = app, names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = self._refusal(Headers(scope=scope)) if scope["type"] == "http" else None
        await (refused or self._app)(scope, receive, send)

    def _refusal(self, headers: Headers) -> ASGIApp | None:
        host, origin = headers.get("host"), headers.get("origin")
        if not is_called(self._names, host):
            log.warning("a request calls another host: %s; --allow-host adds one", quoted(host or ""))
            return PlainTextResponse("Invalid Host header", status_code=421)
        if not comes_from(self._names, origin):
            log.warning("a request comes from a page of another server: %s", quoted(origin or ""))
            return PlainTextResponse("Invalid Origin header", status_code=403)
        return None


class TooLargeRequests:
    """Middleware that says in a JSON-RPC error how large a request may be. The SDK refuses it before its id
    is read, so the error has none."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_refused = False

        async def answer(message: Message) -> None:
            nonlocal is_refused
            if message["type"] == "http.response.start" and message["status"] == 413:
                is_refused = True
                error = {"code": -32600, "message": TOO_LARGE}
                content = {"jsonrpc": "2.0", "id": None, "error": error}
                await JSONResponse(content, status_code=413)(scope, receive, send)
            elif not is_refused:
                await send(message)

        await self._app(scope, receive, answer)


def url_of(listening: socket.socket, hosts: Sequence[str] = ()) -> str:
    """Return the URL at which a server on this socket is called."""
    return f"{origin_of(listening, hosts)}{PATH}"
