"""A proxy in front of an object store that refuses, hangs, cuts bodies and gives wrong ones.

    client --- request --> proxy ---> S3 server       a fault may answer in the server's place,
    client <-- answer ---- proxy <--- S3 server       or change what the server has answered

A fault is an async function of a request and of `forward`, which asks the server. It returns the answer that
the client gets, or None: then the connection breaks without one.

    inject(fault, times, when)   the next requests that `when` picks meet the fault
    at(number, moment, act)      `act` is called before the server sees the n-th request from now, or after it
                                 has done it: tests kill the client there
    refuse(), accept()           no connection is taken; connections are taken again at the same port
    requests, bytes_served       what arrived and what was answered so far; `forget()` empties both
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from types import TracebackType
from typing import Self
from urllib.parse import unquote, urlsplit

from tests.loop_thread import LoopThread

HEAD_BYTES = 1 << 17
Headers = dict[str, str]
"""By names in lower case."""


@dataclass(frozen=True)
class StoreRequest:
    """One request to the object store."""

    method: str
    target: str
    headers: Headers = field(repr=False)
    body: bytes = field(repr=False, default=b"")

    @property
    def path(self) -> str:
        """The bucket and the name of the object."""
        return unquote(urlsplit(self.target).path)

    @property
    def query(self) -> str:
        return urlsplit(self.target).query

    @property
    def range(self) -> str:
        """Such as `bytes=3-8`; empty if the whole object is asked for."""
        return self.headers.get("range", "")


@dataclass(frozen=True)
class StoreAnswer:
    """What the client gets; the connection breaks after `cut_at` bytes of the body."""

    status: int
    headers: Headers
    body: bytes = b""
    cut_at: int | None = None


Forward = Callable[[StoreRequest], Awaitable[StoreAnswer]]
Fault = Callable[[StoreRequest, Forward], Awaitable[StoreAnswer | None]]
When = Callable[[StoreRequest], bool]


def reads(request: StoreRequest) -> bool:
    """Whether the bytes of an object are asked for."""
    return request.method == "GET" and "list-type" not in request.query and request.path.count("/") > 1


def writes(request: StoreRequest) -> bool:
    """Whether bytes are stored, in one piece or in parts."""
    return request.method == "PUT" or (request.method == "POST" and "delete" not in request.query)


def deletes(request: StoreRequest) -> bool:
    return request.method == "DELETE" or (request.method == "POST" and "delete" in request.query)


def anything(_: StoreRequest) -> bool:
    return True


# --- faults


async def hang(request: StoreRequest, forward: Forward) -> StoreAnswer | None:
    """Never answer."""
    await asyncio.Event().wait()
    return None


async def drop(request: StoreRequest, forward: Forward) -> StoreAnswer | None:
    """Break the connection before the server sees the request."""
    return None


async def lose_answer(request: StoreRequest, forward: Forward) -> StoreAnswer | None:
    """Break the connection after the server has done what was asked."""
    await forward(request)
    return None


async def cut_body(request: StoreRequest, forward: Forward) -> StoreAnswer | None:
    """Break the connection in the middle of the body."""
    answer = await forward(request)
    return replace(answer, cut_at=len(answer.body) // 2)


async def wrong_bytes(request: StoreRequest, forward: Forward) -> StoreAnswer | None:
    """Answer with other bytes, as many and as plausible: other letters in the same lines."""
    answer = await forward(request)
    return replace(answer, body=re.sub(rb"[0-8a-y]", lambda found: bytes([found[0][0] + 1]), answer.body))


async def wrong_bits(request: StoreRequest, forward: Forward) -> StoreAnswer | None:
    """Answer with as many bytes, one of which in the middle has another bit."""
    answer = await forward(request)
    body = bytearray(answer.body)
    if body:
        body[len(body) // 2] ^= 1
    return replace(answer, body=bytes(body))


async def short_body(request: StoreRequest, forward: Forward) -> StoreAnswer | None:
    """Answer with the first half of the bytes as if that were all: the Content-Length is right for it."""
    answer = await forward(request)
    return replace(answer, body=answer.body[: len(answer.body) // 2])


async def short_object(request: StoreRequest, forward: Forward) -> StoreAnswer | None:
    """Answer as if the object had ended in the middle of the range: Content-Range says so, too."""
    answer = await forward(request)
    body = answer.body[: len(answer.body) // 2]
    headers = dict(answer.headers)
    if found := re.match(r"bytes (\d+)-", headers.get("content-range", "")):
        end = int(found[1]) + len(body)
        headers["content-range"] = f"bytes {found[1]}-{end - 1}/{end}"
    return replace(answer, body=body, headers=headers)


async def whole_object(request: StoreRequest, forward: Forward) -> StoreAnswer | None:
    """Answer a request for a range with the whole object, as servers do that know no ranges."""
    headers = {name: value for name, value in request.headers.items() if name != "range"}
    return await forward(replace(request, headers=headers))


def former_version(old: bytes) -> Fault:
    """Return a fault that answers with the bytes of another version of the object."""

    async def answer_former(request: StoreRequest, forward: Forward) -> StoreAnswer | None:
        answer = await forward(request)
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", request.range)
        first, end = (int(found[1]), int(found[2]) + 1) if found else (0, len(old))
        part, headers = old[first:end], dict(answer.headers)
        headers.pop("etag", None)
        if found:
            headers["content-range"] = f"bytes {first}-{first + len(part) - 1}/{len(old)}"
        return StoreAnswer(206 if found else 200, headers, part)

    return answer_former


def refuse_with(status: int, code: str, message: str = "no", retry_after_s: int | None = None) -> Fault:
    """Return a fault that answers with an error of S3."""

    async def answer_error(request: StoreRequest, forward: Forward) -> StoreAnswer | None:
        body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{message}</Message></Error>".encode()
        headers = {"content-type": "application/xml"}
        if retry_after_s is not None:
            headers["retry-after"] = str(retry_after_s)
        return StoreAnswer(status, headers, b"" if request.method == "HEAD" else body)

    return answer_error


slow_down = refuse_with(503, "SlowDown", "Please reduce your request rate.")
slow_down_for_a_second = refuse_with(503, "SlowDown", "Please reduce your request rate.", retry_after_s=1)
expired = refuse_with(403, "ExpiredToken", "The provided token has expired.")
disk_full = refuse_with(
    507, "XMinioStorageFull", "Storage backend has reached its minimum free drive threshold."
)
broken_inside = refuse_with(500, "InternalError", "We encountered an internal error.")


@dataclass
class _Injected:
    fault: Fault
    left: int
    when: When


class ObjectStoreProxy:
    """A proxy for the S3 server at `url` (http://HOST:PORT); clients connect to `self.url`."""

    def __init__(self, url: str, note: Callable[[str], None] = lambda fault: None) -> None:
        self._server_at = urlsplit(url)
        self._note = note
        self._loop = LoopThread("object store proxy")
        self._connections: set[asyncio.StreamWriter] = set()
        self._injected: list[_Injected] = []
        self._acts: dict[tuple[int, str], Callable[[], None]] = {}
        self.requests: list[StoreRequest] = []
        self.bytes_served = 0
        """Bytes of bodies that clients got."""
        self.port = 0
        self._listen()
        self.url = f"http://127.0.0.1:{self.port}"

    def inject(self, fault: Fault, times: int = 1, when: When = anything) -> None:
        """The next `times` requests that `when` picks meet the fault; -1: until `heal`."""
        self._injected.append(_Injected(fault, times, when))

    def heal(self) -> None:
        """No fault is injected any more."""
        self._injected.clear()
        self._acts.clear()

    def at(self, number: int, moment: str, act: Callable[[], None]) -> None:
        """Call `act` `before` the n-th request from now is forwarded, or `after` the server has done it."""
        self._acts[len(self.requests) + number, moment] = act

    def forget(self) -> None:
        """Count requests and bytes from now on."""
        self.requests.clear()
        self.bytes_served = 0

    def refuse(self) -> None:
        """Break all connections and take no new ones, until `accept`."""

        async def stop() -> None:
            self._listener.close()
            for connection in list(self._connections):
                connection.transport.abort()

        self._loop.do(stop())
        self._note("object store refused")

    def accept(self) -> None:
        """Take connections again, at the same port."""
        self._listen()

    def _listen(self) -> None:
        self._listener = self._loop.do(
            asyncio.start_server(self._connected, "127.0.0.1", self.port, limit=HEAD_BYTES)
        )
        self.port = self._listener.sockets[0].getsockname()[1]

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._loop.start(self._serve(reader, writer))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(writer)
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                while (request := await _read_request(reader)) is not None:
                    if not await self._answer(request, writer):
                        return
        finally:
            writer.transport.abort()
            self._connections.discard(writer)

    async def _answer(self, request: StoreRequest, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; return whether the connection goes on."""
        self.requests.append(request)
        number = len(self.requests)
        if act := self._acts.pop((number, "before"), None):
            act()
            return False
        fault = self._pick(request)
        answer = await (fault(request, self._forward) if fault else self._forward(request))
        if act := self._acts.pop((number, "after"), None):
            act()
            return False
        if answer is None:
            return False
        body = answer.body if answer.cut_at is None else answer.body[: answer.cut_at]
        self.bytes_served += len(body)  # before: its reader may look as soon as it has them
        writer.write(_head(request, answer) + body)
        await writer.drain()
        if answer.cut_at is not None:
            while writer.transport.get_write_buffer_size():
                await asyncio.sleep(0.001)
        return answer.cut_at is None

    def _pick(self, request: StoreRequest) -> Fault | None:
        for each in self._injected:
            if each.left and each.when(request):
                each.left -= 1
                self._note(getattr(each.fault, "__name__", "fault").replace("_", " "))
                return each.fault
        return None

    async def _forward(self, request: StoreRequest) -> StoreAnswer:
        at = self._server_at.hostname, self._server_at.port
        reader, writer = await asyncio.open_connection(*at, limit=HEAD_BYTES)
        try:
            kept = {name: value for name, value in request.headers.items() if name != "transfer-encoding"}
            lines = [f"{request.method} {request.target} HTTP/1.1"]
            headers = {**kept, "content-length": str(len(request.body)), "connection": "close"}
            lines += [f"{name}: {value}" for name, value in headers.items()]
            writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + request.body)
            await writer.drain()
            return await _read_answer(reader, request.method)
        finally:
            writer.transport.abort()

    def close(self) -> None:
        """Break all connections and stop listening."""
        self.refuse()
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._note = lambda fault: None
        self.close()


# --- HTTP/1.1, as clients and servers of S3 speak it


async def _read_head(reader: asyncio.StreamReader) -> tuple[str, Headers] | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError as ended:
        if ended.partial:
            raise
        return None
    first, *lines = head.split("\r\n")[:-2]
    pairs = (line.partition(":") for line in lines)
    return first, {name.strip().lower(): value.strip() for name, _, value in pairs}


async def _read_body(reader: asyncio.StreamReader, headers: Headers) -> bytes:
    if "chunked" not in headers.get("transfer-encoding", ""):
        return await reader.readexactly(int(headers.get("content-length", 0)))
    body = b""
    while size := int((await reader.readuntil(b"\r\n")).partition(b";")[0], 16):
        body += await reader.readexactly(size)
        await reader.readexactly(2)
    await reader.readuntil(b"\r\n")
    return body


async def _read_request(reader: asyncio.StreamReader) -> StoreRequest | None:
    head = await _read_head(reader)
    if head is None:
        return None
    method, target, _ = head[0].split(" ", 2)
    return StoreRequest(method, target, head[1], await _read_body(reader, head[1]))


async def _read_answer(reader: asyncio.StreamReader, method: str) -> StoreAnswer:
    head = await _read_head(reader)
    assert head is not None, "the S3 server closed the connection"
    status, headers = int(head[0].split(" ", 2)[1]), head[1]
    if method == "HEAD" or status in (204, 304):
        return StoreAnswer(status, headers)
    body = await _read_body(reader, headers)
    return StoreAnswer(status, {k: v for k, v in headers.items() if k != "transfer-encoding"}, body)


def _head(request: StoreRequest, answer: StoreAnswer) -> bytes:
    headers = {name: value for name, value in answer.headers.items() if name != "connection"}
    if request.method != "HEAD":
        headers["content-length"] = str(len(answer.body))
    reason = HTTPStatus(answer.status).phrase
    lines = [f"HTTP/1.1 {answer.status} {reason}", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")
