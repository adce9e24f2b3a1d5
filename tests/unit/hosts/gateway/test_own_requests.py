"""How requests of the gateway's own end."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from fdstore.hosts.gateway.messages import Message
from fdstore.hosts.gateway.own_requests import (
    CallCancelled,
    NoAnswer,
    OwnRequest,
    OwnRequests,
    ServerGone,
    ask,
)


class Server(OwnRequests[None]):
    """A server that says nothing, with the lines that it gets."""

    def __init__(self) -> None:
        self.lines: list[Any] = []
        super().__init__(self.lines.append)

    def call(self) -> OwnRequest[None]:
        return ask(self, "tools/call", {"name": "echo"}, {}, self.lines.append)


def said(id: str, **more: Any) -> Message:
    return Message(json.dumps({"jsonrpc": "2.0", "id": id, **more}).encode())


ENDS: dict[str, tuple[Callable[[Server, Any], object], type[NoAnswer] | None]] = {
    "answered": (lambda own, request: own.take(said(request.id, result={})), None),
    "unreadable": (
        lambda own, request: own.take(Message(b'{"id": "' + request.id.encode() + b'", oops')),
        None,
    ),
    "cancelled": (lambda own, request: own.cancel(request, "late"), CallCancelled),
    "gone": (lambda own, _: own.server_ended("it has ended"), ServerGone),
}


@pytest.mark.parametrize("first", ENDS)
@pytest.mark.parametrize("second", ENDS)
def test_a_request_ends_once_and_what_comes_later_is_for_nobody(first: str, second: str) -> None:
    own = Server()
    request = own.call()
    end, error = ENDS[first]
    end(own, request)

    ENDS[second][0](own, request)

    assert isinstance(request.end.exception(), error or type(None))
    assert own.open == []
    assert own.take(said(request.id, result={})) is True


def test_a_request_that_has_ended_is_not_taken_back() -> None:
    own = Server()
    request = own.call()
    own.cancel(request, "no answer in time")

    own.cancel(request)

    [_, note] = map(json.loads, own.lines)
    assert note["method"] == "notifications/cancelled"
    assert note["params"] == {"requestId": request.id, "reason": "no answer in time"}


def test_what_a_server_is_asked_after_its_end_has_ended_at_once() -> None:
    own = Server()
    own.server_ended("it has ended")

    with pytest.raises(ServerGone, match="it has ended"):
        own.call().end.result(0)


def test_progress_ends_nothing() -> None:
    own = Server()
    request = own.call()
    progress = {"method": "notifications/progress", "params": {"progressToken": request.id, "progress": 1}}

    assert own.take(Message(json.dumps(progress).encode())) is True
    assert (own.lines[1:], own.open) == (["1"], [request])


def test_what_has_another_id_is_of_the_host() -> None:
    own, other = Server(), Server()
    own.call()

    assert own.take(said(other.call().id, result={})) is False
    assert own.take(said("1", result={"text": own.mark.decode()})) is False
