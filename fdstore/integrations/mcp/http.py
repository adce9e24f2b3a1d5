"""Serve MCP over streamable HTTP.

Web pages that a browser shows can send requests to this machine, so the headers Host and Origin are checked,
by the SDK, whether or not callers have tokens. Without tokens a server is for this machine alone.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Any

from mcp.server.lowlevel.server import Server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette

from fdstore.http_server import allowed_names, origin_of
from fdstore.integrations.mcp.bearer import StoredTokens, StoreOutages, local_issuer

PATH = "/mcp"


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
    return app


def url_of(listening: socket.socket) -> str:
    """Return the URL at which a server on this socket is called."""
    return f"{origin_of(listening)}{PATH}"
