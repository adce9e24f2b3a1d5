"""The answer of a server to a call of code, as code gets it.

structuredContent      a dict or a list
blocks of text         a str, joined by line breaks
other blocks           a list of dicts, as they came
what is long           a descriptor, which code gets as a Text
isError, an error      an exception with its text, and what is structured in it as JSON
"""

from __future__ import annotations

from typing import Any, BinaryIO

from msgspec import Raw

from fdstore.hosts.gateway.json_parts import (
    Parts,
    encode,
    is_null,
    is_string,
    items_of,
    object_at,
    parts_of,
    string_of,
    value_of,
)
from fdstore.hosts.gateway.json_texts import (
    LONG_BYTES,
    Text,
    chars_up_to,
)
from fdstore.hosts.gateway.messages import Message
from fdstore.hosts.gateway.tool_results import resource_text_in, text_in
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
    answer = message.fields or {}
    result = parts_of(answer.get("result", b""))
    if result is None:
        return (yield from _failure(_error_of(answer), shelf, "RuntimeError"))
    blocks = items_of(result.get("content", b"[]")) or []
    found = [(text_in(block), resource_text_in(block)) for block in blocks]
    texts = [resource if text is None else text for text, resource in found]
    plain = Text(tuple(text for text in texts if text is not None))
    if bytes(result.get("isError", b"")).strip() == b"true":
        is_empty = all(len(text) <= len('""') for text in plain.literals)
        said = _with_json(Text(()) if is_empty else plain, result.get("structuredContent"))
        if not said.literals and len(plain.literals) < len(blocks):
            said = _with_json(said, result["content"])
        elif not said.literals:
            said = _said("the tool failed")
        return (yield from _failure(said, shelf, "ValueError"))
    structured = result.get("structuredContent")
    if structured is not None and not is_null(structured):
        fields = parts_of(structured) or {}
        return (yield from _value(fields.get(field, structured), shelf))
    if len(plain.literals) < len(blocks):
        return (yield from _value(result["content"], shelf))
    if _is_long(plain):
        return FunctionOutcome(fd=(yield from shelf.keep(plain.to_store())))
    return FunctionOutcome(value=plain.read())


def _error_of(answer: Parts) -> Text:
    """Return what an error says."""
    error = object_at(answer, "error")
    message = error.get("message")
    said = message if message is not None and is_string(message) else None
    if said is None:
        said = encode("the server gave neither a result nor an error")
    text = Text((said,))
    if "code" in error and chars_up_to(said, MAX_ERROR_CHARS) <= MAX_ERROR_CHARS:
        code = bytes(error["code"]).decode("utf-8", "replace")
        text = _said(f"{string_of(said)} (error {code})")
    return _with_json(text, error.get("data"))


def _with_json(said: Text, structured: Raw | None) -> Text:
    """Return what a tool said, with what it said as JSON unless that is the same."""
    if structured is None or is_null(structured):
        return said
    if is_string(structured):
        more = structured
    else:
        more = encode(bytes(structured).decode("utf-8", "replace"))
    return said if _is_same(said, structured) else Text((*said.literals, more))


def _is_same(said: Text, structured: Raw) -> bool:
    """Return whether a text says what a structured value does, as for clients that take texts alone."""
    if said.size > LONG_BYTES:
        return False
    text = said.read()
    try:
        value = value_of(structured)
        return bool(text == value or value_of(text.encode()) == value)
    except (ValueError, RecursionError):
        return False


def _said(text: str) -> Text:
    return Text((encode(text),))


def _failure(text: Text, shelf: Shelf, kind: Any) -> Operation[FunctionOutcome]:
    if text.size <= MAX_ERROR_CHARS or (text.size <= LONG_BYTES and len(text.read()) <= MAX_ERROR_CHARS):
        return FunctionOutcome(error=text.read(), kind=kind)
    begin = "" if _is_long(text) else text.read()[:MAX_ERROR_CHARS] + "... "
    fd = yield from shelf.keep(text.to_store())
    return FunctionOutcome(error=f"{begin}(the whole error is {fd})", kind=kind)


def _value(json: Raw, shelf: Shelf) -> Operation[FunctionOutcome]:
    text = Text((json,))
    if not _is_long(text):
        try:
            return FunctionOutcome(value=value_of(json))
        except ValueError:  # too deep for a value of Python: code gets the text
            pass
    return FunctionOutcome(fd=(yield from shelf.keep(text.to_store())))


def _is_long(text: Text) -> bool:
    """Return whether a text has more than `MAX_VALUE_CHARS`."""
    if text.size <= MAX_VALUE_CHARS:
        return False
    count = 0
    for piece in text.pieces():
        count += len(piece.decode("utf-8", "replace"))
        if count > MAX_VALUE_CHARS:
            return True
    return False
