"""An answer of the Messages API, put together from the events of its stream.

The SDK can do this too, but it parses the arguments of a tool call again for each piece, accepts truncated
arguments as complete, and fails on a call that is not JSON. Here such a call is kept: the API requires every
call of an answer in the next request, and the model gets an error as the call's result.
Pure: events in, an `Assistant` out.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from fdstore.agent.conversation import Assistant
from fdstore.text.surrogates import join_surrogates
from fdstore.tools.wrapping import storable

INVALID_JSON = "INVALID_JSON"
"""The one argument of a call whose arguments are not JSON, as the API's documentation advises."""

MAX_SHOWN_CHARS = 2000
"""How much of malformed arguments the model is shown again."""

MAX_NESTING = 200
"""Levels of lists and objects in the arguments of a call; a journal record must stay readable."""

_CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})


class AnswerBuilder:
    """Takes events in the order of the stream. Blocks of unknown types are kept as they begin."""

    def __init__(self) -> None:
        self.is_whole = False
        self._blocks: dict[int, dict[str, Any]] = {}
        self._arguments: dict[int, list[str]] = {}
        self._stop_reason: str | None = None
        self._usage: dict[str, int] = {}

    def add(self, event: dict[str, Any]) -> str:
        """Take the next event. Return the text that it adds to the answer, "" for most. Raises `ValueError`
        for an event that lacks what it must have, or does not fit those before it."""
        try:
            return self._add(event)
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(f"an event lacks what it must have: {error}") from error

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
            raise ValueError("a piece came of a block that was not begun")
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
        # counts in later events are totals, and those that are left out stay
        self._usage.update({name: n for name, n in (usage or {}).items() if isinstance(n, int)})

    def finish(self) -> Assistant:
        """Return the whole answer. Raises `ValueError`."""
        content: list[dict[str, Any]] = []
        malformed: dict[str, str] = {}
        for index, block in sorted(self._blocks.items()):
            if block.get("type") in _CALLS:
                try:
                    block["input"] = _arguments(block, "".join(self._arguments.get(index, [])))
                except ValueError as error:
                    written = joined("".join(self._arguments.get(index, [])))
                    block["input"] = {INVALID_JSON: written[:MAX_SHOWN_CHARS]}
                    if block["type"] == "tool_use":
                        malformed[str(block.get("id"))] = f"its arguments are not a JSON object: {error}"
            content.append({name: value for name, value in _storable(block).items() if value is not None})
        usage = self._usage.get
        answer = Assistant(
            content=content,
            stop_reason=self._stop_reason,
            # what the API read from its cache, or wrote there, is not in input_tokens
            input_tokens=usage("input_tokens", 0)
            + usage("cache_creation_input_tokens", 0)
            + usage("cache_read_input_tokens", 0),
            output_tokens=usage("output_tokens", 0),
            # an answer that was cut off ends in the middle of a call, which is not run
            malformed=malformed if self._stop_reason == "tool_use" else {},
        )
        answer.check()
        return answer


def _arguments(block: dict[str, Any], written: str) -> dict[str, Any]:
    """Return the arguments of a call, as a journal record will hold them. Raises `ValueError`."""
    try:
        value = json.loads(joined(written), parse_constant=_refuse) if written else block.get("input")
        if not isinstance(value, dict):
            raise ValueError(f"they are a JSON {type(value).__name__}")
        _check_nesting(value)
        made: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(_storable(value)))
    except RecursionError as error:
        raise ValueError("they are nested too deep") from error
    except OverflowError as error:
        raise ValueError("a number is too large") from error
    return made


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not a JSON number")


def _check_nesting(value: Any, depth: int = 0) -> None:
    if depth > MAX_NESTING:
        raise ValueError("they are nested too deep")
    if isinstance(value, (dict, list)):
        for each in value.values() if isinstance(value, dict) else value:
            _check_nesting(each, depth + 1)


def _storable(value: Any) -> Any:
    """Return a JSON value of the API in texts that UTF-8 can hold."""
    match value:
        case str():
            return joined(value)
        case list():
            return [_storable(each) for each in value]
        case dict():
            return {joined(name): _storable(each) for name, each in value.items()}
    return value


def joined(text: str) -> str:
    """Return a text that UTF-8 can hold. Escaped in JSON, a character beyond 16 bits is two halves. Those
    that came in two events are put together; a half that is alone is made visible."""
    return storable(join_surrogates(text))
