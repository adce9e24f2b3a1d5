"""The Responses API: answers as it sends them.

response.created, response.in_progress
  response.output_item.added   response.content_part.added   deltas ...   response.output_item.done
                                                                          for each item
response.completed       the whole response; `response.incomplete` if it was cut short
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from fdstore.testing.dialects import Dialect, Quirk, Sending, output_tokens, sent_tokens
from fdstore.testing.replies import Block, Fail, Json, RawBlock, Text, Thinking, ToolUse, Turn
from fdstore.testing.responses_requests import ENCRYPTED, check_responses, read_responses
from fdstore.testing.wire import named_event, pieces, written

INCOMPLETE = {"max_tokens": "max_output_tokens", "refusal": "content_filter"}
"""The reason why a response is incomplete by a script's stop reason; others are sent as they are."""
COMPLETE = (None, "end_turn", "tool_use", "stop_sequence", "refusal")


def response(turn: Turn, sending: Sending) -> Json:
    """Return the complete response. A refusal without a text is the work of a content filter."""
    is_refusal = turn.stop_reason == "refusal" and any(isinstance(each, Text) for each in turn.blocks)
    output = [
        # the same for a request that is repeated
        _item(block, f"{sending.turn}_{number}", sending.call_ids, is_refusal=is_refusal)
        for number, block in enumerate(turn.blocks)
    ]
    details = None
    if turn.stop_reason not in COMPLETE or (turn.stop_reason == "refusal" and not is_refusal):
        details = {"reason": INCOMPLETE.get(str(turn.stop_reason), turn.stop_reason)}
    sent, given = sent_tokens(turn, sending), output_tokens(turn, output)
    return {
        "id": f"resp_{sending.id}",
        "object": "response",
        "created_at": 0,
        "model": sending.model,
        "status": "incomplete" if details else "completed",
        "incomplete_details": details,
        "error": None,
        "output": output,
        "usage": {
            "input_tokens": sent,
            "input_tokens_details": {
                "cached_tokens": turn.usage.cache_read_input_tokens,
                "cache_write_tokens": turn.usage.cache_creation_input_tokens,
            },
            "output_tokens": given,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": sent + given,
        },
    }


def _item(block: Block, id: str, call_ids: Iterator[str], *, is_refusal: bool) -> Json:
    match block:
        case Text(text):
            part: Json = {"type": "output_text", "text": text, "annotations": []}
            if is_refusal:
                part = {"type": "refusal", "refusal": text}
            own = {"role": "assistant", "status": "completed", "content": [part]}
            return {"type": "message", "id": f"msg_{id}", **own}
        case ToolUse(name, input, call_id, extra):
            own = {"call_id": call_id or next(call_ids), "name": name, "arguments": written(input)}
            return {"type": "function_call", "id": f"fc_{id}", "status": "completed", **own, **extra}
        case Thinking(thinking, signature):
            summary = [{"type": "summary_text", "text": thinking}]
            return {"type": "reasoning", "id": f"rs_{id}", "summary": summary, "encrypted_content": signature}
        case RawBlock(raw):
            return raw


def events(finished: Json, body: Json, quirks: Collection[Quirk]) -> Iterator[bytes]:
    """Yield the events of a streamed response; the first two together."""
    finished = {**finished, "output": [_shown(item, body) for item in finished["output"]]}
    if "no_usage" in quirks:
        finished["usage"] = None
    begun = {**finished, "status": "in_progress", "incomplete_details": None, "output": [], "usage": None}
    yield b"".join(
        named_event({"type": f"response.{name}", "response": begun}) for name in ("created", "in_progress")
    )
    for index, item in enumerate(finished["output"]):
        yield from _item_events(index, item)
    if "no_finish" not in quirks:
        yield named_event({"type": f"response.{finished['status']}", "response": finished})


def _shown(item: Json, body: Json) -> Json:
    """Return an item as a request gets it: reasoning in encrypted form only if it asks for that."""
    if item["type"] != "reasoning" or ENCRYPTED in (body.get("include") or ()):
        return item
    return {name: value for name, value in item.items() if name != "encrypted_content"}


def _item_events(index: int, item: Json) -> Iterator[bytes]:
    place = {"output_index": index, "item_id": item.get("id", "")}
    unfinished = {"content": [], "arguments": "", "summary": []}
    opening = {name: unfinished.get(name, value) for name, value in item.items()}
    yield named_event({"type": "response.output_item.added", "output_index": index, "item": opening})
    match item:
        case {"type": "message", "content": [part]}:
            kind = part["type"]
            key = "text" if kind == "output_text" else "refusal"
            place |= {"content_index": 0}
            yield named_event({"type": "response.content_part.added", **place, "part": {**part, key: ""}})
            for piece in pieces(part[key]):
                yield named_event({"type": f"response.{kind}.delta", **place, "delta": piece})
        case {"type": "function_call", "arguments": arguments}:
            kind = "response.function_call_arguments"
            for piece in ("", *pieces(arguments)):
                yield named_event({"type": f"{kind}.delta", **place, "delta": piece})
            yield named_event({"type": f"{kind}.done", **place, "arguments": arguments})
        case {"type": "reasoning", "summary": [{"text": text}]}:
            for piece in pieces(text):
                delta = {**place, "summary_index": 0, "delta": piece}
                yield named_event({"type": "response.reasoning_summary_text.delta", **delta})
    yield named_event({"type": "response.output_item.done", "output_index": index, "item": item})


def error_body(type: str, message: str, request_id: str) -> Json:
    return {"error": {"message": message, "type": type, "param": None, "code": None}}


def _failing(fail: Fail, request_id: str) -> bytes:
    return named_event({"type": "error", "code": fail.type, "message": fail.message, "param": None})


DIALECT = Dialect(
    path="/v1/responses",
    below="/v1",
    read=read_responses,
    check=check_responses,
    finish=response,
    events=events,
    error=error_body,
    failing=_failing,
)
