"""Cut texts and values of any size to what can be shown."""

from __future__ import annotations

from typing import Any

import msgspec

from fdstore.elements.facts import ResultFacts
from fdstore.text.quantities import format_count

MAX_ITEMS = 20
"""Items shown of each list or object."""

MAX_NESTING = 6

MAX_STORED = 100
"""Stored contents that are named of each result."""


def cut_text(text: str, max_chars: int) -> tuple[str, int]:
    """Return the beginning of a text, and the length of the whole in characters.

    >>> cut_text("abcdef", 4)
    ('abcd', 6)
    """
    return text[:max_chars], len(text)


def cut_value(value: Any, max_chars: int) -> Any:
    """Return a JSON value with its strings, lists and objects cut, so that it has about `max_chars`
    characters at most. Each cut is marked with the size of the whole.

    >>> cut_value({"pattern": "ERROR|WARN", "lines": [1, 2]}, 12)
    {'pattern': 'ERROR... (10 characters)', '...': '2 items'}
    """
    return _Cutter(max_chars).cut(value, 0)


class _Cutter:
    """The cut of one value: `left` is the number of characters that may still be shown."""

    def __init__(self, max_chars: int) -> None:
        self.left = max_chars

    def cut(self, value: Any, depth: int) -> Any:
        match value:
            case str():
                begin = value[: max(self.left, 0)]
                self.left -= len(begin) + 1
                return value if begin == value else f"{begin}... ({format_count(len(value), 'character')})"
            case list() | dict() if depth >= MAX_NESTING:
                return "..."
            case list():
                items = [self.cut(each, depth + 1) for each in self._some(value)]
                return items if len(items) == len(value) else [*items, f"... ({len(value)} items)"]
            case dict():
                shown = {str(name)[:200]: self.cut(value[name], depth + 1) for name in self._some(value)}
                return shown if len(shown) == len(value) else {**shown, "...": f"{len(value)} items"}
        self.left -= 8
        return value

    def _some(self, items: Any) -> Any:
        """Yield the first items, while there is room."""
        for number, item in enumerate(items):
            if number >= MAX_ITEMS or (number and self.left <= 0):
                return
            self.left -= len(item) if isinstance(item, str) and isinstance(items, dict) else 0
            yield item


def cut_facts(facts: ResultFacts, max_chars: int) -> ResultFacts:
    """Return the facts of a result with the message of an error cut, and at most `MAX_STORED` contents.

    >>> from fdstore.elements.kinds import FdError
    >>> cut_facts(ResultFacts(error=FdError(type="not_found", message="No fd:9 here.")), 5).error.message
    'No fd'
    """
    error = facts.error
    if error is not None and len(error.message) > max_chars:
        error = msgspec.structs.replace(error, message=error.message[:max_chars])
    return msgspec.structs.replace(facts, stored=facts.stored[:MAX_STORED], error=error)


def text_of_blocks(content: str | list[Any]) -> str:
    """Return the text of a message: that of its text blocks, and the types of the others in brackets.

    >>> text_of_blocks([{"type": "text", "text": "Look:"}, {"type": "image", "source": {}}])
    'Look:\\n[image]'
    """
    if isinstance(content, str):
        return content
    parts = []
    for block in content:
        if not isinstance(block, dict):
            parts.append(str(block))
        elif block.get("type") == "text":
            parts.append(str(block.get("text", "")))
        else:
            parts.append(f"[{block.get('type')}]")
    return "\n".join(parts)
