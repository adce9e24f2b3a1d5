"""The texts within a JSON value that a tool returned, to be judged and replaced one by one.

Other values than dicts, lists and texts stay as they are, and so do dicts with a media type: images.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

MEDIA_TYPE_FIELDS = ("mimeType", "mime_type", "media_type")


def texts_in(value: Any) -> list[str]:
    """Return the texts in a value, in their order, without the keys of dicts.

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
