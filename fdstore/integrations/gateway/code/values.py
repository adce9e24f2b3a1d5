"""The answer of a server to a call of code, as code gets it.

structuredContent      a dict or a list
blocks of text         a str, joined by line breaks
other blocks           a list of dicts, as they came
what is long           a descriptor, which code gets as a Text
isError, an error      an exception with its text, and what is structured in it as JSON
"""

from __future__ import annotations

from io import BytesIO
from typing import Any, BinaryIO

from msgspec import Raw

from fdstore.integrations.gateway.json_parts import (
    encode,
    is_null,
    items_of,
    object_at,
    parts_of,
    string_of,
    text_at,
    value_of,
)
from fdstore.integrations.gateway.long_values import Message
from fdstore.integrations.gateway.tool_results import resource_text_in, text_in
from fdstore.store.contents import contents
from fdstore.store.process_handle import ProcessHandle
from fdstore.tools.functions.function_values import MAX_VALUE_CHARS, FunctionOutcome
from fdstore.wire.operation import Operation

MAX_ERROR_CHARS = 4000


class Shelf:
    """The place of the long values of one call."""

    def __init__(self, handle: ProcessHandle, source: str, page_size: int, call_id: str) -> None:
        self._handle, self._source, self._page_size = handle, source, page_size
        self._slot = f"{call_id}/value"

    def keep(self, text: str | BinaryIO) -> Operation[str]:
        """Store a text, and return its id."""
        if isinstance(text, str):
            stored = yield from contents.create(
                self._handle, text, self._source, self._page_size, call_id=self._slot
            )
            return stored.fd
        stored = yield from contents.ingest(
            self._handle,
            text,
            self._source,
            self._page_size,
            "backslashreplace",
            media_type="text/plain",
            call_id=self._slot,
        )
        return stored.fd


def outcome_of(message: Message, shelf: Shelf, field: str = "") -> Operation[FunctionOutcome]:
    """Return what an answer is for code; of a structured result only this `field`, if it is named. Raises the
    errors of storing a text."""
    answer = parts_of(message.text) or {}
    result = parts_of(answer.get("result", b""))
    if result is None:
        error = object_at(answer, "error")
        code = bytes(error.get("code", b"")).decode("utf-8", "replace")
        said = text_at(error, "message") or "the server gave neither a result nor an error"
        text = _with_json(f"{said} (error {code})" if code else said, error.get("data"))
        return (yield from _failure(message, text, shelf, "RuntimeError"))
    blocks = items_of(result.get("content", b"[]")) or []
    found = [(text_in(block), resource_text_in(block)) for block in blocks]
    texts = [resource if text is None else text for text, resource in found]
    if value_of(result.get("isError", b"false")) is True:
        said = "\n".join(text for text in texts if text is not None)
        said = _with_json(said, result.get("structuredContent"))
        if not said and blocks:
            said = _with_json("", encode(blocks))
        return (yield from _failure(message, said or "the tool failed", shelf, "ValueError"))
    structured = result.get("structuredContent")
    if structured is not None and not is_null(structured):
        fields = parts_of(structured) or {}
        return (yield from _value(message, fields.get(field, structured), shelf))
    plain = [text for text in texts if text is not None]
    if len(plain) < len(blocks):
        return (yield from _value(message, encode(blocks), shelf))
    text = "\n".join(plain)
    if _is_long(message, text):
        return FunctionOutcome(fd=(yield from shelf.keep(_joined(message, plain))))
    return FunctionOutcome(value=text)


def _with_json(said: str, structured: Raw | None) -> str:
    """Return what a tool said, with what it said as JSON unless that is the same."""
    if structured is None or is_null(structured):
        return said
    text = string_of(structured)  # one itself, or the token of a long value
    if text is None:
        text = bytes(structured).decode("utf-8", "replace")
    return said if _is_same(said, text, structured) else "\n".join(filter(None, (said, text)))


def _is_same(said: str, text: str, structured: Raw) -> bool:
    """Return whether a text says what a structured value does, as for clients that take texts alone."""
    if said == text:
        return True
    try:
        return bool(value_of(said.encode()) == value_of(structured))
    except (ValueError, RecursionError):
        return False


def _failure(message: Message, text: str, shelf: Shelf, kind: Any) -> Operation[FunctionOutcome]:
    if len(text) <= MAX_ERROR_CHARS and not _is_long(message, text):
        return FunctionOutcome(error=text, kind=kind)
    fd = yield from shelf.keep(message.to_store(text))
    shown = "" if _is_long(message, text) else text[:MAX_ERROR_CHARS] + "... "
    return FunctionOutcome(error=f"{shown}(the whole error is {fd})", kind=kind)


def _value(message: Message, json: Raw, shelf: Shelf) -> Operation[FunctionOutcome]:
    text = string_of(json)  # one itself, or the token of a long value that was set aside whole
    if text is None:
        text = bytes(json).decode("utf-8", "replace")
    if not _is_long(message, text):
        return FunctionOutcome(value=value_of(json))
    return FunctionOutcome(fd=(yield from shelf.keep(message.to_store(text))))


def _is_long(message: Message, text: str) -> bool:
    return len(text) > MAX_VALUE_CHARS or any(token in text for token in message.long_values)


def _joined(message: Message, texts: list[str]) -> str | BinaryIO:
    """Return the texts of blocks as one to store."""
    if len(texts) == 1:
        return message.to_store(texts[0])
    parts = [message.to_store(text) for text in texts]
    if all(isinstance(part, str) for part in parts):
        return "\n".join(texts)
    return BytesIO(b"\n".join(part.encode() if isinstance(part, str) else part.read() for part in parts))
