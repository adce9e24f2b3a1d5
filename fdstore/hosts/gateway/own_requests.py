"""The requests of the gateway's own to one server: how they begin, and how each ends.

    answered    by a message of the server: a result, an error, or what cannot be read
    cancelled   by us with `notifications/cancelled`: its caller gave up, or its time is over
    gone        its server has ended

Each ends once; later messages for it are dropped. They use the host's connection, so their ids have a random
mark that tells their answers from those for the host. The id is also the progress token.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from secrets import token_hex
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec
from msgspec import Raw

from fdstore.hosts.gateway.json_parts import encode, object_at, text_at
from fdstore.hosts.gateway.json_scan import Buffer
from fdstore.hosts.gateway.messages import Message, error_answer, line_of

T = TypeVar("T")

OWN_ID = "fdstore-"
"""The begin of the ids of our requests."""

OWN_REQUEST_S = 20.0
"""The time for a request, with all pages of a list."""

PROTOCOL = "io.modelcontextprotocol/"
"""The prefix of the names of the protocol's own metadata; since 2026-07-28 each request has its version."""

OnProgress: TypeAlias = Callable[[str], None]
"""Called with what a server says of a request that runs."""


class NoAnswer(Exception):
    """A request has ended without an answer; the text says why."""


class CallCancelled(NoAnswer):
    """The request was taken back."""


class ServerGone(NoAnswer):
    """The server will not answer any more."""


class OwnRequest(Generic[T]):
    """A request that is made for something. `end` is the message that answers it, or raises `NoAnswer`."""

    def __init__(self, id: str, of: T, on_progress: OnProgress | None) -> None:
        self.id, self.of, self.on_progress = id, of, on_progress
        self.end: Future[Message] = Future()

    def answer(self, timeout_s: float | None = None) -> Message:
        """Wait for the answer; one that cannot be read is an error. Raises `NoAnswer` and `TimeoutError`."""
        message = self.end.result(timeout_s)
        if not message.problem:
            return message
        said = f"the answer of the server cannot be read: {message.problem}"
        return Message(error_answer(encode(self.id), said))


class OwnRequests(Generic[T]):
    """The requests to one server, from any thread. All ids begin with `mark`; `send` passes a line on."""

    def __init__(self, send: Callable[[Buffer], object]) -> None:
        self._send = send
        self._mark = f"{OWN_ID}{token_hex(8)}-"
        self.mark = self._mark.encode()
        self._count = 0
        self._open: dict[str, OwnRequest[T]] = {}
        self._lock = threading.Lock()
        self._problem: str | None = None

    def new_id(self) -> str:
        with self._lock:
            self._count += 1
            return f"{self._mark}{self._count}"

    def begin(
        self, message: Mapping[str, Any], of: T, on_progress: OnProgress | None = None
    ) -> OwnRequest[T]:
        """Send a request whose `id` is a `new_id`. It has ended at once if the server has."""
        request = OwnRequest(message["id"], of, on_progress)
        with self._lock:
            if (problem := self._problem) is None:
                self._open[request.id] = request
        if problem is None:
            self._send(line_of(message))
        else:
            request.end.set_exception(ServerGone(problem))
        return request

    @property
    def open(self) -> list[OwnRequest[T]]:
        """The requests that have not ended."""
        with self._lock:
            return list(self._open.values())

    def take(self, message: Message) -> OwnRequest[T] | bool:
        """Take a message of the server. Return the request that it ends, else whether it belongs to one, also
        to one that has ended before."""
        if not self._count or not message.has(self.mark):
            return False
        fields = message.fields or {}
        if message.problem:  # the request whose id is in it will get no other answer
            found = re.search(re.escape(self.mark) + rb"[0-9]{1,18}", message.whole)
            id = "" if found is None else found[0].decode()
        elif text_at(fields, "method") is not None:
            params = object_at(fields, "params")
            token = text_at(params, "progressToken") or ""
            request = self._open.get(token)
            if request is not None and request.on_progress is not None:
                request.on_progress(_progress_text(params))
            return token.startswith(self._mark)
        else:
            id = text_at(fields, "id") or ""
        request = self._ended(id)
        if request is None:
            return id.startswith(self._mark)
        request.end.set_result(message)
        return request

    def cancel(self, request: OwnRequest[T], reason: str = "") -> None:
        """Take a request back that has not ended."""
        if self._ended(request.id) is not None:
            params = {"requestId": request.id, **({"reason": reason} if reason else {})}
            self._send(line_of({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))
            request.end.set_exception(CallCancelled(reason))

    def server_ended(self, problem: str) -> list[OwnRequest[T]]:
        """End all requests, and those that begin later. Return those that were open."""
        with self._lock:
            self._problem = problem
            requests, self._open = list(self._open.values()), {}
        for request in requests:
            request.end.set_exception(ServerGone(problem))
        return requests

    def _ended(self, id: str) -> OwnRequest[T] | None:
        with self._lock:
            return self._open.pop(id, None)


def is_own_id(id: bytes | None) -> bool:
    """Return whether an id, as JSON, is one of ours."""
    return id is not None and id.startswith(f'"{OWN_ID}'.encode())


def ask(
    requests: OwnRequests[None],
    method: str,
    params: Mapping[str, Any],
    meta: Mapping[str, Raw],
    on_progress: OnProgress | None = None,
) -> OwnRequest[None]:
    """Send a request for one of the host. `meta` is that of the host's, of which the protocol's own part goes
    with ours."""
    id = requests.new_id()
    own: dict[str, Any] = {name: value for name, value in meta.items() if name.startswith(PROTOCOL)}
    if on_progress is not None:
        own["progressToken"] = id
    sent = {**params, "_meta": own} if own else params
    return requests.begin({"jsonrpc": "2.0", "id": id, "method": method, "params": sent}, None, on_progress)


def _progress_text(params: Mapping[str, Raw]) -> str:
    message = text_at(params, "message")
    if message:
        return message
    try:
        done, total = (
            msgspec.json.decode(params.get(name, Raw(b"null")), type=float | None)
            for name in ("progress", "total")
        )
    except msgspec.MsgspecError:
        return ""
    return "" if done is None else f"{done:g}" if total is None else f"{done:g} of {total:g}"
