"""Clear old results in the messages of a user's own loop, as `clearing` does in an agent's conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from fdstore.elements.shown_result import ShownResult
from fdstore.errors import InvalidArgument, quoted
from fdstore.results.content_blocks import field
from fdstore.store.process_handle import ProcessHandle
from fdstore.text.tokens import calibration
from fdstore.tools.clearing import ClearingConfig, estimated_tokens, find_clearable
from fdstore.wire.operation import Operation

COUNTS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def clear_messages(
    handle: ProcessHandle,
    messages: Sequence[Any],
    usage: object,
    definitions: Sequence[Any],
    config: ClearingConfig,
) -> Operation[list[Any]]:
    """Return the messages of the Messages API with old results cleared; the same ones if there is nothing to
    clear. Raises `InvalidArgument` for a `usage` without counts."""
    calls: dict[object, tuple[int, str, Any]] = {}
    results: list[ShownResult] = []
    turns = 0
    for number, message in enumerate(messages):
        content = field(message, "content")
        blocks = content if isinstance(content, (list, tuple)) else []
        turns += field(message, "role") == "assistant"
        for place, block in enumerate(blocks):
            if field(block, "type") == "tool_use":
                calls[field(block, "id")] = turns, str(field(block, "name")), field(block, "input")
            elif isinstance(block, dict) and block.get("type") == "tool_result":
                turn, tool, arguments = calls.get(block.get("tool_use_id"), (turns, "", None))
                results.append(
                    ShownResult(
                        f"{number}/{place}",
                        *(turn, tool, arguments, block.get("content", "")),
                        bool(block.get("is_error")),
                    )
                )
    lines = yield from find_clearable(
        handle, results, turns, tokens_of(usage), lambda: _calibration(messages, usage, definitions), config
    )
    cleared = list(messages)
    for key, line in lines.items():
        number, place = map(int, key.split("/"))
        blocks = list(cleared[number]["content"])
        blocks[place] = {**blocks[place], "content": line}
        cleared[number] = {**cleared[number], "content": blocks}
    return cleared


def _calibration(messages: Sequence[Any], usage: object, definitions: Sequence[Any]) -> float:
    """Return the factor of estimates, by the request that the last answer was given to."""
    answers = [number for number, message in enumerate(messages) if field(message, "role") == "assistant"]
    sent = messages[: answers[-1]] if answers else messages
    contents = [msgspec.json.encode(definitions).decode("utf-8"), *(field(each, "content") for each in sent)]
    output = 0 if isinstance(usage, int) else field(usage, "output_tokens")
    counted = tokens_of(usage) - (output if isinstance(output, int) else 0)
    return calibration(counted, estimated_tokens(contents))


def tokens_of(usage: object) -> int:
    """Return the tokens of an answer's `usage`: an object of the SDK, its dict, or their sum.

    >>> tokens_of({"input_tokens": 10, "output_tokens": 2, "cache_read_input_tokens": 90})
    102
    """
    if isinstance(usage, int) and not isinstance(usage, bool) and usage >= 0:
        return usage
    given = usage if isinstance(usage, Mapping) else {name: getattr(usage, name, None) for name in COUNTS}
    counts = [given.get(name) for name in COUNTS]
    if not isinstance(counts[0], int):
        raise InvalidArgument("usage", f"the usage of an answer is needed, not {quoted(usage)}")
    return sum(count for count in counts if isinstance(count, int))
