"""Build an answer of the Messages API from the events of its stream.

The SDK can do this too, but it reparses the arguments of a tool call for each delta, accepts truncated
arguments as complete, and fails on arguments that are not JSON. Such a call is kept here: the API requires
every call of an answer in the next request, and the model gets an error as the call's result.
Answers of other APIs are assembled from blocks of the same form. Pure: events in, an `Assistant` out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

import msgspec

from fdstore.agents.loop.conversation import Assistant, name_calls
from fdstore.model.records import TokenUsage
from fdstore.text.surrogates import escape_surrogates, join_surrogates

INVALID_JSON = "INVALID_JSON"
"""Name of the argument that holds arguments which are not JSON, as the API's documentation recommends."""

MAX_SHOWN_CHARS = 2000
"""The most characters of malformed arguments that are sent back to the model."""

MAX_NESTING = 200
"""Maximum nesting of lists and objects in a call's arguments: a journal record must stay decodable."""

MAX_BLOCK_NESTING = MAX_NESTING + 20
"""The same of a block, in which a provider's fields are nested."""

MAX_REASON_CHARS = 200
"""The most characters of a stop reason. It is a word: a longer text is cut."""

MAX_TOKENS = 2**40
"""The most tokens that a server is believed to have counted."""

_CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})

_ARGUMENTS = "partial_json"
"""Where the pieces of a call's arguments are: no block has such a field."""

_CUT_SHORT = frozenset({"max_tokens", "refusal", "model_context_window_exceeded"})
"""Stop reasons of answers whose calls are not run: the last one may be half."""


class AnswerBuilder:
    """Accumulator of stream events, in order. Blocks of unknown types are kept as they started."""

    def __init__(self) -> None:
        self.is_whole = False
        self._blocks: dict[int, dict[str, Any]] = {}
        self._pieces: dict[tuple[int, str], list[str]] = {}
        """The texts that arrive in pieces, by the index of the block and the field."""
        self._stop_reason: Any = None
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
                self._blocks[_index(event)] = dict(event["content_block"])
            case "content_block_delta":
                return self._extend(_index(event), event["delta"])
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
                return self._add_piece(index, "text", delta["text"])
            case "input_json_delta":
                self._add_piece(index, _ARGUMENTS, delta["partial_json"])
            case "citations_delta":
                block["citations"] = [*(block.get("citations") or []), delta["citation"]]
            case "thinking_delta":
                self._add_piece(index, "thinking", delta["thinking"])
            case "signature_delta":
                block["signature"] = delta["signature"]
        return ""

    def _add_piece(self, index: int, field: str, piece: Any) -> str:
        before = self._blocks[index].get(field, "")
        if not isinstance(piece, str) or not isinstance(before, str):
            raise ValueError("a text of an event is not text")
        self._pieces.setdefault((index, field), [before]).append(piece)
        return piece

    def _count(self, usage: dict[str, Any] | None) -> None:
        # counts in later events are cumulative; a missing count, or one that is none, keeps its value
        counts = (usage or {}).items()
        self._usage.update({name: count_of(n) for name, n in counts if type(n) is int and n >= 0})

    def finish(self) -> Assistant:
        """Return the whole answer. Raises `ValueError`."""
        usage = self._usage.get
        cached, written = usage("cache_read_input_tokens", 0), usage("cache_creation_input_tokens", 0)
        texts = {place: "".join(pieces) for place, pieces in self._pieces.items()}
        arguments = {index: text for (index, field), text in texts.items() if field == _ARGUMENTS}
        for (index, field), text in texts.items():
            if field != _ARGUMENTS:
                self._blocks[index][field] = text
        return assemble(
            [(block, arguments.get(index, "")) for index, block in sorted(self._blocks.items())],
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


def count_of(value: Any) -> int:
    """Return a number of tokens in a server's usage; 0 for what is none.

    >>> count_of(7), count_of(-5), count_of(1.5), count_of(True), count_of("7")
    (7, 0, 0, 0, 0)
    """
    return min(value, MAX_TOKENS) if type(value) is int and value > 0 else 0


def _index(event: dict[str, Any]) -> int:
    index = event["index"]
    if not isinstance(index, int):
        raise ValueError("the index of a block is not a whole number")
    return index


def assemble(blocks: Iterable[tuple[dict[str, Any], str]], stop_reason: Any, usage: TokenUsage) -> Assistant:
    """Return the answer of these blocks, each with the arguments that a call was written with, "" for the
    `input` that the block has. Raises `ValueError`."""
    if not isinstance(stop_reason, str | None):
        raise ValueError("its stop reason is not text")
    content: list[dict[str, Any]] = []
    problems: list[str] = []
    for block, written in blocks:
        problem, is_call = "", block.get("type") in _CALLS
        if is_call:
            try:
                arguments = _arguments(block, written)
            except ValueError as error:
                arguments = {INVALID_JSON: to_utf8(written)[:MAX_SHOWN_CHARS]}
                problem = f"its arguments are not a JSON object: {error}"
            block = {**block, "input": {}}
        stored = as_stored(block, MAX_BLOCK_NESTING)
        if is_call:
            stored["input"] = arguments
        if stored.get("type") == "tool_use":
            problems.append(problem)
        content.append({name: value for name, value in stored.items() if value is not None})
    if problems and stop_reason not in _CUT_SHORT:
        stop_reason = "tool_use"  # servers say `end_turn` or `stop` there, or a reason of theirs
    answer = Assistant(
        content=content,
        stop_reason=None if stop_reason is None else to_utf8(stop_reason)[:MAX_REASON_CHARS],
        **msgspec.structs.asdict(usage),
    )
    answer.check()
    if stop_reason != "tool_use":
        return answer  # its calls are not run
    names = name_calls(answer.calls)
    malformed = {name: problem for name, problem in zip(names, problems, strict=True) if problem}
    return msgspec.structs.replace(answer, malformed=malformed)


def _arguments(block: dict[str, Any], written: str) -> dict[str, Any]:
    """Return the arguments of a call as a journal record will store them. Raises `ValueError`."""
    try:
        value = json.loads(to_utf8(written), parse_constant=_refuse) if written else block.get("input")
        _check_finite(value)
    except RecursionError as error:
        raise ValueError("they are nested too deep") from error
    if not isinstance(value, dict):
        raise ValueError(f"they are a JSON {type(value).__name__}")
    arguments: dict[str, Any] = as_stored(value)
    return arguments


def as_stored(value: Any, nesting: int = MAX_NESTING) -> Any:
    """Return a JSON value, of at most this nesting, as a journal record will store it. Raises `ValueError` if
    it cannot."""
    try:
        _check_nesting(value, nesting)
        return msgspec.json.decode(msgspec.json.encode(_storable(value)))
    except RecursionError as error:
        raise ValueError("they are nested too deep") from error
    except OverflowError as error:
        raise ValueError("a number is too large") from error


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not a JSON number")


def _check_nesting(value: Any, left: int) -> None:
    if left < 0:
        raise ValueError("they are nested too deep")
    if isinstance(value, (dict, list)):
        for each in value.values() if isinstance(value, dict) else value:
            _check_nesting(each, left - 1)


def _check_finite(value: Any) -> None:
    """Raise `ValueError` for a number beyond those of a double, such as 1e400: a record would hold null."""
    match value:
        case float() if not math.isfinite(value):
            raise ValueError("a number is too large")
        case list():
            for each in value:
                _check_finite(each)
        case dict():
            for each in value.values():
                _check_finite(each)


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
