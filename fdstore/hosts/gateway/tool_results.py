"""Results of tools: which texts are stored as descriptors, and what is shown in their place.

Oversized are: text blocks, by the rule of `results.block_groups`; the text of an embedded resource, and
`structuredContent`, each on its own. Servers usually send a structured result twice, as `structuredContent`
and as text for older hosts; it is stored once: as the text blocks if it is a list of their texts. Images,
audio and links stay as they are. No text is decoded here that is not short.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec import Raw

from fdstore.hosts.gateway.json_parts import (
    Json,
    Parts,
    exact_value_of,
    is_string,
    items_of,
    object_at,
    parts_of,
    string_of,
    text_at,
    value_of,
)
from fdstore.hosts.gateway.json_texts import Text, chars_up_to, digest_of
from fdstore.results.block_groups import groups_to_store

COMPARED_BYTES = 1 << 18
"""A JSON text of more bytes is compared as text: its values take many times its memory."""


class LongText(msgspec.Struct, frozen=True):
    """A text to store. It is shown in the first of `blocks`, and the others are removed; without any it is
    shown in a new block."""

    content: Text
    blocks: tuple[int, ...]
    is_structured: bool = False

    @property
    def text(self) -> str:
        return self.content.read()


class ResultPlan(msgspec.Struct, frozen=True):
    """A tool's result whose `long_texts` are to be stored. `is_repeated`: `structuredContent` has the texts
    of the blocks once more, and goes with them."""

    fields: Parts
    blocks: list[Raw]
    long_texts: list[LongText]
    is_repeated: bool = False

    def with_shown(self, shown: Sequence[str | None]) -> dict[str, Any]:
        """Return the members of the result with what is shown for each long text; None leaves that one as it
        was."""
        fields: dict[str, Any] = dict(self.fields)
        replaced: dict[int, object] = {}
        added: list[object] = []
        for long, text in zip(self.long_texts, shown, strict=True):
            if text is None:
                continue
            if long.is_structured or self.is_repeated:
                fields.pop("structuredContent", None)
            if not long.blocks:
                added.append({"type": "text", "text": text})
                continue
            first, *others = long.blocks
            replaced[first] = _with_text(self.blocks[first], text)
            replaced.update(dict.fromkeys(others))
        kept = [replaced.get(number, block) for number, block in enumerate(self.blocks)]
        fields["content"] = [block for block in kept if block is not None] + added
        return fields


def plan_result(result: Json, limit: int) -> ResultPlan | None:
    """Return what to store of a tool's result so that no more than `limit` characters remain of its text
    blocks and of any other text; None if nothing is longer."""
    fields = parts_of(result)
    if fields is None:
        return None
    blocks = items_of(fields["content"]) if "content" in fields else []
    if blocks is None:
        return None
    texts = [text_in(block) for block in blocks]
    resources = [resource_text_in(block) for block in blocks]
    both = [resource if text is None else text for text, resource in zip(texts, resources, strict=True)]
    long_texts: list[LongText] = []
    is_repeated = False
    structured = fields.get("structuredContent")
    if structured is not None and len(structured) > limit and _is_long(structured, limit):
        is_repeated = _is_list_of(structured, texts) and bool(_groups(texts, limit))
        if not is_repeated:
            long = _structured(structured, {n: text for n, text in enumerate(both) if text is not None})
            long_texts.append(long)
            for number in long.blocks:
                texts[number] = resources[number] = None
    for group in _groups(texts, limit):
        literals = tuple(text for number in group if (text := texts[number]) is not None)
        long_texts.append(LongText(Text(literals), group))
    for number, text in enumerate(resources):
        if text is not None and chars_up_to(text, limit) > limit:
            long_texts.append(LongText(Text((text,)), (number,)))
    if not long_texts:
        return None
    # the descriptors are numbered in the order in which they are shown
    long_texts.sort(key=lambda long: long.blocks[0] if long.blocks else len(blocks))
    return ResultPlan(fields, blocks, long_texts, is_repeated)


def why_unchanged(result: Json) -> str:
    """Return why a long result has nothing to store, for people."""
    fields = parts_of(result)
    if fields is None or ("content" in fields and items_of(fields["content"]) is None):
        return "its content is no list of blocks, or of too many"
    return "it has no long text; images, audio and links stay"


def _is_long(value: Raw, limit: int) -> bool:
    """Return whether a value has more characters than `limit`: as text, or a string as it is."""
    if is_string(value):
        return chars_up_to(value, limit) > limit
    return len(bytes(memoryview(value)[: 4 * limit + 4]).decode("utf-8", "replace")) > limit


def _groups(texts: Sequence[Raw | None], limit: int) -> list[tuple[int, ...]]:
    sizes = [None if text is None else chars_up_to(text, limit) for text in texts]
    return groups_to_store(sizes, lambda size: size > limit, lambda group: sum(group) + len(group) - 1)


def _is_list_of(structured: Raw, texts: Sequence[Raw | None]) -> bool:
    """Return whether the structured content is that which servers make of a list of these texts."""
    items = _result_items(parts_of(structured) or {})
    return (
        bool(items)
        and len(items) == len(texts)
        and all(
            text is not None and is_string(item) and digest_of(item) == digest_of(text)
            for item, text in zip(items, texts, strict=True)
        )
    )


def _result_items(fields: Mapping[str, Raw]) -> list[Raw]:
    return (items_of(fields["result"]) or []) if list(fields) == ["result"] else []


def _structured(structured: Raw, texts: Mapping[int, Raw]) -> LongText:
    """Return the structured content as a long text, with the blocks that repeat it."""
    if is_string(structured):
        return LongText(Text((structured,)), _repeating(structured, texts), is_structured=True)
    whole = Text((structured,))
    value = _Comparable(structured)
    for number, text in texts.items():
        if value.is_text(text):
            return LongText(whole, (number,), is_structured=True)
    fields = parts_of(structured) or {}
    # the shapes that servers make of a tool that returns a text or a list; some name a text otherwise
    if len(fields) == 1:
        [(name, only)] = fields.items()
        if is_string(only):
            same = _repeating(only, texts)
            if same or name == "result":
                return LongText(Text((only,)), same, is_structured=True)
    items = _result_items(fields)
    if items and len(items) == len(texts):
        pairs = zip(texts.values(), items, strict=True)
        if all(_says(text, item) for text, item in pairs):
            return LongText(whole, tuple(texts), is_structured=True)
    return LongText(whole, (), is_structured=True)


def _repeating(literal: Raw, texts: Mapping[int, Raw]) -> tuple[int, ...]:
    """Return the first of the texts that is this string."""
    digest = digest_of(literal)
    return next(((number,) for number, text in texts.items() if digest and digest_of(text) == digest), ())


def _says(text: Raw, item: Raw) -> bool:
    """Return whether a text is an item of a list: as it is, or as JSON."""
    if is_string(item):
        return digest_of(text) == digest_of(item)
    return _Comparable(item).is_text(text)


class _Comparable:
    """A JSON value that is compared with texts."""

    def __init__(self, json: Raw) -> None:
        self._json = json
        self._is_short = len(json) <= COMPARED_BYTES

    def is_text(self, literal: Raw) -> bool:
        """Return whether a string is the JSON text of this value."""
        if len(literal) < len(self._json) // 4 or (self._is_short and len(literal) > 8 * COMPARED_BYTES):
            return False
        if not self._is_short:
            return bool(self._compact) and _compact(Text((literal,)).joined) == self._compact
        text = string_of(literal) or ""
        if text.lstrip()[:1].encode() != bytes(memoryview(self._json)[:1]):
            return False
        try:
            written = text.encode()
            if not _may_be_equal(value_of(written), self._value):
                return False
            if self._compact and _compact(lambda: written) == self._compact:
                return True
            return bool(exact_value_of(written) == exact_value_of(self._json))
        except ValueError:
            return False

    @cached_property
    def _compact(self) -> bytes:
        return _compact(lambda: bytes(self._json))

    @cached_property
    def _value(self) -> Any:
        return value_of(self._json)


def _may_be_equal(one: Any, other: Any) -> bool:
    """Return whether two values may be the same JSON; for Python true is 1, too."""
    return bool(one == other) or repr(one) == repr(other)  # no NaN is equal to another


def _compact(read: Callable[[], bytes]) -> bytes:
    """Return what tells a JSON text apart whatever its blanks; b"" for what is not strict JSON."""
    try:
        return blake2b(msgspec.json.format(read(), indent=-1)).digest()
    except (ValueError, msgspec.DecodeError, RecursionError):
        return b""


def text_in(block: Raw) -> Raw | None:
    """Return the text of a text block as a JSON string, None for another block."""
    fields = parts_of(block) or {}
    return _string_at(fields, "text") if text_at(fields, "type") == "text" else None


def resource_text_in(block: Raw) -> Raw | None:
    """Return the text of an embedded resource as a JSON string, None for another block."""
    fields = parts_of(block) or {}
    is_resource = text_at(fields, "type") == "resource"
    return _string_at(object_at(fields, "resource"), "text") if is_resource else None


def _string_at(fields: Parts, name: str) -> Raw | None:
    found = fields.get(name)
    return found if found is not None and is_string(found) else None


def _with_text(block: Raw, text: str) -> dict[str, Any]:
    """Return a block with another text and its other fields as they were."""
    fields = parts_of(block) or {}
    if "text" in fields:
        return {**fields, "text": text}
    return {**fields, "resource": {**object_at(fields, "resource"), "text": text}}
