"""The APIs that a scripted model serves, by their paths. One script answers requests to any of them.

A dialect reads and checks requests, and writes answers and errors. `Request` and `Turn`, between them, are
the same for all: in the form of the Messages API.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Literal

import msgspec

from fdstore.testing.replies import ERROR_TYPES, Cut, Fail, Json, Turn
from fdstore.testing.requests import Request
from fdstore.testing.wire import HttpAnswer, document, failure, tokens

Quirk = Literal[
    "whole_arguments",
    "repeated_ids",
    "no_ids",
    "no_index",
    "same_index",
    "empty_deltas",
    "wrong_finish",
    "no_finish",
    "no_done",
    "no_usage",
    "not_streamed",
]
"""How servers that speak another's API differ from it in their streams:

    whole_arguments  the arguments of a call arrive in one piece, with its name
    repeated_ids     each piece of a call has its id and its name
    no_ids           calls have no id
    no_index         pieces of calls have no index
    same_index       all calls have index 0
    empty_deltas     pieces without content, or with null, stand between the others
    wrong_finish     an answer with calls ends with the reason of one without
    no_finish        the stream closes before it says why the answer ends
    no_done          the stream closes without the line that ends it
    no_usage         tokens are not counted
    not_streamed     the answer is one JSON document, whatever the request says
"""


class Sending(msgspec.Struct, frozen=True, kw_only=True):
    """What the server adds to a reply. Calls without an id get the next of `call_ids`. `turn` is the number
    of answers before it in the conversation."""

    id: str
    turn: int = 0
    model: str
    call_ids: Iterator[str]
    input_tokens: int


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """One API.

    path      where requests are sent
    below     the beginning of it that the URL of a server has, as the SDK takes that
    streams   the content type of a streamed answer
    read      parses a body and the headers of a request; anything that is an object
    check     raises `RequestRefused` for a body that the API would not accept
    finish    the complete answer, as a request gets it that is not streamed
    events    its events as they are sent, for the body of a request and with quirks
    error     the body of an error, by type, message and the id of the request
    failing   the event of an error in the middle of an answer
    tells_caches  whether an answer tells which tokens came from a cache
    """

    path: str
    below: str = ""
    streams: str = "text/event-stream; charset=utf-8"
    read: Callable[[Json, Mapping[str, str]], Request]
    check: Callable[[Json], None]
    finish: Callable[[Turn, Sending], Json]
    events: Callable[[Json, Json, Collection[Quirk]], Iterator[bytes]]
    error: Callable[[str, str, str], Json]
    failing: Callable[[Fail, str], bytes]
    tells_caches: bool = True

    @property
    def types_errors(self) -> bool:
        """Whether errors of the API have a type."""
        return isinstance(self.error("type", "message", "id")["error"], dict)

    def failed(self, fail: Fail, request_id: str, details: Json | None = None) -> HttpAnswer:
        """Return an error in the API's format."""
        body = self.error(fail.type, fail.message, request_id)
        if details is not None:
            body["error"]["details"] = details
        return failure(fail, body)

    def refused(self, status: int, message: str, request_id: str, details: Json | None = None) -> HttpAnswer:
        """Return an error whose type follows from its status."""
        fail = Fail(status=status, type=ERROR_TYPES[status], message=message)
        return self.failed(fail, request_id, details)

    def whole(self, finished: Json, body: Json, quirks: Collection[Quirk]) -> HttpAnswer:
        """Return an answer with the complete message, streamed if the request wants it."""
        if not body.get("stream") or "not_streamed" in quirks:
            return document(finished)
        return HttpAnswer(
            status=200, pieces=tuple(self.events(finished, body, quirks)), streamed=self.streams
        )

    def broken(
        self, finished: Json, body: Json, quirks: Collection[Quirk], cut: Cut, request_id: str
    ) -> HttpAnswer:
        """Return an answer that breaks off as `cut` specifies."""
        if not body.get("stream") or "not_streamed" in quirks:
            sent = msgspec.json.encode(finished)
            return HttpAnswer(status=200, pieces=(sent[: len(sent) // 2],), dropped=True, length=len(sent))
        shown = list(self.events(finished, body, quirks))[: cut.after_events]
        if cut.error is not None:
            shown.append(self.failing(cut.error, request_id))
        return HttpAnswer(status=200, pieces=tuple(shown), streamed=self.streams, dropped=cut.error is None)


def output_tokens(turn: Turn, parts: list[Json]) -> int:
    """Return the output tokens that a turn reports, by default an estimate by the parts that are sent."""
    counted = turn.usage.output_tokens
    return tokens(sum(len(msgspec.json.encode(part)) for part in parts)) if counted is None else counted


def sent_tokens(turn: Turn, sending: Sending) -> int:
    """Return the input tokens that a turn reports, those of caches too, by default an estimate."""
    usage = turn.usage
    counted = sending.input_tokens if usage.input_tokens is None else usage.input_tokens
    return counted + usage.cache_creation_input_tokens + usage.cache_read_input_tokens
