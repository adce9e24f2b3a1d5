"""The Responses API: the body of a request, and an answer from the events of its stream.

Stateless: nothing is stored at the provider (`store: false`), and each request has the whole conversation,
with the reasoning of the model in encrypted form. An answer is a list of items. Each becomes a block of the
journal, which keeps the item as it came beside what people see of it, so that items are sent back in order:

    item            block       kept
    message         text        the item without its text
    function_call   tool_use    the item without its call_id, name and arguments
    reasoning       thinking    the whole item, whose summary people see
    any other       item        the whole item

Reasoning at the end of an answer, which no other item follows, is not sent back, since the API refuses it;
likewise reasoning that has neither encrypted nor readable content. Pure: events in, an `Assistant` out.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec

from fdstore.agents.loop.answer import assemble, count_of
from fdstore.agents.loop.conversation import Assistant
from fdstore.agents.loop.models.base import ModelRequest
from fdstore.agents.loop.models.message_blocks import (
    ERROR_MARK,
    Attachment,
    Block,
    attachment_of,
    blocks_of,
    keep,
    kept_for,
    result_text,
    text_of,
)
from fdstore.model.records import TokenUsage
from fdstore.tools.definition_shapes import in_shape

PROVIDER = "openai-responses"
OPTIONAL = ("include",)
"""What a server may not know: it is left out once it was refused by its name."""
ENCRYPTED = "reasoning.encrypted_content"

STOP_REASONS = {"max_output_tokens": "max_tokens", "content_filter": "refusal"}
"""The stop reasons of the journal by the reason why a response is incomplete; others are kept as they are."""


class ResponseFailed(Exception):
    """The API failed after it began to answer: `body` is its error."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__(body)
        self.body = body


def responses_body(request: ModelRequest, refused: Collection[str] = ()) -> dict[str, Any]:
    """Return the body of a request, without the `OPTIONAL` parts that its server has `refused`."""
    parameters = dict(request.parameters)
    limit = parameters.pop("max_tokens", None)
    if "max_output_tokens" not in parameters and limit is not None:
        parameters["max_output_tokens"] = limit
    body: dict[str, Any] = {
        "model": request.model,
        "input": input_items(request.messages),
        "store": False,
        "stream": True,
    }
    if "include" not in refused:
        body["include"] = [ENCRYPTED]
    if request.system:
        body["instructions"] = request.system
    if request.tools:
        body["tools"] = in_shape(request.tools, "openai-responses")
    return body | parameters


def input_items(messages: list[Block]) -> list[Block]:
    """Return a conversation in the form of the Messages API as items of the Responses API."""
    items: list[Block] = []
    for message in messages:
        blocks = blocks_of(message["content"])
        if message["role"] == "assistant":
            items += _answer(blocks)
        else:
            items += _results_and_text(blocks)
    return items


def _answer(blocks: list[Block]) -> list[Block]:
    items = [item for block in blocks if (item := _item(block))]
    while items and items[-1].get("type") == "reasoning":
        items.pop()
    return items


def _item(block: Block) -> Block | None:
    kept = kept_for(block, PROVIDER)
    match block.get("type"):
        case "text":
            part = {"type": "output_text", "text": block["text"], "annotations": []}
            return {"type": "message", "role": "assistant", **kept, "content": [part]}
        case "tool_use":
            arguments = msgspec.json.encode(block["input"]).decode("utf-8")
            own = {"call_id": block["id"], "name": block["name"], "arguments": arguments}
            return {"type": "function_call", **kept, **own}
        case "thinking" if not (kept.get("encrypted_content") or kept.get("content")):
            return None
    return kept or None


def _results_and_text(blocks: list[Block]) -> list[Block]:
    items: list[Block] = []
    parts: list[Block] = []
    for block in blocks:
        if block.get("type") != "tool_result":
            parts.append(_part(block))
            continue
        items.append(
            {"type": "function_call_output", "call_id": block["tool_use_id"], "output": _output(block)}
        )
    if parts:
        content = parts[0]["text"] if [part["type"] for part in parts] == ["input_text"] else parts
        items.append({"type": "message", "role": "user", "content": content})
    return items


def _output(block: Block) -> str | list[Block]:
    """Return the content of a result: a text, or parts where it has pictures or documents."""
    inner = blocks_of(block["content"])
    texts = [text_of(each) for each in inner if attachment_of(each) is None]
    if len(texts) == len(inner):
        return result_text(block, texts)
    mark = [{"type": "input_text", "text": ERROR_MARK.strip()}] if block.get("is_error") else []
    return mark + [_part(each) for each in inner]


def _part(block: Block) -> Block:
    match attachment_of(block):
        case Attachment(kind="image", url=url):
            return {"type": "input_image", "image_url": url}
        case Attachment(url=url):
            return {"type": "input_file", "filename": "document.pdf", "file_data": url}
    return {"type": "input_text", "text": text_of(block)}


def events_of(response: Block) -> list[Block]:
    """Return the events of a response that is one JSON document; none if it is not one of this API.

    >>> [each["type"] for each in events_of({"object": "response", "status": "completed", "output": []})]
    ['response.completed']
    """
    if response.get("object") != "response" and "output" not in response:
        return []
    items = [item for item in response.get("output") or () if item.get("type") == "message"]
    texts = [part.get("text") for item in items for part in item["content"] if part.get("text")]
    deltas = [{"type": "response.output_text.delta", "delta": text} for text in texts]
    return [*deltas, {"type": f"response.{response.get('status') or 'completed'}", "response": response}]


class ResponseBuilder:
    """Accumulator of events, in order. It is whole when the response is completed or incomplete."""

    def __init__(self) -> None:
        self.is_whole = False
        self.has_usage = False
        self._items: dict[int, Block] = {}
        self._output: list[Block] = []
        self._stop_reason: Any = "end_turn"
        self._usage = TokenUsage()

    def add(self, event: Any) -> str:
        """Add the next event. Return the text that it adds to the answer, "" for most. Raises
        `ResponseFailed`, and `ValueError` for an event that is not of this API."""
        try:
            return self._add(event)
        except (AttributeError, KeyError, OverflowError, TypeError) as error:
            raise ValueError(f"an event has another form: {error}") from error

    def _add(self, event: Any) -> str:
        match event.get("type"):
            case "response.output_text.delta" | "response.refusal.delta":
                return _text(event["delta"])
            case "response.output_item.done":
                self._items[int(event["output_index"])] = dict(event["item"])
            case "response.completed" | "response.incomplete" as kind:
                self._end(event["response"], kind)
            case "response.failed":
                response = event["response"]
                raise ResponseFailed(dict(response.get("error") or {"message": "the response failed"}))
            case "error":
                # the fields of the error stand beside its type
                raise ResponseFailed({**event, "type": event.get("code") or "error"})
        return ""

    def _end(self, response: Block, kind: str) -> None:
        self._output = [dict(item) for item in response.get("output") or ()]
        if kind == "response.incomplete":
            reason = (response.get("incomplete_details") or {}).get("reason") or "incomplete"
            self._stop_reason = STOP_REASONS.get(reason, reason)
        if usage := response.get("usage"):
            self._usage = _usage_of(usage)
            self.has_usage = True
        self.is_whole = True

    def finish(self) -> Assistant:
        """Return the whole answer. Raises `ValueError`."""
        # not every server repeats its items at the end
        items = self._output or [item for _, item in sorted(self._items.items())]
        try:
            blocks = [_block(item, number) for number, item in enumerate(items, 1)]
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(f"an item has another form: {error}") from error
        is_refused = any(_is_refusal(item) for item in items)
        return assemble(blocks, "refusal" if is_refused else self._stop_reason, self._usage)


def _block(item: Block, number: int) -> tuple[Block, str]:
    """Return the block of an item, and the arguments that a call was written with."""
    match item.get("type"):
        case "message":
            text = "".join(_text(part.get("text") or part.get("refusal") or "") for part in item["content"])
            return keep({"type": "text", "text": text}, PROVIDER, _without(item, "content")), ""
        case "function_call":
            call = {
                "type": "tool_use",
                "id": item.get("call_id") or item.get("id") or f"call_{number}",
                "name": item["name"],
                "input": {},
            }
            kept = _without(item, "call_id", "name", "arguments")
            return keep(call, PROVIDER, kept), _text(item.get("arguments") or "")
        case "reasoning":
            parts = [*(item.get("summary") or ()), *(item.get("content") or ())]
            shown = "\n\n".join(_text(part.get("text") or "") for part in parts)
            return keep({"type": "thinking", "thinking": shown}, PROVIDER, item), ""
    return keep({"type": "item"}, PROVIDER, item), ""


def _is_refusal(item: Block) -> bool:
    content = item.get("content")
    parts = content if item.get("type") == "message" and isinstance(content, list) else []
    return any(isinstance(part, dict) and part.get("type") == "refusal" for part in parts)


def _without(item: Block, *names: str) -> Block:
    return {name: value for name, value in item.items() if name not in names}


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("a text of an event is not text")
    return value


def _usage_of(usage: Block) -> TokenUsage:
    details = usage.get("input_tokens_details") or {}
    sent = count_of(usage.get("input_tokens"))
    return TokenUsage(
        input_tokens=sent,
        output_tokens=count_of(usage.get("output_tokens")),
        cache_read_tokens=min(count_of(details.get("cached_tokens")), sent),
        cache_write_tokens=min(count_of(details.get("cache_write_tokens")), sent),
    )
