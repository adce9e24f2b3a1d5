"""A host with several servers behind one gateway: which server each message goes to, and what the host gets.

Decisions without I/O. For the host there is one server. The tool `list_issues` of the server `github` is
`github__list_issues` for it, prompts alike; resources keep their URIs. Lists are those of all servers, whole.
Messages keep their bytes but for a name or an id: ids of the host's requests stay as they are, requests of
the servers get ids that no two of them share.

Each server is begun as the host begins, with a protocol that has `initialize`; a host that asks
`server/discover` first is told that there is none, and uses `initialize` too. The host gets the oldest of
the servers' protocols. A server that is late to begin joins later, with `notifications/tools/list_changed`.
One that ends leaves the list in the same way, and what it owes is answered with an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from secrets import token_hex
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Raw

from fdstore import __version__
from fdstore.integrations.gateway.json_parts import (
    Parts,
    encode,
    is_null,
    items_of,
    object_at,
    parts_of,
    string_of,
    text_at,
)
from fdstore.integrations.gateway.long_values import LONG_BYTES, Buffer
from fdstore.integrations.gateway.rewriting import MAX_KNOWN, RequestKey, error_answer, key_of

SEPARATOR = "__"
"""Between the name of a server, which has none, and that of its tool."""

EDGE_BYTES = 512
"""The bytes at either end of a long message that hold its method and id: before or after its parameters."""

LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
"""Requests that are put to all servers, and the field of their results."""

CAPABILITIES = ("tools", "prompts", "resources", "logging", "completions")
TOOLS_CHANGED = "notifications/tools/list_changed"
METHOD_NOT_FOUND = -32601
RESOURCE_NOT_FOUND = -32002


class ToServer(msgspec.Struct, frozen=True):
    """Send a line to a server."""

    server: str
    line: Buffer


class ToHost(msgspec.Struct, frozen=True):
    """Send a line to the host."""

    line: Buffer


class Say(msgspec.Struct, frozen=True):
    """Tell the operator."""

    text: str


Step: TypeAlias = ToServer | ToHost | Say
Steps: TypeAlias = Iterator[Step]


class _Server(msgspec.Struct):
    """The known facts of a server; `problem` says why it is gone."""

    state: Literal["new", "begun", "ready", "gone"] = "new"
    about: Parts = {}
    capabilities: Parts = {}
    problem: str = ""


class _Gathered(msgspec.Struct):
    """A request of the host that several servers answer. `waiting` has the ids of ours that are open."""

    id: Raw
    method: str
    waiting: set[str]
    found: dict[str, list[Raw]]


class GroupRouter:
    """The decisions about the messages of one host and its servers, given by their names."""

    def __init__(self, servers: Sequence[str]) -> None:
        self._servers = {name: _Server() for name in servers}
        self._mark = f"fdstore-group-{token_hex(8)}-"
        self._numbers = count(1)
        self._start: _Gathered | None = None
        self._is_answered = self._is_initialized = False
        self._own: dict[str, tuple[str, _Gathered]] = {}
        self._asked: dict[RequestKey, tuple[str, Raw]] = {}
        self._of_servers: dict[str, tuple[str, Raw]] = {}
        self._owners: dict[str, str] = {}
        self._templates: dict[str, str] = {}

    # --- from the host

    def from_host(self, line: Buffer) -> Steps:
        """Decide about a line of the host."""
        fields = parts_of(line)
        if fields is None:
            for each in items_of(line) or ():
                yield from self.from_host(bytes(each))
            return
        method, id = text_at(fields, "method"), fields.get("id")
        if method is None:
            yield from self._response(fields)
        elif id is None:
            yield from self._notification(method, fields, line)
        else:
            yield from self._request(method, id, fields, line)

    def _request(self, method: str, id: Raw, fields: Parts, line: Buffer) -> Steps:
        params = object_at(fields, "params")
        if method == "initialize":
            yield from self._begin(id, fields)
        elif method == "ping":
            yield _result(id, {})
        elif method in LISTS:
            yield from self._gather(id, method)
        elif method in ("tools/call", "prompts/get"):
            yield from self._by_name(id, fields, params)
        elif method in ("resources/read", "resources/subscribe", "resources/unsubscribe"):
            yield from self._pass(self._owner(text_at(params, "uri") or ""), id, line)
        elif method == "completion/complete":
            yield from self._complete(id, fields, params)
        elif method == "logging/setLevel":
            for name in self._ready("logging"):
                yield ToServer(name, _line({**fields, "id": self._own_id()}))
            yield _result(id, {})
        else:
            yield _error(id, METHOD_NOT_FOUND, f"several servers together have no {method}")

    def _by_name(self, id: Raw, fields: Parts, params: Parts) -> Steps:
        given = text_at(params, "name") or ""
        server, _, name = given.partition(SEPARATOR)
        if server not in self._servers:
            names = ", ".join(self._servers)
            yield _error(id, -32602, f"no server has {given!r}: the name begins with one of {names}")
            return
        sent = {**fields, "params": encode({**params, "name": name})}
        yield from self._pass(server, id, _line(sent))

    def _complete(self, id: Raw, fields: Parts, params: Parts) -> Steps:
        ref = object_at(params, "ref")
        server, _, name = (text_at(ref, "name") or "").partition(SEPARATOR)
        if server in self._servers:
            sent = {**params, "ref": encode({**ref, "name": name})}
            yield from self._pass(server, id, _line({**fields, "params": encode(sent)}))
        else:
            owner = self._owner(text_at(ref, "uri") or "")
            yield from self._pass(owner, id, _line(fields))

    def _owner(self, uri: str) -> str | None:
        """Return the server of a resource: the one that listed it, or whose template it fits best."""
        if uri in self._owners:
            return self._owners[uri]
        fitting = [begin for begin in self._templates if uri.startswith(begin)]
        with_resources = list(self._ready("resources"))
        if fitting:
            return self._templates[max(fitting, key=len)]
        return with_resources[0] if len(with_resources) == 1 else None

    def _pass(self, server: str | None, id: Raw, line: Buffer) -> Steps:
        """Pass a request on to its server."""
        if server is None:
            yield _error(id, RESOURCE_NOT_FOUND, "no server has listed this resource: list the resources")
            return
        found = self._servers[server]
        if found.state != "ready":
            yield ToHost(
                error_answer(id, found.problem or f"the MCP server {server} has not begun yet") + b"\n"
            )
            return
        if (key := key_of(id)) is not None:
            self._asked[key] = (server, id)
            if len(self._asked) > MAX_KNOWN:
                del self._asked[next(iter(self._asked))]
        yield ToServer(server, line)

    def _notification(self, method: str, fields: Parts, line: Buffer) -> Steps:
        if method == "notifications/cancelled":
            params = object_at(fields, "params")
            asked = self._asked.get(key_of(params.get("requestId", b"null")) or (False, None))
            if asked is not None:
                yield ToServer(asked[0], line)
            return
        if method == "notifications/initialized":
            self._is_initialized = True
        for name in self._ready():
            yield ToServer(name, line)

    def _response(self, fields: Parts) -> Steps:
        """Pass on the host's answer to a request of a server."""
        found = self._of_servers.pop(text_at(fields, "id") or "", None)
        if found is not None:
            yield ToServer(found[0], _line({**fields, "id": found[1]}))

    # --- the beginning

    def _begin(self, id: Raw, fields: Parts) -> Steps:
        if self._start is not None:
            yield _error(id, -32600, "this connection has begun already")
            return
        self._start = start = _Gathered(id, "initialize", set(), {})
        for name, server in self._servers.items():
            if server.state == "new":
                server.state = "begun"
                yield self._ask(start, name, fields)
        yield from self._started()

    def start_time_over(self) -> Steps:
        """Answer the host although some servers have not begun: they join later."""
        if not self._is_answered and self._start is not None and any(self._ready()):
            late = [name for name, server in self._servers.items() if server.state == "begun"]
            yield Say(f"these servers are late, and join when they have begun: {', '.join(late)}")
            self._start.waiting.clear()
            yield from self._started()

    def _started(self) -> Steps:
        """Answer the host's `initialize` once all servers have begun or ended."""
        start = self._start
        if start is None or start.waiting or self._is_answered:
            return
        self._is_answered = True
        ready = [self._servers[name] for name in self._ready()]
        if not ready:
            problems = "; ".join(server.problem for server in self._servers.values())
            yield ToHost(error_answer(start.id, f"no server has begun: {problems}") + b"\n")
            return
        versions = [text_at(server.about, "protocolVersion") or "" for server in ready]
        instructions = [
            f"{name}: {text}"
            for name in self._ready()
            if (text := text_at(self._servers[name].about, "instructions"))
        ]
        about: dict[str, Any] = {
            "protocolVersion": min(versions),
            "capabilities": {name: _options(name, ready) for name in CAPABILITIES if _has(name, ready)},
            "serverInfo": {"name": "fdstore-gateway", "version": __version__},
        }
        yield _result(
            start.id, {**about, "instructions": "\n\n".join(instructions)} if instructions else about
        )

    def _has_begun(self, name: str, fields: Parts) -> Steps:
        server = self._servers[name]
        about = parts_of(fields.get("result", b""))
        if about is None:
            said = text_at(fields, "error", "message") or "no result"
            server.state, server.problem = "gone", f"the MCP server {name} does not begin: {said}"
            yield Say(server.problem)
        else:
            server.state, server.about = "ready", about
            server.capabilities = object_at(about, "capabilities")
            if self._is_initialized:
                yield ToServer(name, _line({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            if self._is_answered:
                yield ToHost(_line({"jsonrpc": "2.0", "method": TOOLS_CHANGED}))
        yield from self._started()

    # --- from a server

    def from_server(self, name: str, line: Buffer) -> Steps:
        """Decide about a line of a server. A long one is looked at only if it is more than an answer."""
        if len(line) > LONG_BYTES:
            edges = bytes(line[:EDGE_BYTES]) + bytes(line[-EDGE_BYTES:])
            if b'"method"' not in edges and self._mark.encode() not in edges:
                yield ToHost(line)
                return
        fields = parts_of(line)
        method = None if fields is None else text_at(fields, "method")
        if fields is None:
            yield ToHost(line)
        elif method is None:
            own = self._own.pop(text_at(fields, "id") or "", None)
            if own is not None:
                yield from self._gathered(*own, fields)
            elif not (text_at(fields, "id") or "").startswith(self._mark):
                self._asked.pop(key_of(fields.get("id", b"null")) or (False, None), None)
                yield ToHost(line)
        elif "id" in fields:
            public = f"{self._own_id()}-{name}"
            self._of_servers[public] = (name, fields["id"])
            yield ToHost(_line({**fields, "id": public}))
        elif method == "notifications/cancelled":
            yield from self._taken_back(name, fields)
        else:
            yield ToHost(line)

    def _taken_back(self, name: str, fields: Parts) -> Steps:
        """Pass on that a server takes back a request, under the id that the host knows."""
        params = object_at(fields, "params")
        key = key_of(params.get("requestId", b"null"))
        for public, (server, id) in list(self._of_servers.items()):
            if server == name and key_of(id) == key:
                del self._of_servers[public]
                yield ToHost(_line({**fields, "params": encode({**params, "requestId": public})}))

    def server_ended(self, name: str, problem: str) -> Steps:
        """Answer what a server owes, and go on without it."""
        server = self._servers[name]
        was_ready = server.state == "ready"
        if server.state != "gone":
            yield Say(problem)
        server.state, server.problem = "gone", problem
        for key, (owner, id) in list(self._asked.items()):
            if owner == name:
                del self._asked[key]
                yield ToHost(error_answer(id, problem) + b"\n")
        for own, (owner, gathered) in list(self._own.items()):
            if owner == name:
                del self._own[own]
                gathered.waiting.discard(own)
                yield from self._finished(gathered)
        if was_ready and self._is_answered:
            yield ToHost(_line({"jsonrpc": "2.0", "method": TOOLS_CHANGED}))

    # --- requests to all

    def _gather(self, id: Raw, method: str) -> Steps:
        gathered = _Gathered(id, method, set(), {})
        for name in self._ready(method.partition("/")[0]):
            yield self._ask(gathered, name, {"method": encode(method)})
        yield from self._finished(gathered)

    def _ask(self, gathered: _Gathered, server: str, fields: Mapping[str, Any]) -> ToServer:
        own = self._own_id()
        gathered.waiting.add(own)
        self._own[own] = (server, gathered)
        return ToServer(server, _line({"jsonrpc": "2.0", **fields, "id": own}))

    def _gathered(self, name: str, gathered: _Gathered, fields: Parts) -> Steps:
        """Take a server's part of an answer."""
        gathered.waiting.discard(string_of(fields["id"]) or "")
        if gathered.method == "initialize":
            yield from self._has_begun(name, fields)
            return
        result = parts_of(fields.get("result", b""))
        if result is None:
            said = text_at(fields, "error", "message") or "no result"
            yield Say(f"{gathered.method} of the MCP server {name}: {said}")
        else:
            listed = items_of(result.get(LISTS[gathered.method], b"")) or []
            gathered.found.setdefault(name, []).extend(listed)
            cursor = result.get("nextCursor")
            if cursor is not None and not is_null(cursor):
                params = {"cursor": cursor}
                yield self._ask(gathered, name, {"method": encode(gathered.method), "params": params})
        yield from self._finished(gathered)

    def _finished(self, gathered: _Gathered) -> Steps:
        """Answer the host once all servers have."""
        if gathered.waiting:
            return
        if gathered.method == "initialize":
            yield from self._started()
            return
        shown = [
            self._shown(gathered.method, name, item)
            for name in self._servers
            for item in gathered.found.get(name, ())
        ]
        yield _result(gathered.id, {LISTS[gathered.method]: shown})

    def _shown(self, method: str, server: str, item: Raw) -> Raw:
        """Return an item of a list as the host sees it, and note whose it is."""
        fields = parts_of(item) or {}
        if method in ("tools/list", "prompts/list"):
            name = text_at(fields, "name") or ""
            return encode({**fields, "name": f"{server}{SEPARATOR}{name}"})
        if method == "resources/list":
            self._owners.setdefault(text_at(fields, "uri") or "", server)
        else:
            begin = (text_at(fields, "uriTemplate") or "").partition("{")[0]
            self._templates.setdefault(begin, server)
        return item

    def _ready(self, capability: str = "") -> Iterator[str]:
        """Yield the servers that have begun, and have a capability."""
        for name, server in self._servers.items():
            if server.state == "ready" and (not capability or capability in server.capabilities):
                yield name

    def _own_id(self) -> str:
        return f"{self._mark}{next(self._numbers)}"


def _has(capability: str, servers: Sequence[_Server]) -> bool:
    return any(capability in server.capabilities for server in servers) or capability == "tools"


def _options(capability: str, servers: Sequence[_Server]) -> dict[str, bool]:
    """Return what all servers together offer of a capability."""
    if capability == "resources":
        given = [parts_of(server.capabilities.get(capability, b"")) or {} for server in servers]
        subscribe = any(bytes(each.get("subscribe", b"")).strip() == b"true" for each in given)
        return {"subscribe": subscribe, "listChanged": True}
    return {"listChanged": True} if capability in ("tools", "prompts") else {}


def _line(message: Mapping[str, Any]) -> bytes:
    return bytes(encode(message)) + b"\n"


def _result(id: Raw, result: Mapping[str, Any]) -> ToHost:
    return ToHost(_line({"jsonrpc": "2.0", "id": id, "result": result}))


def _error(id: Raw, code: int, message: str) -> ToHost:
    return ToHost(_line({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}))
