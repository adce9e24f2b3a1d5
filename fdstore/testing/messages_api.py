"""The Messages API: answers as it sends them.

message_start
  content_block_start  (ping)  content_block_delta ...  content_block_stop     for each block
message_delta          the stop reason and the tokens
message_stop
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from fdstore.testing.dialects import Dialect, Quirk, Sending, output_tokens
from fdstore.testing.replies import Block, Fail, Json, RawBlock, Text, Thinking, ToolUse, Turn
from fdstore.testing.requests import read_request
from fdstore.testing.rules import check_creation
from fdstore.testing.wire import named_event, pieces, written


def message(turn: Turn, sending: Sending) -> Json:
    """Return the complete message."""
    content = [_block(block, sending.call_ids) for block in turn.blocks]
    has_call = any(isinstance(block, ToolUse) for block in turn.blocks)
    usage = turn.usage
    return {
        "id": sending.id,
        "type": "message",
        "role": "assistant",
        "model": sending.model,
        "content": content,
        "stop_reason": turn.stop_reason or ("tool_use" if has_call else "end_turn"),
        "stop_sequence": turn.stop_sequence,
        "usage": {
            "input_tokens": sending.input_tokens if usage.input_tokens is None else usage.input_tokens,
            "output_tokens": output_tokens(turn, content),
            "cache_creation_input_tokens": usage.cache_creation_input_tokens,
            "cache_read_input_tokens": usage.cache_read_input_tokens,
        },
    }


def error_body(type: str, message: str, request_id: str) -> Json:
    return {"type": "error", "error": {"type": type, "message": message}, "request_id": request_id}


def _failing(fail: Fail, request_id: str) -> bytes:
    return named_event(error_body(fail.type, fail.message, request_id))


def _events(finished: Json, body: Json, quirks: Collection[Quirk]) -> Iterator[bytes]:
    return map(named_event, events(finished))


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
            fragments = ["", *pieces(written(block["input"]))]
            return {**block, "input": {}}, [
                {"type": "input_json_delta", "partial_json": fragment} for fragment in fragments
            ]
        case "thinking":
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"])]
            signed = {"type": "signature_delta", "signature": block["signature"]}
            return {**block, "thinking": "", "signature": ""}, [*deltas, signed]
    return block, []


DIALECT = Dialect(
    path="/v1/messages",
    read=read_request,
    check=check_creation,
    finish=message,
    events=_events,
    error=error_body,
    failing=_failing,
)
