"""A host with several servers behind one gateway: which server each message goes to, and what the host gets.

Decisions without I/O. For the host there is one server. The tool `list_issues` of the server `github` is
`github__list_issues` for it, prompts alike; resources keep their URIs. Lists are those of all servers, whole.
Messages keep their bytes but for a name or an id: ids of the host's requests stay as they are, requests of
the servers get ids that no two of them share. A name that is too long for hosts is cut, and ends with a
digest of the whole, so it is the same each time.

What the servers are asked here ends: a list goes to the host after `Limit`, or after as many pages as
`paged_list` allows, with what has come. A server that is late has the list that it gave last. When it gives
another one, the host is told to ask again.

Each server is begun as the host begins, with a protocol that has `initialize`; a host that asks
`server/discover` first is told that there is none, and uses `initialize` too. The host gets the oldest of
the servers' protocols. A server that is late to begin joins later, with `notifications/tools/list_changed`.
One that ends leaves the list in the same way, and what it owes is answered with an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import count
from secrets import token_hex
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Raw

from fdstore import __version__
from fdstore.hosts.gateway.json_parts import (
    Parts,
    encode,
    object_at,
    parts_of,
    text_at,
)
from fdstore.hosts.gateway.json_scan import Buffer
from fdstore.hosts.gateway.json_texts import LONG_BYTES
from fdstore.hosts.gateway.messages import Message, error_answer
from fdstore.hosts.gateway.paged_list import LISTS, PagedList
from fdstore.hosts.gateway.rewriting import MAX_KNOWN, RequestKey, key_of

SEPARATOR = "__"
"""Between the name of a server, which has none, and that of its tool."""

EDGE_BYTES = 512
"""The bytes at either end of a long message that hold its method and id: before or after its parameters."""

CHANGED = {
    "tools/list": "notifications/tools/list_changed",
    "prompts/list": "notifications/prompts/list_changed",
    "resources/list": "notifications/resources/list_changed",
    "resources/templates/list": "notifications/resources/list_changed",
}
"""Notifications that make a host ask for a list again."""

MAX_NAME_CHARS = 64
"""The length of the names that hosts and models take."""
DIGEST_CHARS = 12
_CUT = re.compile(rf".{{{MAX_NAME_CHARS - DIGEST_CHARS - 1}}}_[0-9a-f]{{{DIGEST_CHARS}}}", re.DOTALL)

MAX_LISTED = 100_000
"""The most names and resources of servers that are remembered with their servers."""

MAX_TOLD = 1000
"""The most different problems of lists that the operator is told."""

WHOLE_NAME = "fdstore/name"
"""The field of `_meta` with the name of a tool that was cut."""

NEWEST = "2025-11-25"
"""The newest protocol with `initialize`."""
_PROTOCOL = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

CAPABILITIES = ("tools", "prompts", "resources", "logging", "completions")
TOOLS_CHANGED = CHANGED["tools/list"]
PARSE_ERROR = -32700
METHOD_NOT_FOUND = -32601
RESOURCE_NOT_FOUND = -32002

K = TypeVar("K")
V = TypeVar("V")


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


class Limit(msgspec.Struct, frozen=True):
    """Call `time_over` with this number once the time of a request of ours is over: that to begin, the rest
    of it if no server has begun, or that of a list."""

    number: int
    kind: Literal["begin", "begin_any", "list"]


Step: TypeAlias = ToServer | ToHost | Say | Limit
Steps: TypeAlias = Iterator[Step]


class _Server(msgspec.Struct):
    """The known facts of a server; `problem` says why it is gone."""

    state: Literal["new", "begun", "ready", "gone"] = "new"
    about: Parts = {}
    capabilities: Parts = {}
    problem: str = ""


class _Gathered(msgspec.Struct):
    """A request of the host that several servers answer.

    lists       what each has said
    waiting     the ids of ours that are open, with their servers
    late        the servers that the host's answer does not wait for
    is_over     whether the host has its answer
    to_pass_on  a request of the host whose server the lists tell, in place of an answer
    """

    id: Raw
    method: str
    number: int
    lists: dict[str, PagedList] = {}
    waiting: dict[str, str] = {}
    late: set[str] = set()
    is_over: bool = False
    to_pass_on: Parts | None = None


class GroupRouter:
    """The decisions about the messages of one host and its servers, given by their names."""

    def __init__(self, servers: Sequence[str]) -> None:
        self._servers = {name: _Server() for name in servers}
        self._mark = f"fdstore-group-{token_hex(8)}-"
        self._numbers = count(1)
        self._start: _Gathered | None = None
        self._protocol = NEWEST
        self._is_answered = self._is_initialized = False
        self._gathering: dict[int, _Gathered] = {}
        self._own: dict[str, tuple[str, _Gathered]] = {}
        self._listed: dict[tuple[str, str], PagedList] = {}
        self._named: dict[str, tuple[str, str]] = {}
        self._told: set[str] = set()
        self._asked: dict[RequestKey, tuple[str, Raw]] = {}
        self._of_servers: dict[str, tuple[str, Raw]] = {}
        self._owners: dict[str, str] = {}
        self._templates: dict[str, str] = {}

    # --- from the host

    def from_host(self, line: Buffer) -> Steps:
        """Decide about a line of the host."""
        message = Message(line)
        fields = message.fields
        if fields is None:
            for each in message.items or ():
                yield from self.from_host(bytes(each))
            if message.problem:
                yield _error(Raw(b"null"), PARSE_ERROR, f"the message cannot be read: {message.problem}")
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

    def _by_name(self, id: Raw, fields: Parts, params: Parts, *, is_listed: bool = False) -> Steps:
        given = text_at(params, "name") or ""
        if given not in self._named and not is_listed and _CUT.fullmatch(given):
            # the host knows it from before this gateway began
            lists = "tools/list" if text_at(fields, "method") == "tools/call" else "prompts/list"
            yield from self._gather(id, lists, fields)
            return
        server, name = self._named_by(given)
        if server not in self._servers:
            names = ", ".join(self._servers)
            yield _error(id, -32602, f"no server has {given!r}: the name begins with one of {names}")
            return
        sent = {**fields, "params": encode({**params, "name": name})}
        yield from self._pass(server, id, _line(sent))

    def _complete(self, id: Raw, fields: Parts, params: Parts) -> Steps:
        ref = object_at(params, "ref")
        server, name = self._named_by(text_at(ref, "name") or "")
        if server in self._servers:
            sent = {**params, "ref": encode({**ref, "name": name})}
            yield from self._pass(server, id, _line({**fields, "params": encode(sent)}))
        else:
            owner = self._owner(text_at(ref, "uri") or "")
            yield from self._pass(owner, id, _line(fields))

    def _named_by(self, shown: str) -> tuple[str, str]:
        """Return the server that a name leads to, and its own name for the tool or prompt."""
        if shown in self._named:
            return self._named[shown]
        server, _, name = shown.partition(SEPARATOR)
        return server, name

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
            _remember(self._asked, key, (server, id))
        yield ToServer(server, line)

    def _notification(self, method: str, fields: Parts, line: Buffer) -> Steps:
        if method == "notifications/cancelled":
            key = key_of(object_at(fields, "params").get("requestId", b"null"))
            asked = self._asked.get(key or (False, None))
            if asked is not None:
                yield ToServer(asked[0], line)
            for gathered in list(self._gathering.values()):
                if key is not None and key_of(gathered.id) == key:
                    yield from self._cancel(gathered)
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
        asked = text_at(object_at(fields, "params"), "protocolVersion") or ""
        self._protocol = min(NEWEST, asked) if _PROTOCOL.fullmatch(asked) else NEWEST
        self._start = start = self._gather_from(id, "initialize")
        yield Limit(start.number, "begin")
        for name, server in self._servers.items():
            if server.state == "new":
                server.state = "begun"
                yield self._ask(start, name, fields)
        yield from self._started()

    def _started(self) -> Steps:
        """Answer the host's `initialize` once all servers have begun or ended, or its time is over."""
        start = self._start
        if start is None or self._is_answered or (start.waiting and not start.is_over):
            return
        self._is_answered = True
        self._gathering.pop(start.number, None)
        if start.waiting:
            late = ", ".join(start.waiting.values())
            yield Say(f"these servers are late, and join when they have begun: {late}")
        if all(server.state == "gone" for server in self._servers.values()):
            problems = "; ".join(server.problem for server in self._servers.values())
            yield ToHost(error_answer(start.id, f"no server has begun: {problems}") + b"\n")
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
        message = Message(line)
        line = message.whole
        if len(line) > LONG_BYTES:
            edges = bytes(line[:EDGE_BYTES]) + bytes(line[-EDGE_BYTES:])
            if b'"method"' not in edges and self._mark.encode() not in edges:
                yield ToHost(line)
                return
        fields = message.fields
        method = None if fields is None else text_at(fields, "method")
        if fields is None:
            if message.items and message.has(self._mark.encode()):
                for each in message.items:
                    yield from self.from_server(name, bytes(each) + b"\n")
            else:
                yield from self._unreadable(name, message)
        elif method is None:
            id = text_at(fields, "id") or ""
            own = self._own.get(id)
            if own is not None and own[0] == name:
                del self._own[id]
                yield from self._gathered(name, id, own[1], fields)
            elif not id.startswith(self._mark):
                self._asked.pop(key_of(fields.get("id", b"null")) or (False, None), None)
                yield ToHost(line)
        elif "id" in fields:
            public = f"{self._own_id()}-{name}"
            _remember(self._of_servers, public, (name, fields["id"]))
            yield ToHost(_line({**fields, "id": public}))
        elif method == "notifications/cancelled":
            yield from self._taken_back(name, fields)
        else:
            yield ToHost(line)

    def _unreadable(self, name: str, message: Message) -> Steps:
        """Fail the request of ours that a line answers which cannot be read; any other line is the host's."""
        found = re.search(f'"({self._mark}[0-9]{{1,18}})"'.encode(), message.whole)
        id = "" if found is None else found[1].decode()
        own = self._own.get(id)
        if own is not None and own[0] == name:
            del self._own[id]
            problem = f"its answer cannot be read: {message.problem}"
            yield from self._gathered(name, id, own[1], {"error": encode({"message": problem})})
        elif found is None:
            yield ToHost(message.whole)

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
                del gathered.waiting[own]
                yield from self._finished(gathered)
        if was_ready and self._is_answered:
            yield ToHost(_line({"jsonrpc": "2.0", "method": TOOLS_CHANGED}))

    # --- requests to all

    def _gather(self, id: Raw, method: str, to_pass_on: Parts | None = None) -> Steps:
        gathered = self._gather_from(id, method)
        gathered.to_pass_on = to_pass_on
        for name in self._ready(method.partition("/")[0]):
            gathered.lists[name] = PagedList(method)
            if self._is_owed(name, method):
                gathered.late.add(name)
            else:
                yield self._ask(gathered, name, {"method": encode(method)})
        if gathered.waiting:
            yield Limit(gathered.number, "list")
        yield from self._finished(gathered)

    def _gather_from(self, id: Raw, method: str) -> _Gathered:
        gathered = _Gathered(id, method, next(self._numbers))
        self._gathering[gathered.number] = gathered
        return gathered

    def _is_owed(self, name: str, method: str) -> bool:
        """Return whether a server was too late with a list, and has not answered since."""
        return any(
            server == name and gathered.method == method and gathered.is_over
            for server, gathered in self._own.values()
        )

    def _ask(self, gathered: _Gathered, server: str, fields: Mapping[str, Any]) -> ToServer:
        own = self._own_id()
        gathered.waiting[own] = server
        self._own[own] = (server, gathered)
        return ToServer(server, _line({"jsonrpc": "2.0", **fields, "id": own}))

    def _gathered(self, name: str, own: str, gathered: _Gathered, fields: Parts) -> Steps:
        """Take a server's part of an answer."""
        del gathered.waiting[own]
        if gathered.method == "initialize":
            yield from self._has_begun(name, fields)
            return
        listed = gathered.lists[name]
        cursor = listed.take(fields)
        if cursor is not None and not gathered.is_over:
            params = {"cursor": cursor}
            yield self._ask(gathered, name, {"method": encode(gathered.method), "params": params})
        elif listed.has_ended:
            before = self._listed.get((name, gathered.method))
            self._listed[name, gathered.method] = listed
            if gathered.is_over and (before is None or before.items != listed.items):
                yield ToHost(_line({"jsonrpc": "2.0", "method": CHANGED[gathered.method]}))
        yield from self._finished(gathered)

    def time_over(self, number: int) -> Steps:
        """Answer a request of the host although some servers have not."""
        gathered = self._gathering.get(number)
        if gathered is None:
            return
        is_first = not gathered.is_over
        gathered.is_over = True
        gathered.late.update(gathered.waiting.values())
        late = ", ".join(dict.fromkeys(gathered.waiting.values()))
        if gathered.method == "initialize" and is_first and not any(self._ready()):
            yield Limit(number, "begin_any")  # the first that begins is waited for
        elif gathered.method == "initialize":
            yield from self._started()
        else:
            yield from self._say_once(f"{gathered.method}: these servers are late, and join later: {late}")
            yield from self._finished(gathered)

    def _cancel(self, gathered: _Gathered) -> Steps:
        """Take back what the servers were asked for a request that the host takes back."""
        if gathered.method == "initialize":
            return
        del self._gathering[gathered.number]
        for own, server in gathered.waiting.items():
            del self._own[own]
            note = {"method": "notifications/cancelled", "params": {"requestId": own}}
            yield ToServer(server, _line({"jsonrpc": "2.0", **note}))

    def _finished(self, gathered: _Gathered) -> Steps:
        """Answer the host once all servers have, or the time is over."""
        if gathered.waiting and not gathered.is_over:
            return
        if gathered.method == "initialize":
            yield from self._started()
            return
        if self._gathering.pop(gathered.number, None) is None:
            return
        shown: dict[str, Raw] = {}
        for name, came in gathered.lists.items():
            listed = self._listed.get((name, gathered.method), came) if name in gathered.late else came
            for problem in listed.problems:
                yield from self._say_once(f"{gathered.method} of the MCP server {name}: {problem}")
            for key, item in listed.items.items():
                public, seen = self._shown(gathered.method, name, key, item)
                shown.setdefault(public, seen)
        if (request := gathered.to_pass_on) is not None:
            yield from self._by_name(gathered.id, request, object_at(request, "params"), is_listed=True)
            return
        yield _result(gathered.id, {LISTS[gathered.method].field: list(shown.values())})

    def _shown(self, method: str, server: str, key: str, item: Raw) -> tuple[str, Raw]:
        """Return an item of a list as the host sees it, with what tells it apart there, and note whose it
        is."""
        if method in ("tools/list", "prompts/list"):
            whole = f"{server}{SEPARATOR}{key}"
            public = public_name(whole)
            fields = parts_of(item) or {}
            if public != whole:
                _remember(self._named, public, (server, key), MAX_LISTED)
                fields["_meta"] = encode({**object_at(fields, "_meta"), WHOLE_NAME: whole})
            return public, encode({**fields, "name": public})
        if method == "resources/list":
            if key not in self._owners:
                _remember(self._owners, key, server, MAX_LISTED)
        else:
            begin = key.partition("{")[0]
            if begin not in self._templates:
                _remember(self._templates, begin, server, MAX_LISTED)
        return f"{server} {key}", item

    def _say_once(self, text: str) -> Steps:
        if text not in self._told and len(self._told) < MAX_TOLD:
            self._told.add(text)
            yield Say(text)

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


def public_name(whole: str) -> str:
    """Return the name of a tool that a host sees: the whole, or one of 64 characters that stands for it.

    >>> public_name("git__log"), public_name("git__" + "log_" * 20)
    ('git__log', 'git__log_log_log_log_log_log_log_log_log_log_log_lo_34e804debb45')
    """
    if len(whole) <= MAX_NAME_CHARS:
        return whole
    digest = blake2b(whole.encode(), digest_size=DIGEST_CHARS // 2).hexdigest()
    return f"{whole[: MAX_NAME_CHARS - DIGEST_CHARS - 1]}_{digest}"


def _remember(known: dict[K, V], key: K, value: V, most: int = MAX_KNOWN) -> None:
    """Note a fact; of too many the oldest is forgotten."""
    known[key] = value
    if len(known) > most:
        del known[next(iter(known))]


def _line(message: Mapping[str, Any]) -> bytes:
    return bytes(encode(message)) + b"\n"


def _result(id: Raw, result: Mapping[str, Any]) -> ToHost:
    return ToHost(_line({"jsonrpc": "2.0", "id": id, "result": result}))


def _error(id: Raw, code: int, message: str) -> ToHost:
    return ToHost(_line({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}))
