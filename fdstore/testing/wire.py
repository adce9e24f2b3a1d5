"""Answers as HTTP sends them: an `HttpAnswer` is a value that holds the bytes of a response, and only
connection.py uses sockets."""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec

from fdstore.testing.replies import Fail, Json

CHARS_PER_TOKEN = 4
PIECES = 3
"""Number of deltas for a text or the arguments of a call, if they are long enough."""


class HttpAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A response: one JSON body, or the events of a stream, whose content type is `streamed`. With `dropped`
    the connection closes after the pieces, before the announced end. `hold` is called before piece `hold_at`
    (from 0) and returns whether to continue."""

    status: int
    pieces: tuple[bytes, ...]
    streamed: str = ""
    dropped: bool = False
    length: int | None = None
    headers: dict[str, str] = {}
    hold_at: int | None = None
    hold: Callable[[], bool] | None = None


def tokens(size: int) -> int:
    """Estimate the tokens in `size` characters."""
    return max(1, math.ceil(size / CHARS_PER_TOKEN))


def document(value: Json, status: int = 200, headers: dict[str, str] | None = None) -> HttpAnswer:
    """Return a JSON answer."""
    return HttpAnswer(status=status, pieces=(msgspec.json.encode(value),), headers=headers or {})


def failure(fail: Fail, body: Json) -> HttpAnswer:
    """Return an error with this body."""
    headers: dict[str, str] = {}
    if fail.retry_after is not None:
        headers["retry-after"] = str(math.ceil(fail.retry_after))
        headers["retry-after-ms"] = f"{fail.retry_after * 1000:.0f}"
    if fail.should_retry is not None:
        headers["x-should-retry"] = "true" if fail.should_retry else "false"
    return document(body, fail.status, headers)


def pieces(text: str) -> list[str]:
    """Split `text` into up to `PIECES` non-empty parts, at arbitrary characters as APIs do, to catch agents
    that parse too early."""
    size = max(1, math.ceil(len(text) / PIECES))
    return [text[start : start + size] for start in range(0, len(text), size)]


def written(arguments: Json | str) -> str:
    """Return the arguments of a call as JSON; a string is sent unchanged."""
    return arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode("utf-8")


def named_event(event: Json) -> bytes:
    """Return a server-sent event that is named by its type."""
    name: str = event["type"]
    return b"event: %s\n" % name.encode("utf-8") + data_event(event)


def data_event(value: Json) -> bytes:
    """Return a server-sent event without a name."""
    return b"data: %s\n\n" % msgspec.json.encode(value)
