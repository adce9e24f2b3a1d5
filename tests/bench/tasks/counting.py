"""The tokens of the requests of a conversation, by fdstore's offline estimate.

Counted is what a model reads of a request: the definitions of the tools, the system prompt, and each block of
the messages. The bodies are those that were sent. Deferred tools cost nothing before a result loads them.

With a prompt cache: a request that begins with all of an earlier one reads that much from the cache, at
0.1 of the price, and writes the rest, at 1.25. A request that begins with no earlier one, since a
definition, the system prompt or an old message changed, writes all of it. That providers cache nothing
below some thousand tokens is left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from fdstore.testing import Request
from fdstore.text.tokens import estimate_tokens

READ_PRICE, WRITE_PRICE = 0.1, 1.25


class Part(NamedTuple):
    """A definition, a system prompt, or a block of a message: by `role`, "tool", "system", "user" or
    "assistant"."""

    role: str
    text: str


class Tokens(NamedTuple):
    """The tokens of a conversation: as sent, as paid for with a prompt cache, and of its longest request."""

    sent: int
    cached: int
    longest: int


def parts_of(request: Request) -> tuple[Part, ...]:
    """Return the parts of a request in the order in which a prompt cache compares them. The definition of a
    deferred tool is read where it is loaded."""
    tools = request.raw.get("tools", ())
    deferred = {tool["name"]: _without_mark(tool) for tool in tools if tool.get("defer_loading")}
    offered = [Part("tool", as_json(tool)) for tool in tools if tool["name"] not in deferred]
    parts = [*offered, Part("system", request.system)]
    for message in request.messages:
        content = message["content"]
        blocks = [content] if isinstance(content, str) else content
        parts += [Part(message["role"], text) for block in blocks for text in _texts(block, deferred)]
    return tuple(parts)


def _without_mark(tool: dict[str, Any]) -> str:
    return as_json({key: value for key, value in tool.items() if key != "defer_loading"})


def _texts(block: Any, deferred: Mapping[str, str]) -> Iterable[str]:
    match block:
        case {"type": "tool_reference", "tool_name": name}:
            yield deferred[name]
        case str():
            yield block
        case {"type": "text", "text": text}:
            yield text
        case {"type": "tool_use", "name": name, "input": arguments}:
            yield as_json([name, arguments])
        case {"type": "tool_result", "content": content}:
            for inner in [content] if isinstance(content, str) else content:
                yield from _texts(inner, deferred)
        case _:
            yield as_json(block)


def as_json(value: object) -> str:
    """Return what a model writes of a call."""
    return json.dumps(value, ensure_ascii=False)


@lru_cache(1000)
def estimate(text: str) -> int:
    """Return the tokens of a text."""
    return estimate_tokens(text)


def total(parts: Sequence[Part], size: Callable[[str], int] = estimate) -> int:
    """Return the tokens of a request."""
    return sum(size(part.text) for part in parts)


def count(
    requests: Sequence[tuple[Part, ...]],
    size: Callable[[str], int] = estimate,
    write_price: float = WRITE_PRICE,
) -> Tokens:
    """Return the tokens of the requests of one conversation; with `len` as size, the characters."""
    totals = [total(parts, size) for parts in requests]
    cached = 0.0
    for number, parts in enumerate(requests):
        known = max(
            (
                totals[before]
                for before in range(number)
                if parts[: len(requests[before])] == requests[before]
            ),
            default=0,
        )
        cached += READ_PRICE * known + write_price * (totals[number] - known)
    return Tokens(sum(totals), round(cached), max(totals, default=0))


def seen(requests: Iterable[tuple[Part, ...]]) -> str:
    """Return all that the model was shown, each text once; not its own words."""
    shown = {part.text: None for parts in requests for part in parts if part.role in ("system", "user")}
    return "\n".join(shown)
