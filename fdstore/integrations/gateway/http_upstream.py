"""Relay between a host, on standard input and output, and an MCP server by HTTP.

Each message of the host is one POST; requests are sent on threads of their own, since an answer may take as
long as it needs. Streams that break off before the answer are continued from the last event. In the eras with
`initialize` the session's id and version are sent along, and a GET listens to what the server says unasked. A
server that was restarted has lost the session; then a new one is begun with the host's own `initialize`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from typing import Any

import httpx2
import msgspec

from fdstore.integrations.gateway.descriptors import Descriptors
from fdstore.integrations.gateway.host_connection import HostConnection, background_thread
from fdstore.integrations.gateway.json_parts import parts_of, string_of
from fdstore.integrations.gateway.rewriting import error_answer
from fdstore.integrations.gateway.sse import EventSplitter, data_of, field_of

CONNECT_S = 10.0
RECONNECT_S = 1.0
"""The pause before a broken stream is continued, unless the server asks for another."""
MAX_RECONNECT_S = 300.0
SESSION = "mcp-session-id"
INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
VERSION_META = "io.modelcontextprotocol/protocolVersion"
NAME_FIELDS = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""Methods whose requests name what they want in a header, too, since 2026-07-28."""


class HttpUpstream:
    """The relay of one host and one server by HTTP.

    headers             sent with every request; none goes to another address than `url`
    host_in, host_out   file descriptors
    """

    def __init__(
        self,
        url: str,
        descriptors: Descriptors,
        headers: Mapping[str, str],
        *,
        host_in: int = 0,
        host_out: int = 1,
    ) -> None:
        self._url = url
        self._gone = threading.Event()
        self._host = HostConnection(
            descriptors, self._send, self._gone.set, host_in=host_in, host_out=host_out
        )
        self._client = httpx2.Client(
            headers={**headers, "Accept-Encoding": "identity"},
            timeout=httpx2.Timeout(None, connect=CONNECT_S),
            limits=httpx2.Limits(),
            follow_redirects=False,  # the headers are for this server
        )
        self._session: dict[str, str] = {}
        self._initialize = b""
        self._renewing = threading.Lock()
        self._is_listening = False

    def run(self) -> int:
        """Relay until the host leaves and has its answers. Return the exit code."""
        background_thread(self._host.read, "host").start()
        self._gone.wait()
        while self._host.has_jobs() and self._host.can_answer():
            self._host.wait_for_a_job(RECONNECT_S)
        if SESSION in self._session:
            with suppress(httpx2.HTTPError, UnicodeError):  # the server ends the session by itself
                self._client.delete(self._url, headers=self._session, timeout=CONNECT_S)
        return 0

    def _send(self, line: bytes) -> None:
        """Send a message of the host. One that expects no answer is sent before the next one is read."""
        if not line.strip():
            return
        message = _Sent.of(line)
        if message.is_request:
            self._host.begin(lambda: self._post(line, message))
        else:
            self._post(line, message)

    def _post(self, line: bytes, message: _Sent) -> None:
        if message.method == "initialize":
            self._initialize = line
        session = self._session.get(SESSION)
        try:
            with self._stream(line, message) as response:
                if message.method == "initialize" and SESSION in response.headers:
                    self._session[SESSION] = response.headers[SESSION]
                is_lost = response.status_code == 404 and session is not None and not message.is_repeated
                if not response.is_success and not is_lost:
                    self._refused(response, message)
                    return
                last_event = None if is_lost else self._deliver_all(response, message)
            if is_lost and session is not None:
                message.is_repeated = True
                self._renew(session)
                self._post(line, message)
                return
            while message.is_request and not message.is_answered and last_event is not None:
                last_event = self._continue(message, last_event)
        except httpx2.HTTPError as error:
            self._fail(message, f"the MCP server cannot be reached: {type(error).__name__}: {error}")
            return
        except Exception as error:  # noqa: BLE001  an odd header or id of a server must cost no other message
            self._fail(message, f"the MCP server cannot be used: {type(error).__name__}: {error}")
            return
        if message.is_request and not message.is_answered:
            self._fail(message, "the MCP server ended the response without an answer")
        if message.method == "notifications/initialized" and not self._is_listening:
            self._is_listening = True
            background_thread(self._listen, "listen").start()

    def _stream(self, line: bytes, message: _Sent) -> AbstractContextManager[httpx2.Response]:
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            **self._session,
            **message.headers(),
        }
        return self._client.stream("POST", self._url, content=line.strip(), headers=headers)

    def _renew(self, lost: str) -> None:
        """Begin a new session in place of one that the server does not know any more, as after a restart.
        Raises `httpx2.HTTPError`."""
        with self._renewing:
            if self._session.get(SESSION) != lost:
                return  # another request has done it
            del self._session[SESSION]
            with self._stream(self._initialize, _Sent.of(self._initialize)) as response:
                response.read()
                if SESSION in response.headers:
                    self._session[SESSION] = response.headers[SESSION]
            with self._stream(INITIALIZED, _Sent.of(INITIALIZED)) as response:
                response.read()

    def _continue(self, message: _Sent, last_event: bytes) -> bytes | None:
        """Continue a stream that ended before the answer. Return the id of its last event."""
        self._gone.wait(message.retry_s)
        headers = {"Accept": "text/event-stream", "Last-Event-ID": last_event.decode(), **self._session}
        with self._client.stream("GET", self._url, headers=headers) as response:
            if not response.is_success:
                self._refused(response, message)
                return None
            return self._deliver_all(response, message) or last_event

    def _listen(self) -> None:
        """Pass on what the server says unasked, until the host leaves; many servers offer no such stream."""
        unasked = _Sent("", None, {})
        last_event: bytes | None = None
        while not self._gone.is_set():
            headers = {"Accept": "text/event-stream", **self._session}
            if last_event is not None:
                headers["Last-Event-ID"] = last_event.decode()
            try:
                with self._client.stream("GET", self._url, headers=headers) as response:
                    if 400 <= response.status_code < 500:
                        return
                    if response.is_success:
                        last_event = self._deliver_all(response, unasked) or last_event
            except UnicodeError:  # an id that no header can have
                return
            except httpx2.HTTPError:
                pass
            self._gone.wait(unasked.retry_s)

    def _deliver_all(self, response: httpx2.Response, message: _Sent) -> bytes | None:
        """Pass the messages of a response on. Return the id of the last event of a stream."""
        if _media_type(response) != "text/event-stream":
            body = response.read()
            if body.strip():
                self._deliver(body, message)
            return None
        last_event = None
        try:
            for event in _events(response):
                last_event = field_of(event, b"id") or last_event
                retry_ms = field_of(event, b"retry")
                if retry_ms is not None and retry_ms.isdigit():
                    message.retry_s = min(int(retry_ms[:9]) / 1000, MAX_RECONNECT_S)
                if data := data_of(event):
                    self._deliver(data, message)
                if message.is_answered:
                    break  # a stream that was continued may stay open
        except httpx2.HTTPError:
            if last_event is None:
                raise
        return last_event

    def _deliver(self, data: bytes, message: _Sent) -> None:
        """Pass a message on as one line: line breaks outside strings are blanks, and none are in strings."""
        line = data.strip().replace(b"\r", b" ").replace(b"\n", b" ")
        found = parts_of(line) or {}
        if "id" in found and "method" not in found and bytes(found["id"]) == message.id:
            message.is_answered = True
            if message.method == "initialize":
                version = string_of((parts_of(found.get("result", b"")) or {}).get("protocolVersion", b""))
                if version is not None:
                    self._session["mcp-protocol-version"] = version
        self._host.answer(line + b"\n")

    def _refused(self, response: httpx2.Response, message: _Sent) -> None:
        """Pass on the error of the server, else one that names the status."""
        body = response.read()
        error = parts_of(body) or {}
        if "error" in error and message.id is not None and bytes(error.get("id", b"")) == message.id:
            self._deliver(body, message)
            return
        said = string_of((parts_of(error.get("error", b"")) or {}).get("message", b""))
        said = said or response.reason_phrase
        self._fail(message, f"the MCP server refused the request: HTTP {response.status_code}: {said}")

    def _fail(self, message: _Sent, problem: str) -> None:
        if message.id is not None and not message.is_answered:
            message.is_answered = True
            self._host.answer(error_answer(msgspec.Raw(message.id), problem) + b"\n")


class _Sent:
    """A message of the host: its method, its id as it was written, and what is known of its answer."""

    def __init__(self, method: str, id: bytes | None, params: Mapping[str, msgspec.Raw]) -> None:
        self.method, self.id, self._params = method, id, params
        self.is_answered = self.is_repeated = False
        self.retry_s = RECONNECT_S

    @classmethod
    def of(cls, line: bytes) -> _Sent:
        fields = parts_of(line) or {}
        method = string_of(fields.get("method", b"")) or ""
        id = bytes(fields["id"]) if "id" in fields and method else None
        return cls(method, id, parts_of(fields.get("params", b"")) or {})

    @property
    def is_request(self) -> bool:
        return self.id is not None

    def headers(self) -> dict[str, str]:
        """Return the headers of this message: since 2026-07-28 each one has its version, method and name."""
        meta = parts_of(self._params.get("_meta", b"")) or {}
        version = string_of(meta.get(VERSION_META, b""))
        if version is None:
            return {}
        headers = {"Mcp-Protocol-Version": version, "Mcp-Method": self.method}
        name: Any = string_of(self._params.get(NAME_FIELDS.get(self.method, ""), b""))
        if name is not None:
            headers["Mcp-Name"] = _header_value(name)
        return headers


def _header_value(text: str) -> str:
    """Return a text as a value of a header; one with other than printable ASCII is encoded."""
    if text.isascii() and text.isprintable() and text == text.strip():
        return text
    from base64 import b64encode

    return f"=?base64?{b64encode(text.encode()).decode()}?="


def _media_type(response: httpx2.Response) -> str:
    return str(response.headers.get("content-type", "")).partition(";")[0].strip().lower()


def _events(response: httpx2.Response) -> Iterator[bytes]:
    splitter = EventSplitter()
    for chunk in response.iter_bytes():
        yield from splitter.feed(chunk)
