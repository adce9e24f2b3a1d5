"""Serve MCP over streamable HTTP.

Web pages that a browser shows can send requests to this machine, so the headers Host and Origin are checked,
by the SDK, whether or not callers have tokens. Without tokens a server is for this machine alone.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Any

from mcp.server.lowlevel.server import Server
from mcp.server.transport_security import DEFAULT_MAX_REQUEST_BODY_SIZE, TransportSecuritySettings
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fdstore.hosts.mcp.bearer import StoredTokens, StoreOutages, local_issuer
from fdstore.http.address import allowed_names, origin_of

PATH = "/mcp"
TOO_LARGE = (
    f"a request may have {DEFAULT_MAX_REQUEST_BODY_SIZE >> 20} MiB; "
    "store larger texts with put_fd(file=...), below --put-root of the server"
)


def make_app(server: Server[Any], host: str, names: Sequence[str], tokens: StoredTokens | None) -> Starlette:
    """Return the ASGI app of a server that listens on `host`. With `tokens` each request needs one."""
    called = [each for name in allowed_names(host, names) for each in (name, f"{name}:*")]
    security = TransportSecuritySettings(
        allowed_hosts=called,
        allowed_origins=[f"{scheme}://{each}" for scheme in ("http", "https") for each in called],
    )
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        transport_security=security,
        auth=None if tokens is None else local_issuer(),
        token_verifier=tokens,
    )
    app.add_middleware(StoreOutages)
    app.add_middleware(TooLargeRequests)
    return app


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
