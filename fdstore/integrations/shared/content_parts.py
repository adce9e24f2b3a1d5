"""Results of a framework's tools: what is shown instead of the texts of their blocks, or within a JSON value;
and results of our tools as its blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from fdstore.results.content_blocks import picture_in
from fdstore.results.pictures import Picture

T = TypeVar("T")

MEDIA_TYPE_FIELDS = ("mimeType", "mime_type", "media_type")


def shown_blocks(
    blocks: Sequence[Any],
    parts: Sequence[str | bytes | None],
    shown: Sequence[str | None],
    text_block: Callable[[str], Any],
) -> list[Any]:
    """Return the blocks as the model is to see them: long texts replaced, a stored picture after the text
    that names it, without the texts that were stored with an earlier one. What stays as it is are the same
    objects.

    parts       of each block its text, the bytes of a picture, or None for a block that stays
    shown       what `Toolset.offload_parts` returned for the parts
    text_block  makes a block of a text

    >>> shown_blocks(["long", "IMAGE", "short"], ["long", b"GIF", "short"], ["fd:1", "fd:2", "short"], str)
    ['fd:1', 'fd:2', 'IMAGE', 'short']
    >>> shown_blocks(["many", "short"], ["many", "short"], ["fd:1", ""], str)
    ['fd:1']
    """
    found: list[Any] = []
    for block, part, text in zip(blocks, parts, shown, strict=True):
        if text is None or text == part:
            found.append(block)
        elif isinstance(part, str):
            if text:
                found.append(text_block(text))
        else:
            found += [text_block(text), block]
    return found


def convert_blocks(
    content: str | Sequence[dict[str, Any]],
    text_block: Callable[[str], T],
    picture_block: Callable[[Picture], T],
) -> list[T]:
    """Return the content of a result of our tools as blocks of a framework.

    content        of a `ToolResult`: a text, or blocks of the Messages API
    text_block     makes a block of a text
    picture_block  makes a block of an image or a PDF

    >>> picture = Picture("image/gif", b"GIF89a")
    >>> convert_blocks([{"type": "text", "text": "fd:3"}, picture.block()], str, lambda each: each.data)
    ['fd:3', b'GIF89a']
    """
    if isinstance(content, str):
        return [text_block(content)]
    pictures = [picture_in(block) for block in content]
    return [
        text_block(block["text"]) if picture is None else picture_block(picture)
        for block, picture in zip(content, pictures, strict=True)
    ]


def texts_in(value: Any) -> list[str]:
    """Return the texts in a JSON value, in their order, without the keys of dicts. A dict with a media type
    is an image, and has none.

    >>> texts_in({"log": "one", "files": ["two", {"data": "iVBO...", "mimeType": "image/png"}], "code": 1})
    ['one', 'two']
    """
    if isinstance(value, str):
        return [value]
    return [text for item in _items(value) for text in texts_in(item)]


def with_texts(value: Any, texts: list[str]) -> Any:
    """Return a value with other texts in the places of its own.

    >>> with_texts({"log": "one", "code": 1}, ["two"])
    {'log': 'two', 'code': 1}
    """
    return _replaced(value, iter(texts))


def _items(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [] if any(name in value for name in MEDIA_TYPE_FIELDS) else list(value.values())
    return list(value) if isinstance(value, (list, tuple)) else []


def _replaced(value: Any, texts: Iterator[str]) -> Any:
    if isinstance(value, str):
        return next(texts)
    if isinstance(value, dict) and _items(value):
        return {name: _replaced(item, texts) for name, item in value.items()}
    return [_replaced(item, texts) for item in value] if isinstance(value, (list, tuple)) else value
