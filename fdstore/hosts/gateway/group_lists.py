"""Requests of the host that several servers answer, and the lists that it gets from all of them.

What the servers are asked here ends: a list goes to the host after `Limit`, or after as many pages as
`paged_list` allows, with what has come. A server that is late has the list that it gave last. When it gives
another one, the host is told to ask again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count
from typing import Any

import msgspec
from msgspec import Raw

from fdstore.hosts.gateway.group_names import GroupNames
from fdstore.hosts.gateway.group_steps import Limit, Say, Steps, ToServer, notice, result
from fdstore.hosts.gateway.json_parts import Parts, encode
from fdstore.hosts.gateway.json_scan import Buffer
from fdstore.hosts.gateway.own_requests import OwnRequest, OwnRequests
from fdstore.hosts.gateway.paged_list import LISTS, PagedList
from fdstore.hosts.gateway.rewriting import RequestKey, key_of

CHANGED = {
    "tools/list": "notifications/tools/list_changed",
    "prompts/list": "notifications/prompts/list_changed",
    "resources/list": "notifications/resources/list_changed",
    "resources/templates/list": "notifications/resources/list_changed",
}
"""Notifications that make a host ask for a list again."""

MAX_TOLD = 1000
"""The most different problems of lists that the operator is told."""


class Gathered(msgspec.Struct):
    """A request of the host that several servers answer.

    lists    what each has said
    waiting  the servers that have not answered, with what each was asked
    late     the servers that the host's answer does not wait for
    is_over  whether the host has its answer
    then     what follows in place of an answer, once the lists are known
    """

    id: Raw
    method: str
    number: int
    lists: dict[str, PagedList] = {}
    waiting: dict[str, OwnRequest[Gathered]] = {}
    late: set[str] = set()
    is_over: bool = False
    then: Callable[[], Steps] | None = None


class GroupRequests:
    """What a host asks several servers at once, and the requests to each that it becomes."""

    def __init__(self, servers: Iterable[str]) -> None:
        self._sent: list[Buffer] = []
        self.to = {name: OwnRequests[Gathered](self._sent.append) for name in servers}
        self._numbers = count(1)
        self._gathering: dict[int, Gathered] = {}

    def begin(self, id: Raw, method: str, then: Callable[[], Steps] | None = None) -> Gathered:
        """Begin to gather the answers to a request of the host."""
        gathered = Gathered(id, method, next(self._numbers), then=then)
        self._gathering[gathered.number] = gathered
        return gathered

    def ask(self, gathered: Gathered, server: str, fields: Mapping[str, Any]) -> Steps:
        """Ask a server for its part."""
        own = self.to[server]
        message = {"jsonrpc": "2.0", **fields, "id": own.new_id()}
        gathered.waiting[server] = own.begin(message, gathered)
        yield ToServer(server, self._sent.pop())

    def is_owed(self, server: str, method: str) -> bool:
        """Return whether a server was too late with a list, and has not answered since."""
        return any(own.of.method == method and own.of.is_over for own in self.to[server].open)

    def of_number(self, number: int) -> Gathered | None:
        return self._gathering.get(number)

    def finish(self, gathered: Gathered) -> bool:
        """Note that the host has its answer. Return whether it had none before."""
        return self._gathering.pop(gathered.number, None) is not None

    def cancel(self, key: RequestKey) -> Steps:
        """Take back what the servers were asked for a request that the host takes back."""
        for gathered in list(self._gathering.values()):
            if key_of(gathered.id) != key or gathered.method == "initialize":
                continue
            del self._gathering[gathered.number]
            for server, own in gathered.waiting.items():
                self.to[server].cancel(own)
                yield ToServer(server, self._sent.pop())


class GroupLists:
    """The lists of all servers as one. `ready` yields the servers that have a capability."""

    def __init__(
        self, requests: GroupRequests, names: GroupNames, ready: Callable[[str], Iterator[str]]
    ) -> None:
        self._requests, self._names, self._ready = requests, names, ready
        self._last: dict[tuple[str, str], PagedList] = {}
        self._told: set[str] = set()

    def gather(self, id: Raw, method: str, then: Callable[[], Steps] | None = None) -> Steps:
        """Ask all servers for a list."""
        gathered = self._requests.begin(id, method, then)
        for name in self._ready(method.partition("/")[0]):
            gathered.lists[name] = PagedList(method)
            if self._requests.is_owed(name, method):
                gathered.late.add(name)
            else:
                yield from self._requests.ask(gathered, name, {"method": encode(method)})
        if gathered.waiting:
            yield Limit(gathered.number, "list")
        yield from self.finish(gathered)

    def take(self, name: str, gathered: Gathered, fields: Parts) -> Steps:
        """Take a page of a server's list."""
        method, listed = gathered.method, gathered.lists[name]
        cursor = listed.take(fields)
        if cursor is not None and not gathered.is_over:
            params = {"cursor": cursor}
            yield from self._requests.ask(gathered, name, {"method": encode(method), "params": params})
        elif listed.has_ended:
            before = self._last.get((name, method))
            self._last[name, method] = listed
            if gathered.is_over and (before is None or before.items != listed.items):
                yield notice(CHANGED[method])
        yield from self.finish(gathered)

    def time_over(self, gathered: Gathered) -> Steps:
        """Answer the host although some servers have not."""
        gathered.late.update(gathered.waiting)
        late = ", ".join(gathered.waiting)
        yield from self._say_once(f"{gathered.method}: these servers are late, and join later: {late}")
        yield from self.finish(gathered)

    def finish(self, gathered: Gathered) -> Steps:
        """Answer the host once all servers have, or the time is over."""
        if (gathered.waiting and not gathered.is_over) or not self._requests.finish(gathered):
            return
        shown: dict[str, Raw] = {}
        for name, came in gathered.lists.items():
            listed = self._last.get((name, gathered.method), came) if name in gathered.late else came
            for problem in listed.problems:
                yield from self._say_once(f"{gathered.method} of the MCP server {name}: {problem}")
            for key, item in listed.items.items():
                public, seen = self._names.shown(gathered.method, name, key, item)
                shown.setdefault(public, seen)
        if gathered.then is not None:
            yield from gathered.then()
        else:
            yield result(gathered.id, {LISTS[gathered.method].field: list(shown.values())})

    def _say_once(self, text: str) -> Steps:
        if text not in self._told and len(self._told) < MAX_TOLD:
            self._told.add(text)
            yield Say(text)
