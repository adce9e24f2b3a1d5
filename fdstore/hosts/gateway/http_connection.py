"""The connection to an MCP server by HTTP: messages go to it, and what it says comes back.

Each message is a task, since an answer may take as long as it needs. What expects none, as `initialized`, is
taken by the server before the next message is sent, unless the server holds it. Streams that break off before
the answer are continued from the last event. In the eras with `initialize` the session's id and version are
sent along, and a GET listens to what the server says unasked. A server that was restarted has lost the
session; then a new one is begun with the host's own `initialize`, and listened to.

A host takes a request back by `notifications/cancelled`. Since 2026-07-28 servers by HTTP learn it from the
end of the response stream, and before from the notification; either way nothing waits for the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any

import httpx2
import msgspec

from fdstore.hosts.gateway.host_connection import background_thread
from fdstore.hosts.gateway.json_parts import Parts, items_of, object_at, parts_of, text_at
from fdstore.hosts.gateway.json_scan import Buffer
from fdstore.hosts.gateway.json_texts import LONG_BYTES
from fdstore.hosts.gateway.messages import MAX_MESSAGE_BYTES, TOO_LONG, Message, error_answer
from fdstore.hosts.gateway.own_requests import OWN_REQUEST_S, is_own_id
from fdstore.hosts.gateway.rewriting import RequestKey, key_of
from fdstore.hosts.gateway.sse import EventSplitter, data_of, field_of
from fdstore.http.client import open_client

CONNECT_S = 10.0
IN_ORDER_S = 2.0
"""The time for which messages wait until the server has taken an earlier one that expects no answer."""
RECONNECT_S = 1.0
"""The pause before a broken stream is continued, unless the server asks for another."""
MIN_RECONNECT_S, MAX_RECONNECT_S = 0.1, 300.0
EVENT_STREAM = "text/event-stream"
SESSION = "mcp-session-id"
INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
VERSION_META = "io.modelcontextprotocol/protocolVersion"

NAME_FIELDS = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""Methods whose requests name what they want in a header, too, since 2026-07-28."""


class HttpConnection:
    """The connection of one host to one server, in one event loop.

    client    sends the requests; what it adds goes to `url` alone
    deliver   takes each message of the server, on a thread of its own: it may wait
    headers   sent with every request, as that of the session
    """

    def __init__(
        self,
        url: str | httpx2.URL,
        client: httpx2.AsyncClient,
        deliver: Callable[[Message], None],
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._url, self._client = url, client
        self._take_answer = deliver
        self._under_way: dict[asyncio.Task[None], _Sent] = {}
        self._ahead: asyncio.Task[Any] | None = None
        self._session = dict(headers or {})
        self._initialize = b""
        self._renewing = asyncio.Lock()
        self._listening: asyncio.Task[None] | None = None

    @property
    def open_requests(self) -> list[asyncio.Task[None]]:
        """The requests without their answers."""
        return [task for task, message in self._under_way.items() if message.is_request]

    async def end_session(self) -> None:
        """Let the server have what the host said last, and tell it that the session is over, if there is
        one."""
        if self._listening is not None:
            self._listening.cancel()
        if self._ahead is not None:
            await asyncio.wait({self._ahead})
        for task in self._under_way:
            task.cancel()
        if SESSION in self._session:
            with suppress(httpx2.HTTPError, UnicodeError):  # the server ends the session by itself
                await self._client.delete(self._url, headers=self._session, timeout=CONNECT_S)

    def send(self, line: bytes) -> None:
        """Begin to send a message of the host, or those of a batch one by one. What the server answers is
        delivered."""
        fields = parts_of(line)
        batch = None if fields is not None else items_of(line)
        if batch is None:
            self._begin(line, fields or {})
        for each in batch or ():
            self._begin(bytes(each), parts_of(each) or {})

    def _begin(self, line: bytes, fields: Parts) -> None:
        message = _Sent.of(fields)
        if (key := message.cancelled_key) is not None:
            message.takes_back = [task for task, sent in self._under_way.items() if sent.key == key]
            if any(self._under_way[task].version is not None for task in message.takes_back):
                message.take_back()
                return
        task = self._start(self._send_after(self._ahead, line, message), message)
        if not message.is_request:
            self._ahead = asyncio.create_task(asyncio.wait({task}, timeout=IN_ORDER_S))

    def _start(self, sending: Coroutine[Any, Any, None], message: _Sent) -> asyncio.Task[None]:
        task = asyncio.create_task(sending)
        self._under_way[task] = message
        task.add_done_callback(self._under_way.pop)
        return task

    async def _send_after(self, ahead: asyncio.Task[Any] | None, line: bytes, message: _Sent) -> None:
        if ahead is not None:
            await asyncio.wait({ahead})
        await self._post(line, message)
        message.take_back()
        if message.method == "notifications/initialized" and self._listening is None:
            self._listen_anew()

    async def _post(self, line: bytes, message: _Sent) -> None:
        if message.method == "initialize":
            self._initialize = line
        session = self._session.get(SESSION)
        try:
            async with self._stream(line, message) as response:
                if message.method == "initialize" and SESSION in response.headers:
                    self._session[SESSION] = response.headers[SESSION]
                is_lost = response.status_code == 404 and session is not None and not message.is_repeated
                is_lost = is_lost and bool(self._initialize)
                if not response.is_success and not is_lost:
                    await self._refused(response, message)
                    return
                last_event = None if is_lost else await self._deliver_all(response, message)
            if is_lost and session is not None:
                message.is_repeated = True
                await self._renew(session)
                await self._post(line, message)
                return
            while message.waits and last_event is not None:
                last_event = await self._continue(message, last_event)
        except httpx2.HTTPError as error:
            await self._fail(message, f"the MCP server cannot be reached: {type(error).__name__}: {error}")
            return
        except Exception as error:  # noqa: BLE001  an odd header or id of a server must cost no other message
            await self._fail(message, f"the MCP server cannot be used: {type(error).__name__}: {error}")
            return
        if message.waits:
            await self._fail(message, "the MCP server ended the response without an answer")
        elif message.has_unreadable and is_own_id(message.id):  # what the host got is no answer to it
            await self._fail(message, "the answer of the MCP server cannot be read")

    def _stream(self, line: bytes, message: _Sent) -> AbstractAsyncContextManager[httpx2.Response]:
        headers = {
            "Content-Type": "application/json",
            "Accept": f"application/json, {EVENT_STREAM}",
            **self._session,
            **message.headers(),
        }
        silent_s = None if message.is_request else OWN_REQUEST_S
        limits = httpx2.Timeout(silent_s, connect=CONNECT_S)
        return self._client.stream("POST", self._url, content=line.strip(), headers=headers, timeout=limits)

    async def _renew(self, lost: str) -> None:
        """Begin a new session in place of one that the server does not know any more, as after a restart.
        Raises `httpx2.HTTPError`."""
        async with self._renewing:
            if self._session.get(SESSION) != lost:
                return  # another request has done it
            del self._session[SESSION]
            try:
                async with asyncio.timeout(OWN_REQUEST_S):
                    begins = _Sent.of(parts_of(self._initialize) or {})
                    async with self._stream(self._initialize, begins) as response:
                        if SESSION in response.headers:
                            self._session[SESSION] = response.headers[SESSION]
                        await _first_answer(response)
            except TimeoutError as error:
                self._session.setdefault(SESSION, lost)  # the next request tries again
                raise httpx2.ReadTimeout(f"it begins no session within {OWN_REQUEST_S:g} s") from error
            has_begun = _Sent.of(parts_of(INITIALIZED) or {})
            has_begun.is_repeated = True  # it begins no further session
            await asyncio.wait(
                {self._start(self._post(INITIALIZED, has_begun), has_begun)}, timeout=IN_ORDER_S
            )
            if self._listening is not None:
                self._listen_anew()

    async def _continue(self, message: _Sent, last_event: bytes) -> bytes | None:
        """Continue a stream that ended before the answer. Return the id of its last event."""
        await asyncio.sleep(message.retry_s)
        headers = {"Accept": EVENT_STREAM, "Last-Event-ID": last_event.decode(), **self._session}
        async with self._client.stream("GET", self._url, headers=headers) as response:
            if not response.is_success:
                await self._refused(response, message)
                return None
            newest = await self._deliver_all(response, message) or last_event
            return newest if media_type(response) == EVENT_STREAM else None

    def _listen_anew(self) -> None:
        """Begin to listen to what the server says unasked, in the session of now."""
        if self._listening is not None:
            self._listening.cancel()
        self._listening = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        """Pass on what the server says unasked; many servers offer no such stream."""
        unasked = _Sent("", None, {})
        last_event: bytes | None = None
        while True:
            headers = {"Accept": EVENT_STREAM, **self._session}
            if last_event is not None:
                headers["Last-Event-ID"] = last_event.decode()
            try:
                async with self._client.stream("GET", self._url, headers=headers) as response:
                    if response.is_success and media_type(response) == EVENT_STREAM:
                        last_event = await self._deliver_all(response, unasked) or last_event
                    elif response.status_code < 500:
                        return
            except UnicodeError:  # an id that no header can have
                return
            except httpx2.HTTPError:
                pass
            await asyncio.sleep(unasked.retry_s)

    async def _deliver_all(self, response: httpx2.Response, message: _Sent) -> bytes | None:
        """Pass the messages of a response on. Return the id of the last event of a stream."""
        if media_type(response) != EVENT_STREAM:
            body = await body_of(response.aiter_bytes())
            if body is None:
                await self._fail(message, TOO_LONG)
            elif len(body) > LONG_BYTES or body.strip():
                await self._deliver(body, message)
            return None
        last_event = None
        try:
            async for event in _events(response, message.id):
                last_event = field_of(event, b"id") or last_event
                retry_ms = field_of(event, b"retry")
                if retry_ms is not None and retry_ms.isdigit():
                    asked_s = int(retry_ms[:9]) / 1000
                    message.retry_s = min(max(asked_s, MIN_RECONNECT_S), MAX_RECONNECT_S)
                if data := data_of(event):
                    await self._deliver(data, message)
                if message.is_answered:
                    break  # a stream that was continued may stay open
        except httpx2.HTTPError:
            if last_event is None:
                raise
        return last_event

    async def _deliver(self, data: Buffer, message: _Sent) -> None:
        """Pass a message on as one line."""
        answer = await read_message(data)
        found = answer.fields or {}
        # what cannot be read is taken for the answer: the host gets it, and no error beside it
        message.has_unreadable |= bool(answer.problem)
        if "method" not in found and message.is_id(found.get("id")):
            message.is_answered = True
            if message.method == "initialize":
                version = text_at(found, "result", "protocolVersion")
                if version is not None:
                    self._session["mcp-protocol-version"] = version
        await on_a_thread(lambda: self._take_answer(answer))

    async def _refused(self, response: httpx2.Response, message: _Sent) -> None:
        """Pass on the error of the server, else one that names the status."""
        body = await body_of(response.aiter_bytes()) or bytearray()
        error = Message(body).fields or {}
        if "error" in error and message.is_id(error.get("id")):
            await self._deliver(body, message)
            return
        said = text_at(error, "error", "message")
        said = said or response.reason_phrase
        await self._fail(message, f"the MCP server refused the request: HTTP {response.status_code}: {said}")

    async def _fail(self, message: _Sent, problem: str) -> None:
        if message.id is not None and not message.is_answered:
            message.is_answered = True
            error = Message(error_answer(msgspec.Raw(message.id), problem), b"\n")
            await on_a_thread(lambda: self._take_answer(error))


class _Sent:
    """A message of the host: its method, its id as it was written, and what is known of its answer.
    `takes_back`: the requests that end once it is sent."""

    def __init__(self, method: str, id: bytes | None, params: Mapping[str, msgspec.Raw]) -> None:
        self.method, self.id, self._params = method, id, params
        self.takes_back: list[asyncio.Task[None]] = []
        self.is_answered = self.is_repeated = self.has_unreadable = False
        self.retry_s = RECONNECT_S

    @classmethod
    def of(cls, fields: Parts) -> _Sent:
        method = text_at(fields, "method") or ""
        id = bytes(fields["id"]) if "id" in fields and method else None
        return cls(method, id, object_at(fields, "params"))

    def take_back(self) -> None:
        """End the requests that it takes back, and their response streams."""
        for task in self.takes_back:
            task.cancel()

    @property
    def is_request(self) -> bool:
        return self.id is not None

    @property
    def waits(self) -> bool:
        """Return whether it is a request and nothing came that can be the answer."""
        return self.is_request and not self.is_answered and not self.has_unreadable

    def is_id(self, other: msgspec.Raw | None) -> bool:
        """Return whether an answer with this id belongs to it."""
        if other is None or self.id is None:
            return False
        return bytes(other) == self.id or (self.key is not None and key_of(other) == self.key)

    @property
    def key(self) -> RequestKey | None:
        return key_of(self.id) if self.id is not None else None

    @property
    def cancelled_key(self) -> RequestKey | None:
        """The request that this message takes back."""
        if self.method != "notifications/cancelled" or "requestId" not in self._params:
            return None
        return key_of(self._params["requestId"])

    @property
    def version(self) -> str | None:
        """The version of the protocol, which each message names since 2026-07-28."""
        return text_at(self._params, "_meta", VERSION_META)

    def headers(self) -> dict[str, str]:
        """Return the headers of this message: since 2026-07-28 each one has its version, method and name."""
        if self.version is None:
            return {}
        headers = {"Mcp-Protocol-Version": self.version, "Mcp-Method": self.method}
        name = text_at(self._params, NAME_FIELDS.get(self.method, ""))
        if name is not None:
            headers["Mcp-Name"] = _header_value(name)
        return headers


def upstream_client(**options: Any) -> httpx2.AsyncClient:
    """Return a client for requests to one server: an answer may take as long as it needs, and no redirect is
    followed, since the headers are for this server. For `options` see `open_client`."""
    return open_client(timeout=httpx2.Timeout(None, connect=CONNECT_S), follow_redirects=False, **options)


async def read_message(data: Buffer) -> Message:
    """Return a message as one line. A long one is read on a thread."""

    def read() -> Message:
        message = Message(data).on_one_line()
        _ = message.problem
        return message

    return await asyncio.to_thread(read) if len(data) > LONG_BYTES else read()


def _header_value(text: str) -> str:
    """Return a text as a value of a header; one with other than printable ASCII is encoded."""
    if text.isascii() and text.isprintable() and text == text.strip():
        return text
    from base64 import b64encode

    return f"=?base64?{b64encode(text.encode()).decode()}?="


def media_type(response: httpx2.Response) -> str:
    """Return the media type of a response, without its parameters."""
    return str(response.headers.get("content-type", "")).partition(";")[0].strip().lower()


async def _first_answer(response: httpx2.Response) -> None:
    """Wait for the answer in a response, which as a stream may stay open."""
    if media_type(response) != EVENT_STREAM:
        await response.aread()
        return
    async for event in _events(response, None):
        if data_of(event):
            return


async def body_of(chunks: AsyncIterator[bytes]) -> bytearray | None:
    """Return a whole body; None for one that is too long."""
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > MAX_MESSAGE_BYTES:
            return None
    return body


async def _events(response: httpx2.Response, id: bytes | None) -> AsyncIterator[bytes | bytearray]:
    splitter = EventSplitter(None if id is None else msgspec.Raw(id))
    async for chunk in response.aiter_bytes():
        for event in splitter.feed(chunk):
            yield event


async def on_a_thread(body: Callable[[], None]) -> None:
    """Run what may wait for the host. The thread is a daemon, so that no host that does not read keeps the
    program alive."""
    done: Future[None] = Future()
    done.set_running_or_notify_cancel()  # one that has begun goes on, whoever waits for it

    def run() -> None:
        try:
            body()
        except BaseException as error:  # noqa: BLE001  it belongs to who waits
            done.set_exception(error)
        else:
            done.set_result(None)

    background_thread(run, "answer").start()
    await asyncio.wrap_future(done)
