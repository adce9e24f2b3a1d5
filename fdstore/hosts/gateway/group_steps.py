"""What is to be done for a group of servers: steps that decisions about messages consist of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Raw

from fdstore.hosts.gateway.json_scan import Buffer
from fdstore.hosts.gateway.messages import UNANSWERED, error_answer, line_of


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


def notice(method: str) -> ToHost:
    """Return a notification for the host."""
    return ToHost(line_of({"jsonrpc": "2.0", "method": method}))


def result(id: Raw, value: Mapping[str, Any]) -> ToHost:
    return ToHost(line_of({"jsonrpc": "2.0", "id": id, "result": value}))


def refusal(id: Raw, problem: str, code: int = UNANSWERED) -> ToHost:
    """Return the answer to a request that no server answers."""
    return ToHost(error_answer(id, problem, code) + b"\n")
