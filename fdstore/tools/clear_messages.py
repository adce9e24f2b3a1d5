"""Clear old results in the messages of a user's own loop, as `clearing` does in an agent's conversation.

A loop of a user keeps its messages itself, as the Messages API takes them: without the facts of results. So
these are read from their elements; those of our reading tools are trusted only in results of these tools.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from fdstore.elements.facts import ResultFacts, in_block
from fdstore.elements.parse import parse_facts
from fdstore.errors import InvalidArgument, quoted
from fdstore.results.content_blocks import field
from fdstore.results.wrapping import block_text
from fdstore.store.process_handle import ProcessHandle
from fdstore.text.tokens import calibration
from fdstore.tools.catalogue import READING_TOOLS
from fdstore.tools.clearing import ClearingConfig, ShownResult, estimated_tokens, find_clearable
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
    used_tokens = tokens_of(usage)
    if not config.is_reached(used_tokens):
        return list(messages)
    calls: dict[object, tuple[int, str]] = {}
    results: list[ShownResult] = []
    turns = 0
    for number, message in enumerate(messages):
        content = field(message, "content")
        blocks = content if isinstance(content, (list, tuple)) else []
        turns += field(message, "role") == "assistant"
        for place, block in enumerate(blocks):
            if field(block, "type") == "tool_use":
                calls[field(block, "id")] = turns, str(field(block, "name"))
            elif isinstance(block, dict) and block.get("type") == "tool_result":
                turn, tool = calls.get(block.get("tool_use_id"), (turns, ""))
                shown, is_error = block.get("content", ""), bool(block.get("is_error"))
                facts = _facts_of(tool, shown)
                results.append(ShownResult(f"{number}/{place}", turn, tool, shown, is_error, facts))
    lines = yield from find_clearable(
        handle, results, turns, used_tokens, lambda: _calibration(messages, usage, definitions), config
    )
    cleared = list(messages)
    for key, line in lines.items():
        number, place = map(int, key.split("/"))
        blocks = list(cleared[number]["content"])
        blocks[place] = {**blocks[place], "content": line}
        cleared[number] = {**cleared[number], "content": blocks}
    return cleared


def _facts_of(tool: str, content: Any) -> ResultFacts:
    """Return the facts of a result."""
    blocks = content if isinstance(content, list) else [content]
    parts = [parse_facts(block_text(block) or "") for block in blocks]
    if tool in READING_TOOLS and parts and parts[0].repeatable_fds is not None:
        return parts[0]
    stored = (in_block(part, block).stored for block, part in enumerate(parts))
    return ResultFacts(stored=tuple(each for some in stored for each in some))


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
