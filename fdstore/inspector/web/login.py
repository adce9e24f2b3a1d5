"""The token that browsers and programs need, if the inspector has one.

A program sends it in each request; a browser once, in the form of the login page, and gets a cookie. The
cookie is derived from the token, so it outlives a restart and ends with the token; the token is never in
a URL.
"""

from __future__ import annotations

import hashlib
import hmac

from starlette.datastructures import Headers
from starlette.requests import Request, cookie_parser
from starlette.responses import RedirectResponse, Response

from fdstore.errors import InvalidArgument

LOGIN_PATH = "/login"
COOKIE = "fdstore_ui"
MIN_TOKEN_CHARS = 16


class Login:
    """The token, and the cookie in its place. Raises `InvalidArgument` for one that could be guessed."""

    def __init__(self, token: str) -> None:
        if len(token) < MIN_TOKEN_CHARS or not token.isascii() or not token.isprintable() or " " in token:
            problem = f"it must have {MIN_TOKEN_CHARS} or more printable ASCII characters and no blanks"
            raise InvalidArgument("token", problem)
        self._token = token.encode()
        self._cookie = hmac.new(self._token, b"fdstore ui", hashlib.sha256).hexdigest()

    def permits(self, headers: Headers) -> bool:
        """Return whether a request has the token or the cookie."""
        kind, _, token = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and self.is_token(token.strip()):
            return True
        cookie = cookie_parser(headers.get("cookie", "")).get(COOKIE, "")
        return hmac.compare_digest(cookie.encode("utf-8", "replace"), self._cookie.encode())

    def is_token(self, token: str) -> bool:
        """Compare in a time that tells nothing about the token."""
        return hmac.compare_digest(token.encode("utf-8", "replace"), self._token)

    def enter(self, request: Request, path: str) -> Response:
        """Return the response that sets the cookie and leads to `path`."""
        response = RedirectResponse(own_path(path), 303)
        secure = request.url.scheme == "https"
        response.set_cookie(COOKIE, self._cookie, httponly=True, samesite="strict", secure=secure)
        return response


def leave() -> Response:
    """Return the response that removes the cookie."""
    response = RedirectResponse(LOGIN_PATH, 303)
    response.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return response


def own_path(path: str) -> str:
    r"""Return `path` if it is one of this server, else the first page: a link must not lead elsewhere.

    >>> own_path("/tree/a?state=failed"), own_path("//evil.example"), own_path("/\\evil.example")
    ('/tree/a?state=failed', '/', '/')
    """
    is_own = path.startswith("/") and path.isascii() and path.isprintable()
    return path if is_own and not path.startswith(("//", "/\\")) else "/"
