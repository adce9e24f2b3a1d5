"""Chat Completions: the body of a request, and an answer from the chunks of its stream.

    journal                            sent
    system prompt                      a message of the role `system`
    text of the user                   one message of the role `user`
    tool_use                           `tool_calls` of a message of the role `assistant`
    tool_result                        a message of the role `tool`; a failed one begins with `error: `
    pictures, documents of results     one message of the role `user` behind all results of the turn, which
                                       refer to them by number
    notes                              the same message of the role `user`
    thinking                           in the field that it came in, see below; that of others is not sent

Servers want back: reasoning in the field that it came in (`REASONING_FIELDS`), since models go on from it
within a turn of calls, with the signatures that may stand beside it, and every field of a call that is not
its index, id, type, name or arguments, such as the thought signatures of Gemini in `extra_content`. All these
are kept in the blocks of the journal. Other fields of an answer (`annotations`, `logprobs`) are not.

Servers differ in how they stream calls: with or without index and id, in pieces or whole, with the same index
for each, with id and name in each piece. `_Calls` reads all of these. Pure: chunks in, an `Assistant` out.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import Any

import msgspec

from fdstore.agents.loop.answer import assemble, count_of
from fdstore.agents.loop.conversation import Assistant
from fdstore.agents.loop.models.base import ModelRequest
from fdstore.agents.loop.models.message_blocks import (
    AFTER,
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

PROVIDER = "openai"
REASONING_TEXTS = ("reasoning_content", "reasoning")
"""Fields of a message that hold reasoning as text."""
REASONING_FIELDS = (
    *REASONING_TEXTS,
    "reasoning_details",
    "thinking_blocks",
    "extra_content",
    "provider_specific_fields",
)
"""Fields of an answer that are sent back as they came."""

OPTIONAL = ("max_completion_tokens", "stream_options", "reasoning_content", "reasoning_details")
"""What a server may not know: it is left out, or named otherwise, once it was refused by its name."""

STOP_REASONS = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
    "model_length": "model_context_window_exceeded",
}
"""The stop reasons of the journal by `finish_reason`; others are kept as they are."""


def chat_body(request: ModelRequest, refused: Collection[str] = ()) -> dict[str, Any]:
    """Return the body of a request, without the `OPTIONAL` parts that its server has `refused`."""
    parameters = dict(request.parameters)
    limit = parameters.pop("max_tokens", None)
    if "max_completion_tokens" not in parameters and limit is not None:
        name = "max_tokens" if "max_completion_tokens" in refused else "max_completion_tokens"
        parameters[name] = limit
    body: dict[str, Any] = {
        "model": request.model,
        "messages": chat_messages(request.system, request.messages, refused),
        "stream": True,
    }
    if "stream_options" not in refused:
        body["stream_options"] = {"include_usage": True}
    if request.tools:
        body["tools"] = in_shape(request.tools, "openai")
    return body | parameters


def chat_messages(system: str, messages: list[Block], refused: Collection[str] = ()) -> list[Block]:
    """Return a conversation in the form of the Messages API as one of Chat Completions."""
    sent: list[Block] = [{"role": "system", "content": system}] if system else []
    for message in messages:
        blocks = blocks_of(message["content"])
        if message["role"] == "assistant":
            sent += _answer(blocks, refused)
        else:
            sent += _results_and_text(blocks)
    return sent


def _answer(blocks: list[Block], refused: Collection[str]) -> list[Block]:
    """Return an answer as a message; none if nothing of it is sent."""
    text = "".join(block["text"] for block in blocks if block.get("type") == "text")
    calls = [_call(block) for block in blocks if block.get("type") == "tool_use"]
    if not text and not calls:
        return []
    message: Block = {"role": "assistant", "content": text or None}
    for block in blocks:
        if block.get("type") == "thinking" and (kept := kept_for(block, PROVIDER)):
            fields = dict.fromkeys(kept.get("texts", ()), block["thinking"]) | kept.get("fields", {})
            message |= {name: value for name, value in fields.items() if name not in refused}
    if calls:
        message["tool_calls"] = calls
    return [message]


def _call(block: Block) -> Block:
    kept = kept_for(block, PROVIDER)
    arguments = msgspec.json.encode(block["input"]).decode("utf-8")
    function = {"name": block["name"], "arguments": arguments, **kept.get("function", {})}
    return {"id": block["id"], "type": "function", "function": function, **kept.get("call", {})}


def _results_and_text(blocks: list[Block]) -> list[Block]:
    results: list[Block] = []
    attached: list[Block] = []
    parts: list[Block] = []
    for block in blocks:
        if block.get("type") != "tool_result":
            parts.append(_part(block))
            continue
        texts = []
        for inner in blocks_of(block["content"]):
            if attachment_of(inner) is None:
                texts.append(text_of(inner))
                continue
            mark = f"[{inner['type']} {len(attached) // 2 + 1}]"
            texts.append(f"{mark} {AFTER}")
            attached += [{"type": "text", "text": mark}, _part(inner)]
        content = result_text(block, texts)
        results.append({"role": "tool", "tool_call_id": block["tool_use_id"], "content": content})
    parts = attached + parts
    if not parts:
        return results
    if all(part["type"] == "text" for part in parts):
        # one text: some servers take no list
        return [*results, {"role": "user", "content": "\n\n".join(part["text"] for part in parts)}]
    return [*results, {"role": "user", "content": parts}]


def _part(block: Block) -> Block:
    attachment = attachment_of(block)
    if attachment is None:
        return {"type": "text", "text": text_of(block)}
    if attachment.kind == "image":
        return {"type": "image_url", "image_url": {"url": attachment.url}}
    return {"type": "file", "file": {"filename": "document.pdf", "file_data": attachment.url}}


class _Call:
    """A call while it arrives."""

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []
        self.last = ""
        """The last piece of the arguments that was not empty."""
        self.goes_on_without_name = False
        """Whether a piece without the name has followed: then a name begins another call."""
        self.more: Block = {}
        self.function: Block = {}

    def is_complete(self) -> bool:
        """Return whether its arguments are a JSON object already."""
        if not self.last.rstrip().endswith("}"):
            return False
        try:
            return isinstance(json.loads("".join(self.arguments)), dict)
        except (ValueError, RecursionError):
            return False


class _Calls:
    """The calls of one answer, in the order of their first pieces."""

    def __init__(self) -> None:
        self.all: list[_Call] = []
        self._by_index: dict[int, _Call] = {}

    def add(self, piece: Block) -> None:
        """Add a piece of a call."""
        function = piece.get("function") or {}
        id_, name, index = piece.get("id") or "", function.get("name") or "", piece.get("index")
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            arguments = json.dumps(arguments)
        arguments = arguments or ""
        if not all(isinstance(each, str) for each in (id_, name, arguments)):
            raise ValueError("a piece of a call has an id, a name or arguments of another type than text")
        call = self._find(id_, name, index, arguments)
        call.goes_on_without_name |= bool(call.name) and not name
        call.id = call.id or id_
        call.name = call.name or name
        if arguments:
            call.arguments.append(arguments)
            call.last = arguments
        call.more |= _others(piece, ("index", "id", "type", "function"))
        call.function |= _others(function, ("name", "arguments"))

    def _find(self, id_: str, name: str, index: Any, arguments: str) -> _Call:
        """Return the call that a piece belongs to: the one of its index or, without one, of its id or the
        last one, unless the piece begins another."""
        if isinstance(index, int):
            known = self._by_index.get(index)
        elif id_:
            known = next((call for call in self.all if call.id == id_), None)
        else:
            known = self.all[-1] if self.all else None
        if known is not None and not _begins_another(known, id_, name, arguments):
            return known
        call = _Call()
        self.all.append(call)
        if isinstance(index, int):
            self._by_index[index] = call
        return call


def _begins_another(known: _Call, id_: str, name: str, arguments: str) -> bool:
    """Return whether a piece begins another call than the known one, though it has the same index or none."""
    if id_ and known.id and id_ != known.id:
        return True
    if not name or not known.name:
        return False
    if id_ and id_ == known.id:
        return False
    if name != known.name or known.goes_on_without_name:
        return True
    # a name that is repeated in each piece, or the same tool once more
    return arguments.lstrip().startswith("{") and known.is_complete()


def events_of(answer: Block) -> list[Block]:
    """Return the chunks of an answer that is one JSON document; none if it is not an answer of this API.

    >>> events_of({"choices": [{"message": {"content": "Hi."}, "finish_reason": "stop"}]})
    [{'choices': [{'message': {'content': 'Hi.'}, 'finish_reason': 'stop', 'delta': {'content': 'Hi.'}}]}]
    """
    choices = answer.get("choices") or ()
    return (
        [{**answer, "choices": [{**each, "delta": each["message"]} for each in choices]}] if choices else []
    )


class ChatAnswerBuilder:
    """Accumulator of chunks, in order. It is whole when a `finish_reason` arrived: not every server sends
    `[DONE]`. `has_usage` says whether the server counted tokens."""

    def __init__(self) -> None:
        self.is_whole = False
        self.has_usage = False
        self._texts: list[str] = []
        self._refusals: list[str] = []
        self._reasoning: dict[str, list[str]] = {}
        self._fields: Block = {}
        self._calls = _Calls()
        self._finish_reason: Any = ""
        self._usage = TokenUsage()

    def add(self, chunk: Any) -> str:
        """Add the next chunk. Return the text that it adds to the answer, "" for most. Raises `ValueError`
        for one that is not of this API."""
        try:
            return self._add(chunk)
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(f"a chunk has another form: {error}") from error

    def _add(self, chunk: Any) -> str:
        if usage := chunk.get("usage"):
            self._usage = _usage_of(usage)
            self.has_usage = True
        text = ""
        for choice in chunk.get("choices") or ():
            if choice.get("index"):
                continue  # one answer is asked for
            text += self._extend(choice.get("delta") or {})
            if reason := choice.get("finish_reason"):
                self._finish_reason = reason
                self.is_whole = True
        return text

    def _extend(self, delta: Block) -> str:
        text = "".join(self._texts_in(delta.get("content")))
        if text:
            self._texts.append(text)
        if refusal := delta.get("refusal"):
            self._refusals.append(_text(refusal))
        for name in REASONING_FIELDS:
            if (value := delta.get(name)) is None:
                continue
            if name in REASONING_TEXTS and isinstance(value, str):
                self._reasoning.setdefault(name, []).append(value)
            else:
                self._fields[name] = _joined(self._fields.get(name), value)
        for piece in delta.get("tool_calls") or ():
            self._calls.add(piece)
        if function := delta.get("function_call"):
            self._calls.add({"function": function})
        return text

    def _texts_in(self, content: Any) -> Iterator[str]:
        """Yield the text of a delta's content: a text, or parts, of which some servers send thinking."""
        for part in content if isinstance(content, list) else [content]:
            if isinstance(part, dict) and part.get("type") == "thinking":
                inner = part.get("thinking") or ""
                texts = [each.get("text") or "" for each in inner] if isinstance(inner, list) else [inner]
                self._reasoning.setdefault("", []).append("".join(map(_text, texts)))
            elif part is not None:
                yield _text(part.get("text") or "" if isinstance(part, dict) else part)

    def finish(self) -> Assistant:
        """Return the whole answer. Raises `ValueError`."""
        blocks = [(block, "") for block in (self._thinking(), self._text()) if block is not None]
        for number, call in enumerate(self._calls.all, 1):
            if not call.name:
                raise ValueError("a call has no name")
            block = {"type": "tool_use", "id": call.id or f"call_{number}", "name": call.name, "input": {}}
            kept = {"call": call.more, "function": call.function}
            if kept := {name: value for name, value in kept.items() if value}:
                block = keep(block, PROVIDER, kept)
            blocks.append((block, "".join(call.arguments)))
        reason = self._finish_reason
        if isinstance(reason, str):
            reason = STOP_REASONS.get(reason, reason)
        return assemble(blocks, "refusal" if self._refusals else reason, self._usage)

    def _text(self) -> Block | None:
        text = "".join(self._texts) + "".join(self._refusals)
        return {"type": "text", "text": text} if text else None

    def _thinking(self) -> Block | None:
        """Return the reasoning as people see it, with the fields that it came in."""
        texts = {name: "".join(pieces) for name, pieces in self._reasoning.items()}
        shown = next(filter(None, texts.values()), "")
        fields = dict(self._fields)
        for name, text in texts.items():
            if name and text != shown:
                fields[name] = text
        same = [name for name, text in texts.items() if name and text == shown]
        kept = {name: value for name, value in (("texts", same), ("fields", fields)) if value}
        if not shown and not fields:
            return None
        return keep({"type": "thinking", "thinking": shown}, PROVIDER, kept)


def _joined(before: Any, value: Any) -> Any:
    """Return a field that arrives in several chunks: texts are joined, lists extended, objects merged."""
    match before, value:
        case str(), str():
            return before + value
        case dict(), dict():
            return before | {name: each for name, each in value.items() if each is not None}
        case list(), list():
            details = list(before)
            for each in value:
                if details and _continues(details[-1], each):
                    details[-1] = _merged(details[-1], each)
                else:
                    details.append(each)
            return details
    return value if before is None or value else before


def _continues(last: Any, piece: Any) -> bool:
    """Return whether an entry of `reasoning_details` is a further piece of the last one."""
    same = isinstance(last, dict) and isinstance(piece, dict) and last.get("type") == piece.get("type")
    return same and "index" in piece and last.get("index") == piece["index"]


def _merged(last: Block, piece: Block) -> Block:
    joined = dict(last)
    for name, value in piece.items():
        is_text = name in ("text", "summary", "data") and isinstance(value, str)
        if is_text and isinstance(joined.get(name), str):
            joined[name] += value
        elif value is not None:
            joined[name] = value
    return joined


def _others(fields: Block, known: Collection[str]) -> Block:
    return {name: value for name, value in fields.items() if name not in known and value is not None}


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("a text of a chunk is not text")
    return value


def _usage_of(usage: Block) -> TokenUsage:
    details = usage.get("prompt_tokens_details") or {}
    sent = count_of(usage.get("prompt_tokens"))
    cached = count_of(details.get("cached_tokens")) or count_of(usage.get("prompt_cache_hit_tokens"))
    return TokenUsage(
        input_tokens=sent,
        # some servers count reasoning in the total alone
        output_tokens=max(
            count_of(usage.get("completion_tokens")), count_of(usage.get("total_tokens")) - sent
        ),
        cache_read_tokens=min(cached, sent),
        cache_write_tokens=min(count_of(details.get("cache_write_tokens")), sent),
    )
