"""Which texts of a tool's result are stored as descriptors, and the result with what is shown in their place.

Oversized are: a text block, the text of an embedded resource, `structuredContent`; and blocks that are short
one by one and long together. Servers usually send a structured result twice, as `structuredContent` and as
text for older hosts; it is stored once. Images, audio and links stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Raw

from fdstore.integrations.gateway.json_parts import (
    Json,
    Parts,
    encode,
    items_of,
    parts_of,
    string_of,
    value_of,
)


class LongText(msgspec.Struct, frozen=True):
    """A text to store. It is shown in the first of `blocks`, and the others are removed; without any it is
    shown in a new block."""

    text: str
    blocks: tuple[int, ...]
    is_structured: bool = False


class ResultPlan(msgspec.Struct, frozen=True):
    """A tool's result whose `long_texts` are to be stored."""

    fields: Parts
    blocks: list[Raw]
    long_texts: list[LongText]

    def with_shown(self, shown: Sequence[str | None]) -> Raw:
        """Return the result with what is shown for each long text; None leaves that one as it was."""
        fields = dict(self.fields)
        replaced: dict[int, Raw | None] = {}
        added: list[Raw] = []
        for long, text in zip(self.long_texts, shown, strict=True):
            if text is None:
                continue
            if long.is_structured:
                fields.pop("structuredContent", None)
            if not long.blocks:
                added.append(encode({"type": "text", "text": text}))
                continue
            first, *others = long.blocks
            replaced[first] = _with_text(self.blocks[first], text)
            replaced.update(dict.fromkeys(others))
        kept = [replaced.get(number, block) for number, block in enumerate(self.blocks)]
        content = [block for block in kept if block is not None] + added
        fields["content"] = encode(content)
        return encode(fields)


def plan_result(result: Json, limit: int) -> ResultPlan | None:
    """Return what to store of a tool's result so that no more than `limit` characters of a kind remain; None
    if nothing is longer."""
    fields = parts_of(result)
    if fields is None:
        return None
    blocks = items_of(fields["content"]) if "content" in fields else []
    if blocks is None:
        return None
    texts = {number: text for number, block in enumerate(blocks) if (text := _text_in(block)) is not None}
    long_texts: list[LongText] = []
    structured = bytes(fields.get("structuredContent", b"")).decode("utf-8", "replace")
    if len(structured) > limit:
        long = _structured(structured, texts)
        long_texts.append(long)
        for number in long.blocks:
            del texts[number]
    for number in [number for number, text in texts.items() if len(text) > limit]:
        long_texts.append(LongText(texts.pop(number), (number,)))
    if sum(map(len, texts.values())) > limit:
        long_texts.append(LongText("\n".join(texts.values()), tuple(texts)))
    if not long_texts:
        return None
    # the descriptors are numbered in the order in which they are shown
    long_texts.sort(key=lambda long: long.blocks[0] if long.blocks else len(blocks))
    return ResultPlan(fields, blocks, long_texts)


def _structured(structured: str, texts: dict[int, str]) -> LongText:
    """Return the structured content as a long text, with the blocks that repeat it."""
    try:
        value = value_of(structured.encode())
    except ValueError:
        return LongText(structured, (), is_structured=True)
    for number, text in texts.items():
        if _parsed(text) == value:
            return LongText(structured, (number,), is_structured=True)
    match value:
        # the shapes that servers make of a tool that returns a text or a list
        case {"result": str(text), **rest} if not rest:
            same = tuple(number for number, other in texts.items() if other == text)
            return LongText(text, same[:1], is_structured=True)
        case {"result": list(items), **rest} if not rest and len(items) == len(texts):
            pairs = zip(texts.values(), items, strict=True)
            if all(text == item or _parsed(text) == item for text, item in pairs):
                return LongText(structured, tuple(texts), is_structured=True)
    return LongText(structured, (), is_structured=True)


def _parsed(text: str) -> Any:
    """Return the value of a JSON text; the text itself if it is none."""
    try:
        return value_of(text.encode())
    except ValueError:
        return text


def _text_in(block: Raw) -> str | None:
    """Return the text of a text block or an embedded resource; None for other blocks."""
    fields = parts_of(block) or {}
    match string_of(fields.get("type", b"")):
        case "text":
            return string_of(fields.get("text", b""))
        case "resource":
            return string_of((parts_of(fields.get("resource", b"")) or {}).get("text", b""))
    return None


def _with_text(block: Raw, text: str) -> Raw:
    """Return a block with another text and its other fields as they were."""
    fields = parts_of(block) or {}
    if "text" in fields:
        return encode({**fields, "text": text})
    resource = parts_of(fields["resource"]) or {}
    return encode({**fields, "resource": encode({**resource, "text": text})})
