"""A host with several servers behind one gateway: which server each message goes to, and what the host gets.

Decisions without I/O. For the host there is one server, with the names of `group_names` and the lists of
`group_lists`. Messages keep their bytes but for a name or an id: ids of the host's requests stay as they are,
requests of the servers get ids that no two of them share.

Each server is begun as the host begins, with a protocol that has `initialize`; a host that asks
`server/discover` first is told that there is none, and uses `initialize` too. The host gets the oldest of
the servers' protocols. A server that is late to begin joins later, with `notifications/tools/list_changed`.
One that ends leaves the list in the same way, and what it owes is answered with an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Literal

import msgspec
from msgspec import Raw

from fdstore import __version__
from fdstore.hosts.gateway.group_lists import CHANGED, Gathered, GroupLists, GroupRequests
from fdstore.hosts.gateway.group_names import GroupNames
from fdstore.hosts.gateway.group_steps import (
    Limit,
    Say,
    Steps,
    ToHost,
    ToServer,
    notice,
    refusal,
    result,
)
from fdstore.hosts.gateway.json_parts import Parts, encode, object_at, parts_of, text_at
from fdstore.hosts.gateway.json_scan import Buffer
from fdstore.hosts.gateway.messages import Message, line_of
from fdstore.hosts.gateway.own_requests import OwnRequest
from fdstore.hosts.gateway.paged_list import LISTS
from fdstore.hosts.gateway.rewriting import RequestKey, key_of, remember

NEWEST = "2025-11-25"
"""The newest protocol with `initialize`."""
_PROTOCOL = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

CAPABILITIES = ("tools", "prompts", "resources", "logging", "completions")
TOOLS_CHANGED = CHANGED["tools/list"]
PARSE_ERROR = -32700
METHOD_NOT_FOUND = -32601
INVALID_REQUEST, INVALID_PARAMS = -32600, -32602
RESOURCE_NOT_FOUND = -32002


class _Server(msgspec.Struct):
    """The known facts of a server; `problem` says why it is gone, `has_strayed` whether the operator knows
    that it answers what it was not asked."""

    state: Literal["new", "begun", "ready", "gone"] = "new"
    about: Parts = {}
    capabilities: Parts = {}
    problem: str = ""
    has_strayed: bool = False


class _Asked(msgspec.Struct):
    """A request of the host that its server has not answered."""

    server: str
    id: Raw
    is_cancelled: bool = False


class GroupRouter:
    """The decisions about the messages of one host and its servers, given by their names."""

    def __init__(self, servers: Sequence[str]) -> None:
        self._servers = {name: _Server() for name in servers}
        self._requests, self._names = GroupRequests(servers), GroupNames()
        self._lists = GroupLists(self._requests, self._names, self._ready)
        self._start: Gathered | None = None
        self._protocol = NEWEST
        self._is_answered = self._is_initialized = False
        self._asked: dict[RequestKey, _Asked] = {}
        self._answered: dict[RequestKey, bool] = {}
        self._of_servers: dict[str, tuple[str, Raw]] = {}

    # --- from the host

    def from_host(self, line: Buffer) -> Steps:
        """Decide about a line of the host. The messages of a batch go their own ways."""
        message = Message(line)
        if message.fields is not None:
            yield from self._one_from_host(message.fields, line)
        for each in message.items or ():
            if (fields := parts_of(each)) is not None:
                yield from self._one_from_host(fields, bytes(each) + b"\n")
        if message.problem:
            yield refusal(Raw(b"null"), f"the message cannot be read: {message.problem}", PARSE_ERROR)

    def _one_from_host(self, fields: Parts, line: Buffer) -> Steps:
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
            yield result(id, {})
        elif method in LISTS:
            yield from self._lists.gather(id, method)
        elif method in ("tools/call", "prompts/get"):
            yield from self._by_name(id, fields, params)
        elif method in ("resources/read", "resources/subscribe", "resources/unsubscribe"):
            yield from self._pass(self._owner(params), id, line)
        elif method == "completion/complete":
            yield from self._complete(id, fields, params)
        elif method == "logging/setLevel":
            for name in self._ready("logging"):
                yield ToServer(name, line_of({**fields, "id": self._requests.to[name].new_id()}))
            yield result(id, {})
        else:
            yield refusal(id, f"several servers together have no {method}", METHOD_NOT_FOUND)

    def _by_name(self, id: Raw, fields: Parts, params: Parts, *, is_listed: bool = False) -> Steps:
        given = text_at(params, "name") or ""
        if not is_listed and self._names.is_unknown(given):
            lists = "tools/list" if text_at(fields, "method") == "tools/call" else "prompts/list"
            retry = partial(self._by_name, id, fields, params, is_listed=True)
            yield from self._lists.gather(id, lists, retry)
            return
        server, name = self._names.named_by(given)
        if server not in self._servers:
            names = ", ".join(self._servers)
            yield refusal(id, f"no server has {given!r}: the name begins with one of {names}", INVALID_PARAMS)
            return
        sent = {**fields, "params": encode({**params, "name": name})}
        yield from self._pass(server, id, line_of(sent))

    def _complete(self, id: Raw, fields: Parts, params: Parts) -> Steps:
        ref = object_at(params, "ref")
        server, name = self._names.named_by(text_at(ref, "name") or "")
        if server in self._servers:
            sent = {**params, "ref": encode({**ref, "name": name})}
            yield from self._pass(server, id, line_of({**fields, "params": encode(sent)}))
        else:
            yield from self._pass(self._owner(ref), id, line_of(fields))

    def _owner(self, named: Parts) -> str | None:
        """Return the server of the resource that a request names: of an unknown one the only server that has
        resources."""
        with_resources = list(self._ready("resources"))
        only = with_resources[0] if len(with_resources) == 1 else None
        return self._names.owner(text_at(named, "uri") or "") or only

    def _pass(self, server: str | None, id: Raw, line: Buffer) -> Steps:
        """Pass a request on to its server."""
        if server is None:
            yield refusal(id, "no server has listed this resource: list the resources", RESOURCE_NOT_FOUND)
            return
        found = self._servers[server]
        if found.state != "ready":
            yield refusal(id, found.problem or f"the MCP server {server} has not begun yet")
            return
        if (key := key_of(id)) is not None:
            remember(self._asked, key, _Asked(server, id))
        yield ToServer(server, line)

    def _notification(self, method: str, fields: Parts, line: Buffer) -> Steps:
        if method == "notifications/cancelled":
            key = key_of(object_at(fields, "params").get("requestId", b"null"))
            asked = self._asked.get(key or (False, None))
            if asked is not None:
                asked.is_cancelled = True
                yield ToServer(asked.server, line)
            if key is not None:
                yield from self._requests.cancel(key)
            return
        if method == "notifications/initialized":
            self._is_initialized = True
        for name in self._ready():
            yield ToServer(name, line)

    def _response(self, fields: Parts) -> Steps:
        """Pass on the host's answer to a request of a server."""
        found = self._of_servers.pop(text_at(fields, "id") or "", None)
        if found is not None:
            yield ToServer(found[0], line_of({**fields, "id": found[1]}))

    # --- the beginning

    def _begin(self, id: Raw, fields: Parts) -> Steps:
        if self._start is not None:
            yield refusal(id, "this connection has begun already", INVALID_REQUEST)
            return
        asked = text_at(object_at(fields, "params"), "protocolVersion") or ""
        self._protocol = min(NEWEST, asked) if _PROTOCOL.fullmatch(asked) else NEWEST
        self._start = start = self._requests.begin(id, "initialize")
        yield Limit(start.number, "begin")
        for name, server in self._servers.items():
            if server.state == "new":
                server.state = "begun"
                yield from self._requests.ask(start, name, fields)
        yield from self._started()

    def _started(self) -> Steps:
        """Answer the host's `initialize` once all servers have begun or ended, or its time is over."""
        start = self._start
        if start is None or self._is_answered or (start.waiting and not start.is_over):
            return
        self._is_answered = True
        self._requests.finish(start)
        if start.waiting:
            late = ", ".join(start.waiting)
            yield Say(f"these servers are late, and join when they have begun: {late}")
        if all(server.state == "gone" for server in self._servers.values()):
            problems = "; ".join(server.problem for server in self._servers.values())
            yield refusal(start.id, f"no server has begun: {problems}")
            return
        ready = [self._servers[name] for name in self._ready()]
        versions = [text_at(server.about, "protocolVersion") or self._protocol for server in ready]
        instructions = [
            f"{name}: {text}"
            for name in self._ready()
            if (text := text_at(self._servers[name].about, "instructions"))
        ]
        about: dict[str, Any] = {
            "protocolVersion": min(versions, default=self._protocol),
            "capabilities": {name: _options(name, ready) for name in CAPABILITIES if _has(name, ready)},
            "serverInfo": {"name": "fdstore-gateway", "version": __version__},
        }
        yield result(
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
            if parts_of(about.get("capabilities", b"")) is None:
                yield Say(f"the MCP server {name} does not say what it can do, so it is not asked for tools")
            if self._is_initialized:
                yield ToServer(name, line_of({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            if self._is_answered:
                yield notice(TOOLS_CHANGED)
        yield from self._started()

    # --- from a server

    def from_server(self, name: str, message: Message) -> Steps:
        """Decide about a line of a server. The messages of a batch reach the host as lines: no request of the
        host has come to a server in a batch."""
        if not message.items:
            yield from self._one_from_server(name, message)
        for each in message.items or ():
            yield from self._one_from_server(name, Message(bytes(each) + b"\n"))

    def _one_from_server(self, name: str, message: Message) -> Steps:
        line, own = message.whole, self._requests.to[name]
        ended, fields = own.take(message), message.fields
        if isinstance(ended, OwnRequest):
            problem = encode({"message": f"its answer cannot be read: {message.problem}"})
            yield from self._take(name, ended.of, fields or {"error": problem})
        elif ended:
            return
        elif fields is None:
            yield ToHost(line)
        elif (method := text_at(fields, "method")) is None:
            yield from self._answer(name, fields, line)
        elif "id" in fields:
            public = f"{own.new_id()}-{name}"
            remember(self._of_servers, public, (name, fields["id"]))
            yield ToHost(line_of({**fields, "id": public}))
        elif method == "notifications/cancelled":
            yield from self._taken_back(name, fields)
        else:
            yield ToHost(line)

    def _answer(self, name: str, fields: Parts, line: Buffer) -> Steps:
        """Pass on an answer of the server that was asked. That of another one, and a second one, are dropped:
        the host knows the request by its id alone. An id that the host has not used harms nothing."""
        key = key_of(fields.get("id", b"null")) or (False, None)
        asked, server = self._asked.get(key), self._servers[name]
        if asked is not None and asked.server == name:
            del self._asked[key]
            remember(self._answered, key, True)
            yield ToHost(line)
        elif (asked is None and key not in self._answered) or not ("result" in fields or "error" in fields):
            yield ToHost(line)
        elif not server.has_strayed:
            server.has_strayed = True
            yield Say(f"the MCP server {name} answers what it was not asked; such answers are dropped")

    def _taken_back(self, name: str, fields: Parts) -> Steps:
        """Pass on that a server takes back a request, under the id that the host knows."""
        params = object_at(fields, "params")
        key = key_of(params.get("requestId", b"null"))
        for public, (server, id) in list(self._of_servers.items()):
            if server == name and key_of(id) == key:
                del self._of_servers[public]
                yield ToHost(line_of({**fields, "params": encode({**params, "requestId": public})}))

    def server_ended(self, name: str, problem: str) -> Steps:
        """Answer what a server owes, and go on without it."""
        server = self._servers[name]
        was_ready = server.state == "ready"
        if server.state != "gone":
            yield Say(problem)
        server.state, server.problem = "gone", problem
        for key, asked in list(self._asked.items()):
            if asked.server == name:
                del self._asked[key]
                if not asked.is_cancelled:
                    yield refusal(asked.id, problem)
        for request in self._requests.to[name].server_ended(problem):
            del request.of.waiting[name]
            begins = request.of.method == "initialize"
            yield from self._started() if begins else self._lists.finish(request.of)
        if was_ready and self._is_answered:
            yield notice(TOOLS_CHANGED)

    # --- requests to all

    def _take(self, name: str, gathered: Gathered, fields: Parts) -> Steps:
        """Take a server's part of an answer."""
        del gathered.waiting[name]
        if gathered.method == "initialize":
            yield from self._has_begun(name, fields)
        else:
            yield from self._lists.take(name, gathered, fields)

    def time_over(self, number: int) -> Steps:
        """Answer a request of the host although some servers have not."""
        gathered = self._requests.of_number(number)
        if gathered is None:
            return
        was_over, gathered.is_over = gathered.is_over, True
        if gathered.method != "initialize":
            yield from self._lists.time_over(gathered)
        elif not was_over and not any(self._ready()):
            yield Limit(number, "begin_any")  # the first that begins is waited for
        else:
            yield from self._started()

    def _ready(self, capability: str = "") -> Iterator[str]:
        """Yield the servers that have begun, and have a capability."""
        for name, server in self._servers.items():
            if server.state == "ready" and (not capability or capability in server.capabilities):
                yield name


def _has(capability: str, servers: Sequence[_Server]) -> bool:
    return any(capability in server.capabilities for server in servers) or capability == "tools"


def _options(capability: str, servers: Sequence[_Server]) -> dict[str, bool]:
    """Return what all servers together offer of a capability."""
    if capability == "resources":
        given = [parts_of(server.capabilities.get(capability, b"")) or {} for server in servers]
        subscribe = any(bytes(each.get("subscribe", b"")).strip() == b"true" for each in given)
        return {"subscribe": subscribe, "listChanged": True}
    return {"listChanged": True} if capability in ("tools", "prompts") else {}
