"""The guard of every request: checks of Host, Origin and login, and headers for the browser.

Other web pages in the same browser can send requests to this machine. The check of Host keeps a page
away whose own name was pointed at this machine; the check of Origin allows only our own pages to change
anything.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fdstore.http.callers import host_name, is_own_origin
from fdstore.inspector.web.login import LOGIN_PATH, Login

CSP = (
    "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'; "
    "style-src 'self'; script-src 'self'"
)

HEADERS = {
    "Content-Security-Policy": CSP,
    "X-Content-Type-Options": "nosniff",
    # "no-referrer" would make browsers send `Origin: null` with our own forms
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
}
"""Headers of every response, unless it has its own."""

READS = ("GET", "HEAD")
OPEN_TO_ALL = (LOGIN_PATH, "/favicon.svg", "/favicon.ico")
"""Paths that need no token, besides static files: what the login page is made of."""

MAX_BODY_BYTES = 65_536
MAX_ANSWER_BYTES = 1_000_000
"""Of an answer to a question, with arguments that a person edited."""

_ANSWER = re.compile(r"/process/[^/]+/questions/[0-9]+")


class Guard:
    """The outermost ASGI app. `hosts` are the names by which browsers may call; `login` is None without
    a token."""

    def __init__(self, app: ASGIApp, hosts: Sequence[str], login: Login | None) -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)
        self._login = login

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await (self._refusal(scope) or self._app)(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> ASGIApp | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if host_name(host) not in self._hosts:
            return _refuse("This host name is not served; name it with --allow-host.")
        if scope["method"] not in READS:
            if not is_own_origin(headers.get("origin"), host):
                return _refuse(
                    "Requests that change something must come from a page of the inspector (Origin)."
                )
            length = headers.get("content-length", "")
            most = MAX_ANSWER_BYTES if _ANSWER.fullmatch(scope["path"]) else MAX_BODY_BYTES
            if not (length.isascii() and length.isdecimal() and len(length) < 17 and int(length) <= most):
                return PlainTextResponse("The request is too long.\n", 413)
        path = scope["path"]
        if self._login is None or path in OPEN_TO_ALL or path.startswith("/static/"):
            return None
        if self._login.permits(headers):
            return None
        if scope["method"] not in READS or path.endswith((".json", ".live")):
            challenge = {"WWW-Authenticate": "Bearer"}
            return PlainTextResponse("A token is needed: Authorization: Bearer TOKEN\n", 401, challenge)
        query = scope["query_string"].decode("latin-1")
        return RedirectResponse(
            f"{LOGIN_PATH}?next={quote(path + ('?' + query if query else ''), safe='')}", 303
        )


def _refuse(text: str) -> ASGIApp:
    return PlainTextResponse(f"{text}\n", 403)
