"""Results of tools: which texts are stored as descriptors, and what is shown in their place.

Oversized are: text blocks, by the rule of `results.block_groups`; the text of an embedded resource, and
`structuredContent`, each on its own. Servers usually send a structured result twice, as `structuredContent`
and as text for older hosts; it is stored once: as the text blocks if it is a list of their texts. Images,
audio and links stay as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from fdstore.integrations.gateway.json_parts import (
    Json,
    Parts,
    encode,
    items_of,
    parts_of,
    text_at,
    value_of,
)
from fdstore.integrations.gateway.long_values import LONG_BYTES
from fdstore.results.block_groups import groups_to_store


class LongText(msgspec.Struct, frozen=True):
    """A text to store. It is shown in the first of `blocks`, and the others are removed; without any it is
    shown in a new block."""

    text: str
    blocks: tuple[int, ...]
    is_structured: bool = False


class ResultPlan(msgspec.Struct, frozen=True):
    """A tool's result whose `long_texts` are to be stored. `is_repeated`: `structuredContent` has the texts
    of the blocks once more, and goes with them."""

    fields: Parts
    blocks: list[Raw]
    long_texts: list[LongText]
    is_repeated: bool = False

    def with_shown(self, shown: Sequence[str | None]) -> Raw:
        """Return the result with what is shown for each long text; None leaves that one as it was."""
        fields = dict(self.fields)
        replaced: dict[int, Raw | None] = {}
        added: list[Raw] = []
        for long, text in zip(self.long_texts, shown, strict=True):
            if text is None:
                continue
            if long.is_structured or self.is_repeated:
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


def plan_result(result: Json, limit: int, set_aside: Collection[str] = ()) -> ResultPlan | None:
    """Return what to store of a tool's result so that no more than `limit` characters remain of its text
    blocks and of any other text; None if nothing is longer. The strings `set_aside` stand for long values."""
    fields = parts_of(result)
    if fields is None:
        return None
    blocks = items_of(fields["content"]) if "content" in fields else []
    if blocks is None:
        return None
    texts = [text_in(block) for block in blocks]
    resources = [resource_text_in(block) for block in blocks]
    both = [resource if text is None else text for text, resource in zip(texts, resources, strict=True)]

    def is_long(text: str) -> bool:
        return len(text) > limit or text in set_aside

    long_texts: list[LongText] = []
    is_repeated = False
    structured = bytes(fields.get("structuredContent", b"")).decode("utf-8", "replace")
    if is_long(structured) or any(token in structured for token in set_aside):
        is_repeated = _is_list_of(structured, texts) and bool(groups_to_store(texts, is_long))
        if not is_repeated:
            others = {n: text for n, text in enumerate(both) if text is not None}
            long = _structured(structured, others, set_aside)
            long_texts.append(long)
            for number in long.blocks:
                texts[number] = resources[number] = None
    for group in groups_to_store(texts, is_long):
        long_texts.append(LongText("\n".join(str(texts[number]) for number in group), group))
    for number, text in enumerate(resources):
        if text is not None and is_long(text):
            long_texts.append(LongText(text, (number,)))
    if not long_texts:
        return None
    # the descriptors are numbered in the order in which they are shown
    long_texts.sort(key=lambda long: long.blocks[0] if long.blocks else len(blocks))
    return ResultPlan(fields, blocks, long_texts, is_repeated)


def _is_list_of(structured: str, texts: Sequence[str | None]) -> bool:
    """Return whether the structured content is that which servers make of a list of these texts."""
    try:
        return len(structured) <= LONG_BYTES and bool(value_of(structured.encode()) == {"result": texts})
    except ValueError:
        return False


def _structured(structured: str, texts: dict[int, str], set_aside: Collection[str]) -> LongText:
    """Return the structured content as a long text, with the blocks that repeat it. A very long one is not
    compared: its values would take many times its memory."""
    if len(structured) > LONG_BYTES:
        return LongText(structured, (), is_structured=True)
    try:
        value = value_of(structured.encode())
    except ValueError:
        return LongText(structured, (), is_structured=True)
    if isinstance(value, str) and value in set_aside:
        structured = value
    for number, text in texts.items():
        if _parsed(text) == value:
            return LongText(structured, (number,), is_structured=True)
    match value:
        # the shapes that servers make of a tool that returns a text or a list; some name a text otherwise
        case {**fields} if len(fields) == 1 and isinstance(only := next(iter(fields.values())), str):
            same = tuple(number for number, text in texts.items() if text == only)
            if same or "result" in fields:
                return LongText(only, same[:1], is_structured=True)
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


def text_in(block: Raw) -> str | None:
    """Return the text of a text block, None for another block."""
    fields = parts_of(block) or {}
    is_text = text_at(fields, "type") == "text"
    return text_at(fields, "text") if is_text else None


def resource_text_in(block: Raw) -> str | None:
    """Return the text of an embedded resource, None for another block."""
    fields = parts_of(block) or {}
    if text_at(fields, "type") != "resource":
        return None
    return text_at(fields, "resource", "text")


def _with_text(block: Raw, text: str) -> Raw:
    """Return a block with another text and its other fields as they were."""
    fields = parts_of(block) or {}
    if "text" in fields:
        return encode({**fields, "text": text})
    resource = parts_of(fields["resource"]) or {}
    return encode({**fields, "resource": encode({**resource, "text": text})})
