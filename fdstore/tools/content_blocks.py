"""Content blocks of tools: of the Messages API, of OpenAI's APIs, of MCP; dicts, or objects of an SDK."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Any

from fdstore.text.media_types import VIEWABLE_TYPES
from fdstore.tools.pictures import Picture
from fdstore.tools.wrapping import block_text, replace_text, to_text

BLOCKS: dict[str, tuple[str, ...]] = {
    "text": ("text",),
    "image": ("source", "data"),
    "document": ("source",),
    "search_result": ("source",),
    "tool_reference": ("tool_name",),
    "audio": ("data",),
    "resource": ("resource",),
    "resource_link": ("uri",),
    "image_url": ("image_url",),
    "input_text": ("text",),
    "input_image": ("image_url", "file_id"),
    "input_file": ("file_data", "file_id", "file_url"),
}
"""Types of content blocks, each with the fields of which a block has at least one. A list of other objects
that have a "type" is a JSON value."""


def content_blocks(value: object) -> Sequence[Any] | None:
    """Return `value` if it is a list of content blocks (dicts, or objects of an SDK), else None.

    >>> content_blocks([{"type": "text", "text": "Hello"}]) is None, content_blocks([{"type": "bug"}]) is None
    (False, True)
    """
    if not isinstance(value, (list, tuple)) or not value:
        return None
    return value if all(map(is_block, value)) else None


def is_block(value: object) -> bool:
    kind = field(value, "type")
    return isinstance(kind, str) and any(field(value, name) is not None for name in BLOCKS.get(kind, ()))


def field(block: object, name: str) -> object:
    """Return a field of a block, which is a dict or an object of an SDK."""
    return block.get(name) if isinstance(block, dict) else getattr(block, name, None)


def text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def picture_in(block: Any) -> Picture | None:
    """Return the image or PDF in a content block of the Messages API, of MCP or of OpenAI's APIs; None if it
    holds none, or only a link to one."""
    source = field(block, "source")
    if field(source, "type") == "base64":
        return _decoded(field(source, "media_type"), field(source, "data"))
    if field(block, "type") == "image" and isinstance(field(block, "data"), str):
        return _decoded(field(block, "mimeType"), field(block, "data"))
    link = field(block, "image_url")
    link = link if isinstance(link, str) else field(link, "url")
    if isinstance(link, str) and link.startswith("data:"):
        head, comma, data = link.removeprefix("data:").partition(",")
        if comma and head.endswith(";base64"):
            return _decoded(head.removesuffix(";base64"), data)
    return None


def _decoded(media_type: object, data: object) -> Picture | None:
    if not isinstance(media_type, str) or media_type not in VIEWABLE_TYPES or not isinstance(data, str):
        return None
    try:
        return Picture(media_type, base64.b64decode(data, validate=True))
    except (binascii.Error, ValueError):
        return None


def for_messages_api(block: Any) -> Any:
    """Return a block as the Messages API takes it in a tool result. A picture that it would refuse is shown
    as JSON, with the reason."""
    picture = picture_in(block)
    if picture is not None:
        if problem := picture.problem():
            return text_block(f"An image cannot be shown: {problem}\n{to_text(_plain(block))}")
        fields = block if isinstance(block, dict) else {}
        kept = {name: fields[name] for name in ("title", "context", "cache_control") if name in fields}
        return {**picture.block(), **kept}
    if (text := block_text(block)) is not None:
        return replace_text(block if isinstance(block, dict) else text_block(text), text)
    block = _plain(block)
    accepted = isinstance(block, dict) and block.get("type") in ("image", "document", "search_result")
    return block if accepted and "source" in block else text_block(to_text(block))


def _plain(block: Any) -> Any:
    """Return an object of an SDK as a dict."""
    dump = getattr(block, "model_dump", None)
    return dump(mode="json", exclude_none=True) if callable(dump) else block
