"""A page: its path, its template, the function that loads its data; and the request for one."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fdstore.client._async.store import Store
from fdstore.errors import InvalidArgument, quoted
from fdstore.inspector.web.inspector import Inspector
from fdstore.text.numbers import MAX_INTEGER

MAX_QUERY_CHARS = 1024

ROWS = 200
"""Rows of a table on one page: trees, or processes of a tree."""


_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,6})?", re.ASCII)


class SeeOther(Exception):
    """The page that was asked for is at `url`."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.url = url


class PageRequest:
    """A request for a page: the store, the arguments in the path and the query. `http` is Starlette's."""

    def __init__(self, http: Request) -> None:
        self.http = http
        self.inspector: Inspector = http.app.state.inspector

    @property
    def store(self) -> Store:
        """The store, opened for looking: its writes raise `UnsafeStore`."""
        return self.inspector.store

    @property
    def prefix(self) -> str:
        return self.inspector.store.prefix

    def argument(self, name: str) -> str:
        """Return a part of the path."""
        return str(self.http.path_params[name])

    def query(self, name: str, default: str = "") -> str:
        """Return an argument of the query without blanks around it. Raises `InvalidArgument` if it is
        long."""
        value = self.http.query_params.get(name, default).strip()
        if len(value) > MAX_QUERY_CHARS:
            raise InvalidArgument(name, f"it has more than {MAX_QUERY_CHARS} characters")
        return value

    def choice(self, name: str, choices: tuple[str, ...], default: str = "") -> str:
        """Return an argument that is one of `choices`, or the default. Raises `InvalidArgument`."""
        value = self.query(name, default) or default
        if value != default and value not in choices:
            raise InvalidArgument(name, f"{quoted(value)} is none of {', '.join(choices)}")
        return value

    def number(self, name: str, default: int, least: int = 0, most: int = MAX_INTEGER) -> int:
        """Return a whole number of the query. Raises `InvalidArgument`."""
        value = self.query(name)
        if not value:
            return default
        if not (value.isascii() and value.isdecimal() and len(value) <= 17 and least <= int(value) <= most):
            raise InvalidArgument(name, f"{quoted(value)} is not a number from {least} to {most}")
        return int(value)

    def seconds(self, name: str) -> float | None:
        """Return a time of the query in seconds, such as 12.5; None without one. Raises `InvalidArgument`."""
        value = self.query(name)
        if value and not _SECONDS.fullmatch(value):
            raise InvalidArgument(name, f"{quoted(value)} is not a number of seconds, such as 12.5")
        return float(value) if value else None


class WebPage(msgspec.Struct, frozen=True):
    """A page at `path` (Starlette's form). With `live_s`, a browser that shows it is sent it again when
    its data change; they are loaded every `live_s` seconds, and less often if that takes long.
    `timeout_s` is how long loading may take."""

    path: str
    template: str
    load: Callable[[PageRequest], Awaitable[Any]]
    live_s: float | None = None
    timeout_s: float = 5.0

    async def data(self, request: PageRequest) -> Any:
        """Return its data. Raises `StoreUnavailable` soon, and what `load` raises."""
        return await request.inspector.within(self.timeout_s, lambda: self.load(request))

    @property
    def base(self) -> str:
        """Its path, to which `.json` and `.live` are appended."""
        return "/index" if self.path == "/" else self.path


def route(
    path: str, respond: Callable[[PageRequest], Awaitable[Response]], methods: Sequence[str] = ("GET",)
) -> Route:
    """Return a route of Starlette to a function that takes a `PageRequest`."""

    async def endpoint(http: Request) -> Response:
        return await respond(PageRequest(http))

    return Route(path, endpoint, methods=methods)
