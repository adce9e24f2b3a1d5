"""Build an answer of the Messages API from the events of its stream.

The SDK can do this too, but it reparses the arguments of a tool call for each delta, accepts truncated
arguments as complete, and fails on arguments that are not JSON. Such a call is kept here: the API requires
every call of an answer in the next request, and the model gets an error as the call's result.
Answers of other APIs are assembled from blocks of the same form. Pure: events in, an `Assistant` out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import msgspec

from fdstore.agents.loop.conversation import Assistant
from fdstore.model.records import TokenUsage
from fdstore.text.surrogates import escape_surrogates, join_surrogates

INVALID_JSON = "INVALID_JSON"
"""Name of the argument that holds arguments which are not JSON, as the API's documentation recommends."""

MAX_SHOWN_CHARS = 2000
"""The most characters of malformed arguments that are sent back to the model."""

MAX_NESTING = 200
"""Maximum nesting of lists and objects in a call's arguments: a journal record must stay decodable."""

_CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})

_CUT_SHORT = frozenset({"max_tokens", "refusal", "model_context_window_exceeded"})
"""Stop reasons of answers whose calls are not run: the last one may be half."""


class AnswerBuilder:
    """Accumulator of stream events, in order. Blocks of unknown types are kept as they started."""

    def __init__(self) -> None:
        self.is_whole = False
        self._blocks: dict[int, dict[str, Any]] = {}
        self._arguments: dict[int, list[str]] = {}
        self._stop_reason: str | None = None
        self._usage: dict[str, int] = {}

    def add(self, event: dict[str, Any]) -> str:
        """Add the next event. Return the text that it adds to the answer, "" for most events. Raises
        `ValueError` for an event that lacks a required field or does not fit the events before it."""
        try:
            return self._add(event)
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(f"an event lacks a required field: {error}") from error

    def _add(self, event: dict[str, Any]) -> str:
        match event.get("type"):
            case "message_start":
                self._count(event["message"].get("usage"))
            case "content_block_start":
                self._blocks[event["index"]] = dict(event["content_block"])
            case "content_block_delta":
                return self._extend(event["index"], event["delta"])
            case "message_delta":
                self._stop_reason = event["delta"].get("stop_reason") or self._stop_reason
                self._count(event.get("usage"))
            case "message_stop":
                self.is_whole = True
        return ""

    def _extend(self, index: int, delta: dict[str, Any]) -> str:
        block = self._blocks.get(index)
        if block is None:
            raise ValueError("a delta for a block that has not started")
        match delta.get("type"):
            case "text_delta":
                block["text"] = block.get("text", "") + delta["text"]
                return str(delta["text"])
            case "input_json_delta":
                self._arguments.setdefault(index, []).append(delta["partial_json"])
            case "citations_delta":
                block["citations"] = [*(block.get("citations") or []), delta["citation"]]
            case "thinking_delta":
                block["thinking"] = block.get("thinking", "") + delta["thinking"]
            case "signature_delta":
                block["signature"] = delta["signature"]
        return ""

    def _count(self, usage: dict[str, Any] | None) -> None:
        # counts in later events are cumulative; a missing count keeps its value
        self._usage.update({name: n for name, n in (usage or {}).items() if isinstance(n, int)})

    def finish(self) -> Assistant:
        """Return the whole answer. Raises `ValueError`."""
        usage = self._usage.get
        cached, written = usage("cache_read_input_tokens", 0), usage("cache_creation_input_tokens", 0)
        return assemble(
            [
                (block, "".join(self._arguments.get(index, [])))
                for index, block in sorted(self._blocks.items())
            ],
            self._stop_reason,
            TokenUsage(
                # input_tokens excludes cache reads and cache writes
                input_tokens=usage("input_tokens", 0) + written + cached,
                output_tokens=usage("output_tokens", 0),
                cache_read_tokens=cached,
                cache_write_tokens=written,
            ),
        )


def events_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the events of a message that is one JSON document; none for another document.

    >>> message = {"type": "message", "content": [{"type": "text", "text": "Hi."}], "stop_reason": "end_turn"}
    >>> builder = AnswerBuilder()
    >>> [builder.add(event) for event in events_of(message)], builder.finish().text
    (['', '', 'Hi.', '', ''], 'Hi.')
    """
    if message.get("type") != "message":
        return []
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {**message, "content": []}}]
    for index, block in enumerate(message["content"]):
        is_text = block.get("type") == "text"
        shown = {**block, "text": ""} if is_text else block
        events.append({"type": "content_block_start", "index": index, "content_block": shown})
        if is_text:
            delta = {"type": "text_delta", "text": block["text"]}
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
    ended = {name: message.get(name) for name in ("stop_reason", "stop_sequence")}
    events.append({"type": "message_delta", "delta": ended, "usage": message.get("usage") or {}})
    return [*events, {"type": "message_stop"}]


def assemble(
    blocks: Iterable[tuple[dict[str, Any], str]], stop_reason: str | None, usage: TokenUsage
) -> Assistant:
    """Return the answer of these blocks, each with the arguments that a call was written with, "" for the
    `input` that the block has. Raises `ValueError`."""
    content: list[dict[str, Any]] = []
    malformed: dict[str, str] = {}
    for block, written in blocks:
        if block.get("type") in _CALLS:
            try:
                block["input"] = _arguments(block, written)
            except ValueError as error:
                block["input"] = {INVALID_JSON: to_utf8(written)[:MAX_SHOWN_CHARS]}
                if block["type"] == "tool_use":
                    malformed[str(block.get("id"))] = f"its arguments are not a JSON object: {error}"
        content.append({name: value for name, value in _storable(block).items() if value is not None})
    if any(block.get("type") == "tool_use" for block in content) and stop_reason not in _CUT_SHORT:
        stop_reason = "tool_use"  # servers say `end_turn` or `stop` there, or a reason of theirs
    answer = Assistant(
        content=content,
        stop_reason=stop_reason,
        # with any other stop reason the calls are not run
        malformed=malformed if stop_reason == "tool_use" else {},
        **msgspec.structs.asdict(usage),
    )
    answer.check()
    return answer


def _arguments(block: dict[str, Any], written: str) -> dict[str, Any]:
    """Return the arguments of a call as a journal record will store them. Raises `ValueError`."""
    try:
        value = json.loads(to_utf8(written), parse_constant=_refuse) if written else block.get("input")
    except RecursionError as error:
        raise ValueError("they are nested too deep") from error
    if not isinstance(value, dict):
        raise ValueError(f"they are a JSON {type(value).__name__}")
    arguments: dict[str, Any] = as_stored(value)
    return arguments


def as_stored(value: Any) -> Any:
    """Return a JSON value as a journal record will store it. Raises `ValueError` if it cannot."""
    try:
        _check_nesting(value)
        return msgspec.json.decode(msgspec.json.encode(_storable(value)))
    except RecursionError as error:
        raise ValueError("they are nested too deep") from error
    except OverflowError as error:
        raise ValueError("a number is too large") from error


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not a JSON number")


def _check_nesting(value: Any, depth: int = 0) -> None:
    if depth > MAX_NESTING:
        raise ValueError("they are nested too deep")
    if isinstance(value, (dict, list)):
        for each in value.values() if isinstance(value, dict) else value:
            _check_nesting(each, depth + 1)


def _storable(value: Any) -> Any:
    """Return a JSON value with every string made encodable in UTF-8."""
    match value:
        case str():
            return to_utf8(value)
        case list():
            return [_storable(each) for each in value]
        case dict():
            return {to_utf8(name): _storable(each) for name, each in value.items()}
    return value


def to_utf8(text: str) -> str:
    """Return `text` made encodable in UTF-8. JSON escapes a character beyond 16 bits as a surrogate pair:
    join the halves that arrived in two events, and show a lone half as an escape."""
    return escape_surrogates(join_surrogates(text))
