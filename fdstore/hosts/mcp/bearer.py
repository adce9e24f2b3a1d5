"""Callers with tokens. Each request looks its token up in the store, so a removed one ends at once."""

from __future__ import annotations

import logging
from typing import Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from pydantic import AnyHttpUrl
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from fdstore.errors import FDStoreError
from fdstore.hosts.mcp.access import Access
from fdstore.hosts.mcp.protocol_errors import NotPermitted
from fdstore.hosts.mcp.toolsets import Toolsets
from fdstore.store.tokens import Token, find_token

log = logging.getLogger("fdstore.mcp")

CLAIM = "fdstore"


class StoredTokens:
    """Verifies tokens of the store, as the SDK asks for it."""

    def __init__(self, toolsets: Toolsets) -> None:
        self._toolsets = toolsets

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return what a token permits; None for one that is unknown or expired. Raises as `store`."""
        store = await self._toolsets.store()
        found = await store.run(find_token(store.prefix, token))
        if found is None:
            return None
        # the SDK keeps a session to those who began it, by these two
        principal = f"{found.name}/{found.created_at}"
        return AccessToken(
            token=token,
            client_id=found.name,
            subject=principal,
            scopes=list(found.permissions),
            claims={CLAIM: found},
        )

    def access(self, context: Any) -> Access:
        """Return what the caller of a request may do: what the token permits and the server allows. Raises
        `NotPermitted` for a request without a token."""
        user = None if context.request is None else context.request.scope.get("user")
        claims = user.access_token.claims if isinstance(user, AuthenticatedUser) else None
        found = (claims or {}).get(CLAIM)
        if not isinstance(found, Token):
            raise NotPermitted("this request", "read")
        return Access(
            process=found.process,
            permissions=frozenset(found.permissions) & self._toolsets.default.permissions,
            whole_tree=found.whole_tree,
        )


def local_issuer() -> AuthSettings:
    """Return settings without a server that issues tokens: the operator does, so no metadata names one."""
    return AuthSettings(issuer_url=AnyHttpUrl("http://localhost"), resource_server_url=None)


class StoreOutages:
    """Middleware that answers 503 when a token cannot be checked, so that clients try again and keep it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._app(scope, receive, send)
        except FDStoreError as error:
            log.warning("a token could not be checked: %s", error)
            await PlainTextResponse(f"{error.type}\n", status_code=503)(scope, receive, send)
