"""Lists that the gateway itself asks a server for, without one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from fdstore.errors import InvalidArgument
from fdstore.hosts.gateway.messages import Message
from fdstore.hosts.gateway.own_requests import OwnRequests, ServerGone
from fdstore.hosts.gateway.paged_list import MAX_PAGES, whole_list
from fdstore.hosts.gateway.upstream import UpstreamProcess


@contextmanager
def never(end: Callable[[], None]) -> Iterator[None]:
    """The end of what goes on for ever."""
    yield


class Server:
    """A server that answers with the next of some answers, and then no more."""

    def __init__(self, *answers: dict[str, Any]) -> None:
        self.calls = OwnRequests[None](self._take)
        self.asked: list[Any] = []
        self._answers = list(answers)

    def _take(self, line: Any) -> None:
        asked = json.loads(bytes(line))
        self.asked.append(asked)
        if "id" in asked and self._answers:
            assert self.say(asked["id"], self._answers.pop(0))

    def say(self, id: Any, answer: dict[str, Any]) -> bool:
        return bool(self.calls.take(Message(json.dumps({"jsonrpc": "2.0", "id": id, **answer}).encode())))


def page(name: str, **more: Any) -> dict[str, Any]:
    return {"result": {"tools": [{"name": name}], **more}}


def test_a_list_that_stops_coming_is_what_has_come() -> None:
    server = Server(page("a", nextCursor="2"))

    listed = whole_list(server.calls, "tools/list", {}, never, 0.05)

    assert list(listed.items) == ["a"]
    assert listed.problems == ["no answer within 0.05 s"]
    assert [each["method"] for each in server.asked] == 2 * ["tools/list"] + ["notifications/cancelled"]
    late = server.asked[1]["id"]
    assert server.asked[2]["params"]["requestId"] == late
    assert server.say(late, page("b")), "a late answer is for no host"


def test_a_list_that_fails_in_the_middle_is_what_has_come() -> None:
    server = Server(page("a", nextCursor="2"), {"error": {"code": -1, "message": "out of order"}})

    listed = whole_list(server.calls, "tools/list", {}, never)

    assert (list(listed.items), listed.problems) == (["a"], ["out of order"])


@pytest.mark.parametrize("cursors", [["", ""], ["a", "a"], ["a", "b", "a"], [1, 1], [{"a": 1}, {"a": 1}]])
def test_a_list_whose_cursor_was_seen_before_has_ended(cursors: list[Any]) -> None:
    server = Server(*(page(f"t{number}", nextCursor=cursor) for number, cursor in enumerate(cursors)))

    listed = whole_list(server.calls, "tools/list", {}, never)

    assert len(listed.items) == len(server.asked) == len(cursors)
    assert listed.problems[0].startswith("it names a page again")


def test_a_list_has_at_most_a_thousand_pages() -> None:
    server = Server(*(page(f"t{number}", nextCursor=str(number)) for number in range(MAX_PAGES + 1)))

    listed = whole_list(server.calls, "tools/list", {}, never)

    assert len(listed.items) == len(server.asked) == MAX_PAGES


def test_a_server_that_ends_meanwhile_is_told() -> None:
    server = Server()

    @contextmanager
    def ending(end: Callable[[], None]) -> Iterator[None]:
        server.calls.server_ended("the server has ended")
        yield

    with pytest.raises(ServerGone, match="the server has ended"):
        whole_list(server.calls, "tools/list", {}, ending)


@pytest.mark.parametrize("env", [{"A": "\0"}, {"A": "\ud83d"}])
def test_a_variable_that_no_program_can_have_is_told(env: dict[str, str]) -> None:
    with pytest.raises(InvalidArgument, match="true cannot be started: "):
        UpstreamProcess(["true"], env=env)
