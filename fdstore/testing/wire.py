"""Encode answers as the Messages API does: JSON documents, server-sent events, errors.

    message_start
      content_block_start  (ping)  content_block_delta ...  content_block_stop     for each block
    message_delta          the stop reason and the tokens
    message_stop

An `HttpAnswer` is a value that holds the bytes of a response; only connection.py uses sockets. Deltas split
texts and JSON arguments at arbitrary characters, as the API does, to catch agents that parse too early.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import msgspec

from fdstore.testing.replies import (
    ERROR_TYPES,
    Block,
    Cut,
    Fail,
    Json,
    RawBlock,
    Text,
    Thinking,
    ToolUse,
    Turn,
)

CHARS_PER_TOKEN = 4
PIECES = 3
"""Number of deltas for a text or the arguments of a call, if they are long enough."""


class HttpAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A response: one JSON body, or the events of a stream. With `dropped` the connection closes after the
    pieces, before the announced end. `hold` is called before piece `hold_at` (from 0) and returns whether to
    continue."""

    status: int
    pieces: tuple[bytes, ...]
    streamed: bool = False
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


def failure(fail: Fail, request_id: str, details: Json | None = None) -> HttpAnswer:
    """Return an error in the API's format."""
    headers: dict[str, str] = {}
    if fail.retry_after is not None:
        headers["retry-after"] = str(math.ceil(fail.retry_after))
        headers["retry-after-ms"] = f"{fail.retry_after * 1000:.0f}"
    if fail.should_retry is not None:
        headers["x-should-retry"] = "true" if fail.should_retry else "false"
    body = error_body(fail.type, fail.message, request_id)
    if details is not None:
        body["error"]["details"] = details
    return document(body, fail.status, headers)


def error(status: int, message: str, request_id: str, details: Json | None = None) -> HttpAnswer:
    """Return an error whose type follows from its status."""
    return failure(Fail(status=status, type=ERROR_TYPES[status], message=message), request_id, details)


def error_body(type: str, message: str, request_id: str) -> Json:
    return {"type": "error", "error": {"type": type, "message": message}, "request_id": request_id}


def message(turn: Turn, *, id: str, model: str, call_ids: Iterator[str], input_tokens: int) -> Json:
    """Return the complete message. Calls without an id get the next of `call_ids`."""
    content = [_block(block, call_ids) for block in turn.blocks]
    has_call = any(isinstance(block, ToolUse) for block in turn.blocks)
    usage = turn.usage
    output_tokens = tokens(sum(len(msgspec.json.encode(block)) for block in content))
    return {
        "id": id,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": turn.stop_reason or ("tool_use" if has_call else "end_turn"),
        "stop_sequence": turn.stop_sequence,
        "usage": {
            "input_tokens": input_tokens if usage.input_tokens is None else usage.input_tokens,
            "output_tokens": output_tokens if usage.output_tokens is None else usage.output_tokens,
            "cache_creation_input_tokens": usage.cache_creation_input_tokens,
            "cache_read_input_tokens": usage.cache_read_input_tokens,
        },
    }


def whole(finished: Json, *, streamed: bool) -> HttpAnswer:
    """Return an answer with the complete message."""
    if not streamed:
        return document(finished)
    return HttpAnswer(status=200, pieces=tuple(map(_encoded, events(finished))), streamed=True)


def broken(finished: Json, cut: Cut, request_id: str, *, streamed: bool) -> HttpAnswer:
    """Return an answer that breaks off as `cut` specifies."""
    if not streamed:
        body = msgspec.json.encode(finished)
        return HttpAnswer(status=200, pieces=(body[: len(body) // 2],), dropped=True, length=len(body))
    shown = list(events(finished))[: cut.after_events]
    if cut.error is not None:
        shown.append(error_body(cut.error.type, cut.error.message, request_id))
    return HttpAnswer(
        status=200, pieces=tuple(map(_encoded, shown)), streamed=True, dropped=cut.error is None
    )


def events(finished: Json) -> Iterator[Json]:
    """Yield the events of a streamed message."""
    usage = finished["usage"]
    start: Json = {
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**usage, "output_tokens": 1},
    }
    yield {"type": "message_start", "message": {**finished, **start}}
    for index, block in enumerate(finished["content"]):
        opening, deltas = _start_and_deltas(block)
        yield {"type": "content_block_start", "index": index, "content_block": opening}
        if index == 0:
            yield {"type": "ping"}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    delta = {"stop_reason": finished["stop_reason"], "stop_sequence": finished["stop_sequence"]}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": usage["output_tokens"]}}
    yield {"type": "message_stop"}


def pieces(text: str) -> list[str]:
    """Split `text` into up to `PIECES` non-empty parts."""
    size = max(1, math.ceil(len(text) / PIECES))
    return [text[start : start + size] for start in range(0, len(text), size)]


def _block(block: Block, call_ids: Iterator[str]) -> Json:
    match block:
        case Text(text):
            return {"type": "text", "text": text}
        case ToolUse(name, input, id):
            return {"type": "tool_use", "id": id or next(call_ids), "name": name, "input": input}
        case Thinking(thinking, signature):
            return {"type": "thinking", "thinking": thinking, "signature": signature}
        case RawBlock(raw):
            return raw


def _start_and_deltas(block: Json) -> tuple[Json, list[Json]]:
    """Return a block as sent in `content_block_start`, and the deltas that complete it."""
    match block["type"]:
        case "text":
            deltas = [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
            return {**block, "text": ""}, deltas
        case "tool_use":
            # The API's first fragment is empty, which catches parsers that expect JSON immediately.
            value = block["input"]
            arguments = value if isinstance(value, str) else msgspec.json.encode(value).decode("utf-8")
            fragments = ["", *pieces(arguments)]
            return {**block, "input": {}}, [
                {"type": "input_json_delta", "partial_json": fragment} for fragment in fragments
            ]
        case "thinking":
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"])]
            signed = {"type": "signature_delta", "signature": block["signature"]}
            return {**block, "thinking": "", "signature": ""}, [*deltas, signed]
    return block, []


def _encoded(event: Json) -> bytes:
    name: str = event["type"]
    return b"event: %s\ndata: %s\n\n" % (name.encode("utf-8"), msgspec.json.encode(event))
