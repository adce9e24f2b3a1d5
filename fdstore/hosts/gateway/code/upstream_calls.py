"""Requests of the gateway's own to a server, on the connection that the host uses.

Their ids are texts that no host makes up, so an answer to one is told apart from what the host is owed. The
id is the token of progress too.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager
from functools import partial
from itertools import count
from secrets import token_hex
from time import monotonic
from typing import Any, TypeAlias

import msgspec
from msgspec import Raw

from fdstore.hosts.gateway.json_parts import encode, object_at, text_at
from fdstore.hosts.gateway.json_scan import Buffer
from fdstore.hosts.gateway.messages import Message, error_answer
from fdstore.hosts.gateway.paged_list import OWN_REQUEST_S, PagedList

PROTOCOL = "io.modelcontextprotocol/"
"""The prefix of the names of the protocol's own metadata; since 2026-07-28 each request has its version."""

OWN_ID = "fdstore-"
"""The begin of the ids of our requests."""

OnProgress = Callable[[str], None]
"""Called with what a server says of a call that runs."""


EndedBy: TypeAlias = Callable[[Callable[[], None]], AbstractContextManager[None]]
"""Makes a block in which the end of something calls a function."""

TOO_LATE = "no answer in time"


class ServerGone(Exception):
    """The server will not answer any more; the text says why."""


class CallCancelled(Exception):
    """The request was taken back."""


class UpstreamCall:
    """A request without its answer yet. `answer` is the message that answers it; it raises `ServerGone` and
    `CallCancelled`."""

    def __init__(self, id: str, on_progress: OnProgress | None) -> None:
        self.id = id
        self.answer: Future[Message] = Future()
        self.on_progress = on_progress


class UpstreamCalls:
    """The requests on one connection. `send` passes a line on to the server."""

    def __init__(self, send: Callable[[Buffer], object]) -> None:
        self._send = send
        self._mark = f"{OWN_ID}{token_hex(8)}-"
        self._mark_bytes = self._mark.encode()
        self._numbers = count(1)
        self._open: dict[str, UpstreamCall] = {}
        self._lock = threading.Lock()
        self._problem = ""
        self._has_begun = False

    def begin(
        self,
        method: str,
        params: Mapping[str, Any],
        meta: Mapping[str, Raw],
        on_progress: OnProgress | None = None,
    ) -> UpstreamCall:
        """Send a request. `meta` is that of the host's request, of which the protocol's own part goes with
        ours."""
        call = UpstreamCall(f"{self._mark}{next(self._numbers)}", on_progress)
        with self._lock:
            problem = self._problem
            if not problem:
                self._has_begun = True
                self._open[call.id] = call
        if problem:
            call.answer.set_exception(ServerGone(problem))
            return call
        own: dict[str, Any] = {name: value for name, value in meta.items() if name.startswith(PROTOCOL)}
        if on_progress is not None:
            own["progressToken"] = call.id
        sent = {**params, "_meta": own} if own else dict(params)
        request = {"jsonrpc": "2.0", "id": call.id, "method": method, "params": sent}
        self._send(bytes(encode(request)) + b"\n")
        return call

    def whole_list(
        self, method: str, meta: Mapping[str, Raw], ended_by: EndedBy, limit_s: float = OWN_REQUEST_S
    ) -> PagedList:
        """Return a list with all pages that come within `limit_s`; its `problems` say why there are no more.
        Raises `ServerGone`, and `CallCancelled` once what it is for has ended."""
        listed = PagedList(method)
        until = monotonic() + limit_s
        params: dict[str, Any] = {}
        while True:
            call = self.begin(method, params, meta)
            try:
                with ended_by(partial(self.cancel, call, "the host cancelled the call")):
                    answer = call.answer.result(max(0.0, until - monotonic()))
            except TimeoutError:
                self.cancel(call, TOO_LATE)
                listed.problems.append(f"no answer within {limit_s:g} s")
                return listed
            cursor = listed.take(answer.fields or {})
            if cursor is None:
                return listed
            params = {"cursor": cursor}

    def take(self, message: Message) -> bool:
        """Take a message of the server if it belongs to one of these requests, also to one that was taken
        back. Return whether it does."""
        if not self._has_begun or not message.has(self._mark_bytes):
            return False
        if message.problem:
            return self._take_unreadable(message)
        found = message.fields or {}
        if "method" in found:
            return self._take_progress(object_at(found, "params"))
        id = text_at(found, "id") or ""
        with self._lock:
            call = self._open.pop(id, None)
        if call is not None:
            _settle(call, message)
        return id.startswith(self._mark)

    def _take_unreadable(self, message: Message) -> bool:
        """Fail the request whose id is in a message that cannot be read. Return whether there is one."""
        found = re.search(re.escape(self._mark_bytes) + rb"[0-9]{1,18}", message.whole)
        with self._lock:
            call = None if found is None else self._open.pop(found[0].decode(), None)
        if call is not None:
            said = f"the answer of the server cannot be read: {message.problem}"
            _settle(call, Message(error_answer(encode(call.id), said)))
        return found is not None

    def _take_progress(self, params: Mapping[str, Raw]) -> bool:
        token = text_at(params, "progressToken") or ""
        call = self._open.get(token)
        if call is not None and call.on_progress is not None:
            call.on_progress(_progress_text(params))
        return token.startswith(self._mark)

    def cancel(self, call: UpstreamCall, reason: str) -> None:
        """Take a request back."""
        with self._lock:
            if self._open.pop(call.id, None) is None:
                return
        params = {"requestId": call.id, "reason": reason}
        note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
        self._send(bytes(encode(note)) + b"\n")
        _settle(call, CallCancelled(reason))

    def end(self, problem: str) -> None:
        """Fail all requests: the server answers no more."""
        with self._lock:
            self._problem = problem
            calls, self._open = list(self._open.values()), {}
        for call in calls:
            _settle(call, ServerGone(problem))


def is_own_id(id: bytes | None) -> bool:
    """Return whether an id, as JSON, is one of ours."""
    return id is not None and id.startswith(f'"{OWN_ID}'.encode())


def _settle(call: UpstreamCall, answer: Message | Exception) -> None:
    if isinstance(answer, Exception):
        call.answer.set_exception(answer)
    else:
        call.answer.set_result(answer)


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
