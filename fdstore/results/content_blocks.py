"""Content blocks of tools: of the Messages API, of OpenAI's APIs, of MCP; dicts, or objects of an SDK."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Any, cast

from fdstore.errors import InvalidArgument
from fdstore.errors.description import read_or
from fdstore.results.json_text import json_text, json_value
from fdstore.results.pictures import Picture
from fdstore.results.wrapping import block_text, is_blank, replace_text
from fdstore.text.media_types import check_media_type

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
    if not issubclass(type(value), (list, tuple)) or not value:
        return None
    found = cast("Sequence[Any]", value)
    return found if all(map(is_block, found)) else None


def is_block(value: object) -> bool:
    kind = field(value, "type")
    return isinstance(kind, str) and any(field(value, name) is not None for name in BLOCKS.get(kind, ()))


def field(block: object, name: str) -> object:
    """Return a field of a block, which is a dict or an object of an SDK; None if reading the field raises."""
    return read_or(lambda: block.get(name) if isinstance(block, dict) else getattr(block, name, None), None)


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
    try:
        named = check_media_type(media_type).partition(";")[0].strip()
        if isinstance(data, str):
            return Picture(_SPELLINGS.get(named, named), base64.b64decode(data, validate=True))
    except (InvalidArgument, binascii.Error, ValueError):
        pass
    return None


_SPELLINGS = {"image/jpg": "image/jpeg", "image/x-png": "image/png"}


def embedded_text(block: Any) -> str | None:
    """Return the text that a block of another type than text holds: of a document, a search result, or a
    resource of MCP. None if it holds none.

    >>> embedded_text({"type": "document", "source": {"type": "text", "data": "found"}})
    'found'
    """
    if field(block, "type") == "resource":
        text = field(field(block, "resource"), "text")
        return text if isinstance(text, str) else None
    source = field(block, "source")
    if field(source, "type") == "text":
        text = field(source, "data")
        return text if isinstance(text, str) else None
    pieces = field(source if field(source, "type") == "content" else block, "content")
    if isinstance(pieces, str):
        return pieces
    if not isinstance(pieces, (list, tuple)) or not pieces:
        return None
    texts = [block_text(piece) for piece in pieces]
    return "\n".join(text for text in texts if text is not None) if None not in texts else None


def for_messages_api(block: Any) -> Any:
    """Return a block as the Messages API takes it in a tool result: a text, a picture or PDF, a link to one,
    or a document or search result with its text. Any other is shown as JSON. The API may still refuse a
    picture: see `Picture.problem`."""
    if (picture := picture_in(block)) is not None:
        fields = block if isinstance(block, dict) else {}
        kept = {name: fields[name] for name in ("title", "context", "cache_control") if name in fields}
        return {**picture.block(), **json_value(kept)}
    if (text := block_text(block)) is not None:
        return json_value(replace_text(block if isinstance(block, dict) else text_block(text), text))
    block = json_value(_plain(block))
    if isinstance(block, dict):
        block = without_blank_pieces(block)
    return block if _is_link(block) or _has_valid_text(block) else text_block(json_text(block))


def _plain(block: Any) -> Any:
    """Return an object of an SDK as a dict."""
    dump = getattr(block, "model_dump", None)
    return dump(mode="json", exclude_none=True) if callable(dump) else block


def without_blank_pieces(block: dict[str, Any]) -> dict[str, Any]:
    """Return a document or search result without the blank texts among its pieces, which APIs refuse."""
    found = dict(block)
    for name, value in block.items():
        if name == "source" and isinstance(value, dict):
            found[name] = without_blank_pieces(value)
        elif name == "content" and isinstance(value, list):
            texts = map(block_text, value)
            found[name] = [
                piece for piece, text in zip(value, texts, strict=True) if text is None or not is_blank(text)
            ]
    return found


def _has_valid_text(block: Any) -> bool:
    text = embedded_text(block)
    if text is None or is_blank(text):
        return False
    match block:
        case {
            "type": "document",
            "source": {"type": "text", "media_type": "text/plain"} | {"type": "content"},
        }:
            return True
        case {"type": "search_result", "source": str(), "title": str(), "content": list()}:
            return True
    return False


def _is_link(block: Any) -> bool:
    if not isinstance(block, dict) or block.get("type") not in ("image", "document"):
        return False
    match block.get("source"):
        case {"type": "url", "url": str(url)}:
            return url.startswith("https://")
        case {"type": "file", "file_id": str(file_id)}:
            return bool(file_id)
    return False
