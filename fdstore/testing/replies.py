"""Replies of a scripted model: frozen records, and the functions that create them.

    say("Done.")                                   one text, end_turn
    call("read_fd", fd="fd:1")                     one tool call, tool_use
    garbled("read_fd", '{"fd": ')                  one whose arguments are not JSON
    turn(think("..."), say("Both."), call(...), call(...))     several blocks in one message
    turn(say("Half a sen"), stop_reason="max_tokens")
    fail(529, retry_after=0.1)                     an HTTP error
    signed(call("add"), extra_content={...})       with fields that belong to the call in OpenAI's APIs
    cut(say("Never whole."), after_events=4)       a connection that drops in mid-answer
    slow(say("Late."), 0.5)                        any of them, later

Everything here is a value without ids or times, which the server adds, so a script can be used any number of
times. A `Turn` is both a whole reply and a part of a larger one.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from typing import Any

import msgspec

Json = dict[str, Any]
"""A JSON object as decoded."""

ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
"""The API's `error.type` by HTTP status."""


class Text(msgspec.Struct, frozen=True):
    """A text block."""

    text: str


class ToolUse(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """A tool call. `id` None: the server generates one. A string as `input` is sent unchanged, to simulate
    arguments that are not JSON. `extra` has fields that stand beside it in OpenAI's APIs, such as thought
    signatures, which models want back as they came."""

    name: str
    input: Json | str
    id: str | None = None
    extra: Json = {}


class Thinking(msgspec.Struct, frozen=True):
    """A thinking block; the API requires it back with the same text and signature. In Chat Completions it is
    in `reasoning_content` and `reasoning_details`, in the Responses API a reasoning item."""

    thinking: str
    signature: str


class RawBlock(msgspec.Struct, frozen=True):
    """A block of any other type, sent unchanged (a server tool's, or one unknown to the agent)."""

    block: Json


Block = Text | ToolUse | Thinking | RawBlock


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens to report. None: an estimate of four characters per token."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0


class Turn(msgspec.Struct, frozen=True):
    """One assistant message. `stop_reason` None: `tool_use` if it has a call, else `end_turn`."""

    blocks: tuple[Block, ...]
    stop_reason: str | None = None
    stop_sequence: str | None = None
    usage: Usage = Usage()

    def __post_init__(self) -> None:
        # Raises here, in the script, for arguments that JSON cannot represent.
        msgspec.json.encode(self.blocks)


class Fail(msgspec.Struct, frozen=True, kw_only=True):
    """An HTTP error in the API's format. `retry_after` is in seconds; `should_retry` overrides the SDK's
    decision, which otherwise depends on the status."""

    status: int
    type: str
    message: str
    retry_after: float | None = None
    should_retry: bool | None = None


class Cut(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that breaks off after `after_events` SSE events: the connection drops, or the API sends
    `error` as an event."""

    reply: Turn
    after_events: int
    error: Fail | None = None


class Slow(msgspec.Struct, frozen=True, kw_only=True):
    """A reply that starts after `seconds`."""

    reply: Turn | Fail | Cut
    seconds: float


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """A streamed answer that pauses after `after_events` SSE events until `until` is set."""

    reply: Turn | Cut
    after_events: int
    until: threading.Event


Reply = Turn | Fail | Cut | Slow | Held


def signature_of(thinking: str) -> str:
    """Return the signature that `think` computes for a text; a mismatch means that the text was altered."""
    return "scripted-" + hashlib.sha256(thinking.encode("utf-8")).hexdigest()[:32]


def say(text: str) -> Turn:
    """Answer `text` and end the turn.

    >>> say("Done.").blocks
    (Text(text='Done.'),)
    """
    return Turn((Text(text),))


def call(
    name: str, arguments: Mapping[str, object] | None = None, /, *, id: str | None = None, **more: object
) -> Turn:
    """Call one tool. Arguments are keywords, or a mapping for names that cannot be keywords here.

    >>> call("read_fd", fd="fd:1", start=2).blocks[0].input
    {'fd': 'fd:1', 'start': 2}
    >>> call("lookup", {"id": 7}, id="toolu_x").blocks
    (ToolUse(name='lookup', input={'id': 7}, id='toolu_x'),)
    """
    return Turn((ToolUse(name, {**(arguments or {}), **more}, id),))


def signed(reply: Turn, **extra: object) -> Turn:
    """Add fields to the calls of a reply, which OpenAI's APIs send beside them; the Messages API has none.

    >>> signed(call("add"), extra_content={"google": {"thought_signature": "EpwB"}}).blocks[0].extra
    {'extra_content': {'google': {'thought_signature': 'EpwB'}}}
    """
    blocks = (
        msgspec.structs.replace(block, extra=extra) if isinstance(block, ToolUse) else block
        for block in reply.blocks
    )
    return msgspec.structs.replace(reply, blocks=tuple(blocks))


def garbled(name: str, arguments: str, *, id: str | None = None) -> Turn:
    """Call one tool with arguments that are not JSON, as models do occasionally. Only streamed answers
    support this.

    >>> garbled("read_fd", '{"fd": ').blocks[0].input
    '{"fd": '
    """
    return Turn((ToolUse(name, arguments, id),))


def think(thinking: str, signature: str | None = None) -> Turn:
    """Return a thinking block, to put before others: `turn(think("It is short."), say("Yes."))`."""
    return Turn((Thinking(thinking, signature_of(thinking) if signature is None else signature),))


def turn(
    *parts: Turn | Mapping[str, object],
    stop_reason: str | None = None,
    stop_sequence: str | None = None,
    usage: Usage | None = None,
) -> Turn:
    """Combine parts to one assistant message: texts, parallel calls, thinking, or a raw block as a dict.

    Only the blocks of the parts are used. `stop_reason` may be any string, unknown ones included; `turn()`
    without parts is the empty answer that the real API returns at times.

    >>> turn(say("Two at once."), call("a"), call("b"), stop_reason="max_tokens").stop_reason
    'max_tokens'
    """
    blocks: list[Block] = []
    for part in parts:
        if isinstance(part, Turn):
            blocks.extend(part.blocks)
        elif isinstance(part.get("type"), str):
            blocks.append(RawBlock(dict(part)))
        else:
            raise ValueError("a raw block needs a type, as in {'type': 'server_tool_use', ...}")
    return Turn(tuple(blocks), stop_reason, stop_sequence, usage or Usage())


def fail(
    status: int = 529,
    type: str | None = None,
    message: str = "the script says that this request fails",
    retry_after: float | None = None,
    should_retry: bool | None = None,
) -> Fail:
    """Answer with an HTTP error; `type` defaults to the one for `status`.

    `retry_after` (seconds) is sent as `retry-after` in whole seconds, rounded up, and as
    `retry-after-ms`, so that a test need not wait for a whole second; `should_retry` as
    `x-should-retry`.

    >>> fail(429).type, fail(500).type, fail(529).type
    ('rate_limit_error', 'api_error', 'overloaded_error')
    """
    known = ERROR_TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")
    return Fail(
        status=status,
        type=type or known,
        message=message,
        retry_after=retry_after,
        should_retry=should_retry,
    )


def cut(reply: Turn, after_events: int, error: Fail | None = None) -> Cut:
    """Break a streamed reply off after `after_events` SSE events (0: right after the headers).

    The connection drops before the end of the chunked body; with `error` the stream ends with that error as
    an event, like an overload in mid-answer. An answer that is not streamed breaks off in the middle of its
    JSON.
    """
    if after_events < 0:
        raise ValueError(f"after_events is {after_events}; it counts events from 0")
    return Cut(reply=reply, after_events=after_events, error=error)


def slow(reply: Turn | Fail | Cut, seconds: float) -> Slow:
    """Start `reply` after `seconds`. Closing the model ends the wait immediately."""
    return Slow(reply=reply, seconds=seconds)


def held(reply: Turn | Cut, after_events: int, until: threading.Event) -> Held:
    """Pause a streamed `reply` after `after_events` SSE events until the event is set, to inspect what an
    agent does with half an answer. A text is sent in up to three deltas, the first of which is the fourth
    event. Closing the model ends the wait immediately."""
    if after_events < 0:
        raise ValueError(f"after_events is {after_events}; it counts events from 0")
    return Held(reply=reply, after_events=after_events, until=until)
