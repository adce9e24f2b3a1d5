"""Chat Completions: answers as this API sends them, and as servers do that speak it differently.

chunk    the role
comment  which keeps the connection alive
chunk    without content
chunk    a piece of reasoning, text or a call          any number
chunk    the finish reason
chunk    the tokens, if the request asks for them
[DONE]
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from fdstore.testing.chat_requests import check_chat, read_chat
from fdstore.testing.dialects import Dialect, Quirk, Sending, output_tokens, sent_tokens
from fdstore.testing.replies import Fail, Json, Text, Thinking, ToolUse, Turn
from fdstore.testing.wire import data_event, pieces, written

FINISH_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "refusal": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
}
"""The finish reason by a script's stop reason; others are sent as they are."""
DONE = b"data: [DONE]\n\n"
KEEP_ALIVE = b": keep-alive\n\n"


def completion(turn: Turn, sending: Sending) -> Json:
    """Return the complete answer. A refusal is in its own field, one without a text the work of a content
    filter; blocks of other APIs are left out."""
    text = "".join(block.text for block in turn.blocks if isinstance(block, Text))
    message: Json = {"role": "assistant", "content": text or None, "refusal": None}
    reason = turn.stop_reason or "end_turn"
    if reason == "refusal" and text:
        message |= {"content": None, "refusal": text}
    elif reason == "refusal":
        reason = "content_filter"
    thoughts = [block for block in turn.blocks if isinstance(block, Thinking)]
    if thoughts:
        message["reasoning_content"] = "".join(each.thinking for each in thoughts)
        message["reasoning_details"] = [_detail(index, each) for index, each in enumerate(thoughts)]
    calls = [
        {
            "id": block.id or next(sending.call_ids),
            "type": "function",
            "function": {"name": block.name, "arguments": written(block.input)},
            **block.extra,
        }
        for block in turn.blocks
        if isinstance(block, ToolUse)
    ]
    if calls:
        message["tool_calls"] = calls
        reason = reason if turn.stop_reason else "tool_use"
    choice = {"index": 0, "message": message, "finish_reason": FINISH_REASONS.get(reason, reason)}
    sent, given = sent_tokens(turn, sending), output_tokens(turn, [message])
    return {
        "id": f"chatcmpl-{sending.id}",
        "object": "chat.completion",
        "created": 0,
        "model": sending.model,
        "choices": [choice],
        "usage": {
            "prompt_tokens": sent,
            "completion_tokens": given,
            "total_tokens": sent + given,
            "prompt_tokens_details": {
                "cached_tokens": turn.usage.cache_read_input_tokens,
                "cache_write_tokens": turn.usage.cache_creation_input_tokens,
            },
        },
    }


def _detail(index: int, thought: Thinking) -> Json:
    own = {"text": thought.thinking, "signature": thought.signature}
    return {"type": "reasoning.text", "index": index, "format": "scripted", **own}


def events(finished: Json, body: Json, quirks: Collection[Quirk]) -> Iterator[bytes]:
    """Yield the chunks of a streamed answer."""
    [choice] = finished["choices"]
    base = {name: finished[name] for name in ("id", "created", "model")}

    def chunk(delta: Json, reason: str | None = None) -> bytes:
        choices = [{"index": 0, "delta": delta, "finish_reason": reason}]
        return data_event({**base, "object": "chat.completion.chunk", "choices": choices})

    yield chunk({"role": "assistant", "content": ""})
    yield KEEP_ALIVE
    yield chunk({})
    for delta in _deltas(choice["message"], quirks):
        yield chunk(delta)
        if "empty_deltas" in quirks:
            yield chunk({"content": None, "tool_calls": None, "reasoning_content": None})
            yield chunk({"content": "", "tool_calls": []})
    if "no_finish" not in quirks:
        reason = choice["finish_reason"]
        yield chunk({}, "stop" if "wrong_finish" in quirks and reason == "tool_calls" else reason)
    if (body.get("stream_options") or {}).get("include_usage") and "no_usage" not in quirks:
        usage = finished["usage"]
        yield data_event({**base, "object": "chat.completion.chunk", "choices": [], "usage": usage})
    if not {"no_done", "no_finish"}.intersection(quirks):
        yield DONE


def _deltas(message: Json, quirks: Collection[Quirk]) -> Iterator[Json]:
    for text in pieces(message.get("reasoning_content") or ""):
        yield {"reasoning_content": text}
    for detail in message.get("reasoning_details", ()):
        yield {"reasoning_details": [{**detail, "signature": None}]}
        yield {"reasoning_details": [{**detail, "text": ""}]}
    for name in ("content", "refusal"):
        for text in pieces(message[name] or ""):
            yield {name: text}
    for index, call in enumerate(message.get("tool_calls", ())):
        for piece in _call_pieces(call, quirks):
            if "no_index" not in quirks:
                piece["index"] = 0 if "same_index" in quirks else index
            yield {"tool_calls": [piece]}


def _call_pieces(call: Json, quirks: Collection[Quirk]) -> Iterator[Json]:
    name, arguments = call["function"]["name"], call["function"]["arguments"]
    opening = {key: value for key, value in call.items() if key != "id" or "no_ids" not in quirks}
    if "whole_arguments" in quirks:
        yield opening
        return
    yield {**opening, "function": {"name": name, "arguments": ""}}
    for piece in pieces(arguments):
        if "repeated_ids" in quirks:
            ids = {"id": call["id"]} if "id" in opening else {}
            yield {**ids, "type": "function", "function": {"name": name, "arguments": piece}}
        else:
            yield {"function": {"arguments": piece}}


def error_body(type: str, message: str, request_id: str) -> Json:
    return {"error": {"message": message, "type": type, "param": None, "code": None}}


def _failing(fail: Fail, request_id: str) -> bytes:
    return data_event(error_body(fail.type, fail.message, request_id))


DIALECT = Dialect(
    path="/v1/chat/completions",
    below="/v1",
    read=read_chat,
    check=check_chat,
    finish=completion,
    events=events,
    error=error_body,
    failing=_failing,
)
