"""The connections of a client of a model: to one server, which must answer with a stream of events.

A key is sent with each request, under names that the HTTP library does not know to be secret: it removes
`Authorization` when a server redirects to another one, and keeps `x-api-key`. So here a redirect to another
server is refused, whatever it carries. A page in place of an answer, such as that of a login, is refused too:
the SDK would take it for a stream without events.
"""

from __future__ import annotations

import re

import httpx2

from fdstore.http.client import GuardedTransport, UnusableSetting

EVENT_STREAMS = ("text/event-stream", "application/vnd.amazon.eventstream")
_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
UNCLEAR = ("", "text/plain", "application/octet-stream", "binary/octet-stream")
"""Content types of servers that say nothing of their streams."""


class WrongServer(UnusableSetting):
    """What answers is not the API of a model. Trying again does not help."""


class ModelTransport(GuardedTransport):
    """The connections of one client. `stated` names what states the URL of the server, for errors."""

    def __init__(self, stated: str) -> None:
        super().__init__()
        self._stated = stated
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
        if response.status_code == 200 and kind not in (*EVENT_STREAMS, *UNCLEAR):
            await response.aclose()
            raise WrongServer(
                f"the server answered 200 with {kind[:100]}, not with a stream of events: what is there is"
                f" not the API of a model; check {self._stated}"
            )
        return response


def _server_of(url: httpx2.URL) -> httpx2.URL:
    return httpx2.URL(scheme=url.scheme, host=url.host, port=url.port)
