"""A list that the gateway itself asks a server for, page by page. A server is believed nothing: each list has
an end, whatever the server says of further pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from time import monotonic
from typing import Any, NamedTuple, TypeAlias

from msgspec import Raw

from fdstore.hosts.gateway.json_parts import Parts, is_null, items_of, parts_of, string_of, text_at
from fdstore.hosts.gateway.own_requests import OWN_REQUEST_S, OwnRequests, ask

MAX_PAGES = 1000
MAX_LIST_BYTES = 32 << 20
"""The bytes of all pages of one list."""


class ListKind(NamedTuple):
    """The names of a list's field in a result, and of the field that tells its items apart."""

    field: str
    key: str


LISTS = {
    "tools/list": ListKind("tools", "name"),
    "prompts/list": ListKind("prompts", "name"),
    "resources/list": ListKind("resources", "uri"),
    "resources/templates/list": ListKind("resourceTemplates", "uriTemplate"),
}
"""The requests for lists."""


EndedBy: TypeAlias = Callable[[Callable[[], None]], AbstractContextManager[None]]
"""Makes a block in which the end of something calls a function."""


class PagedList:
    """The part of a server's list that has come.

    items      by the field that tells them apart: of two that are equal there the first
    has_ended  whether the last page has come, or one too many
    problems   what is wrong with the list, as sentences for people
    """

    def __init__(self, method: str) -> None:
        self._kind = LISTS[method]
        self.items: dict[str, Raw] = {}
        self.has_ended = False
        self.problems: list[str] = []
        self._pages = self._bytes = 0
        self._cursors: set[str | bytes] = set()

    def take(self, answer: Parts) -> Raw | None:
        """Take an answer to a request for a page. Return the cursor of the next page; None after the last,
        also if the server names another one for ever."""
        result = parts_of(answer.get("result", b""))
        if result is None:
            self._note(text_at(answer, "error", "message") or "it gave no list")
            return None
        self._pages += 1
        self._bytes += sum(map(len, map(bytes, result.values())))
        if self._bytes > MAX_LIST_BYTES:
            self._stop(f"it is longer than {MAX_LIST_BYTES >> 20} MiB")
            return None
        items = items_of(result.get(self._kind.field, b""))
        if items is None:
            self._note(f"it has no list of {self._kind.field}")
        self._add(items or [])
        cursor = result.get("nextCursor")
        if cursor is None or is_null(cursor):
            self.has_ended = True
            return None
        known = string_of(cursor)
        seen = bytes(cursor) if known is None else known
        if seen in self._cursors:
            self._stop("it names a page again")
            return None
        if self._pages == MAX_PAGES:
            self._stop(f"it has more than {MAX_PAGES} pages")
            return None
        self._cursors.add(seen)
        return cursor

    def _stop(self, why: str) -> None:
        self.has_ended = True
        self._note(f"{why}; {len(self.items)} of its {self._kind.field} are known")

    def _note(self, problem: str) -> None:
        if problem not in self.problems:
            self.problems.append(problem)

    def _add(self, items: list[Raw]) -> None:
        for item in items:
            key = text_at(parts_of(item) or {}, self._kind.key)
            if key is None:
                self._note(f"one of its {self._kind.field} has no {self._kind.key}, and is left out")
            else:
                self.items.setdefault(key, item)


def whole_list(
    requests: OwnRequests[None],
    method: str,
    meta: Mapping[str, Raw],
    ended_by: EndedBy,
    limit_s: float = OWN_REQUEST_S,
) -> PagedList:
    """Return a list with all pages that come within `limit_s`; its `problems` say why there are no more.
    Raises `ServerGone`, and `CallCancelled` once what it is for has ended."""
    listed = PagedList(method)
    until = monotonic() + limit_s
    params: dict[str, Any] = {}
    while True:
        asked = ask(requests, method, params, meta)
        try:
            with ended_by(partial(requests.cancel, asked, "the host cancelled the call")):
                answer = asked.answer(max(0.0, until - monotonic()))
        except TimeoutError:
            requests.cancel(asked, "no answer in time")
            listed.problems.append(f"no answer within {limit_s:g} s")
            return listed
        cursor = listed.take(answer.fields or {})
        if cursor is None:
            return listed
        params = {"cursor": cursor}
