"""Blocks of the Messages API, the form of every journal, as other APIs need them.

What a provider wants back as it came, and what no other one may see, is in the field `kept` of a block, under
the provider's name: signatures of calls, encrypted reasoning. The rest of the block is what people see.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from fdstore.agents.loop.answer import as_stored

Block = dict[str, Any]
KEPT = "kept"
AFTER = "(after the results)"
"""Stands for what follows the results of a turn."""
ERROR_MARK = "error: "
"""Begins the result of a call that failed, where an API has no field for that."""


class Attachment(msgspec.Struct, frozen=True):
    """A picture or a document: its URL, which may hold its bytes."""

    kind: Literal["image", "document"]
    url: str


def blocks_of(content: str | list[Block]) -> list[Block]:
    """Return the content of a message or a result as blocks."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def attachment_of(block: Block) -> Attachment | None:
    """Return the picture or document in a block, None if it has none.

    >>> attachment_of({"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}})
    Attachment(kind='image', url='https://example.org/a.png')
    """
    kind, source = block.get("type"), block.get("source")
    if kind not in ("image", "document") or not isinstance(source, dict):
        return None
    match source:
        case {"type": "base64", "media_type": media_type, "data": data}:
            return Attachment(kind, f"data:{media_type};base64,{data}")
        case {"type": "url", "url": str(url)}:
            return Attachment(kind, url)
    return None


def text_of(block: Block) -> str:
    """Return a block as text: its own, or the JSON of a block that has none.

    >>> text_of({"type": "text", "text": "Hi."}), text_of({"type": "search_result", "title": "A"})
    ('Hi.', '{"type":"search_result","title":"A"}')
    """
    match block:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "tool_reference"}:
            return ""  # only the Messages API loads tools; what the result says follows the results
        case {"type": "document", "source": {"type": "text", "data": str(text)}}:
            return text
    return msgspec.json.encode(block).decode("utf-8")


def result_text(block: Block, texts: Iterable[str]) -> str:
    """Return the text of a `tool_result` whose content says `texts`, marked if the call failed."""
    text = "\n".join(filter(None, texts)) or AFTER
    return ERROR_MARK + text if block.get("is_error") else text


def kept_for(block: Block, provider: str) -> Block:
    """Return what a provider wants back with a block; {} if nothing."""
    kept = block.get(KEPT, {}).get(provider, {})
    return kept if isinstance(kept, dict) else {}


def keep(block: Block, provider: str, fields: Block) -> Block:
    """Return a block with what a provider wants back. Raises `ValueError` if a journal cannot store it."""
    return {**block, KEPT: {provider: as_stored(fields)}}


def without_kept(messages: list[Block]) -> list[Block]:
    """Return messages for a provider that wants nothing back beside the blocks: thinking that another has
    kept is left out. The list itself if there is nothing to change."""
    if not any(KEPT in block for message in messages for block in blocks_of(message["content"])):
        return messages
    cleaned = []
    for message in messages:
        blocks = [
            {name: value for name, value in block.items() if name != KEPT}
            for block in blocks_of(message["content"])
            if not (KEPT in block and block.get("type") not in ("text", "tool_use"))
        ]
        if blocks:
            cleaned.append({**message, "content": blocks})
    return cleaned
