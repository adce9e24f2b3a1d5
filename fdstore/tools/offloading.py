"""Offload what the user's own tools return: long texts are stored and rendered as `fd_result`s.

`offload` is the rule for a loop that runs its tools itself. It decides like the agent loop does for users'
functions, and also takes content blocks (of the Messages API, of OpenAI's APIs, of MCP): each text block is
judged on its own, the others stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from fdstore.errors import FDStoreError
from fdstore.msgspec_types import prepare
from fdstore.records import Descriptor
from fdstore.render import fd_error
from fdstore.store import tool_calls
from fdstore.store.record_format import decoding
from fdstore.text.names import name_id
from fdstore.tools.context import Context
from fdstore.tools.tool_errors import error_output
from fdstore.tools.tool_outcome import Offloaded
from fdstore.tools.wrapping import (
    block_text,
    escape_surrogates,
    exceeds_threshold,
    replace_text,
    to_text,
    wrap_text,
)
from fdstore.wire.operation import Operation

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


class _Stored(msgspec.Struct, frozen=True):
    """The outcome of a call: the text shown for each block, None for a block without a text."""

    shown: list[str | None]
    descriptor: Descriptor | None


prepare(_Stored)
_decoder = msgspec.json.Decoder(_Stored)


def offload(
    context: Context, value: Any, source: str, call_id: str | None = None, name: str | None = None
) -> Operation[Offloaded]:
    """Return the output of a user's tool, or the exception it raised, as the model is to see it. The first
    text that is stored is stored under the key `name`, if one is given.

    Under a `call_id` a text is stored once, and a repeat returns the first result, even if its descriptors
    have been closed since. Raises `InvalidArgument` for a value that is neither text nor JSON, and for a
    `call_id` under which another value was stored; `QuotaExceeded`.
    """
    fd = "" if name is None else name_id(name)
    is_error = isinstance(value, BaseException)
    output = error_output(value) if is_error else value
    if isinstance(output, FDStoreError):
        output = escape_surrogates(fd_error(output))
        if not exceeds_threshold(context, output):
            return Offloaded(output, None, is_error)  # an element of ours, which is not escaped
    blocks = content_blocks(output)
    texts = [to_text(output)] if blocks is None else [block_text(block) for block in blocks]
    texts = [None if text is None else escape_surrogates(text) for text in texts]
    if call_id is None or not any(text is not None and exceeds_threshold(context, text) for text in texts):
        stored = yield from _wrap_each(context, texts, source, None, fd)
    else:
        parts: object = texts
        if blocks is not None:
            parts = {"blocks": [text or block for text, block in zip(texts, blocks, strict=True)]}
        request = tool_calls.request_of("offload", [source, fd, parts])
        stored = yield from _wrap_once(context, texts, source, f"{call_id}/offload", fd, request)
    if blocks is None:
        [content] = stored.shown
        return Offloaded(content or "", stored.descriptor, is_error)
    pairs = zip(blocks, stored.shown, strict=True)
    shown = [block if text is None else replace_text(block, text) for block, text in pairs]
    return Offloaded(shown, stored.descriptor, is_error)


def _wrap_once(
    context: Context, texts: Sequence[str | None], source: str, call_id: str, fd: str, request: str
) -> Operation[_Stored]:
    """Wrap the texts of a call, or return what its first run stored."""
    before = yield from tool_calls.identify(context.handle, call_id, request)
    if before is not None:
        with decoding(f"the calls of process {context.handle.id}"):
            return _decoder.decode(before)
    stored = yield from _wrap_each(context, texts, source, call_id, fd)
    result = msgspec.json.encode(stored).decode("utf-8")
    yield from tool_calls.store_result(context.handle, call_id, result)
    return stored


def _wrap_each(
    context: Context, texts: Sequence[str | None], source: str, call_id: str | None, fd: str
) -> Operation[_Stored]:
    shown: list[str | None] = []
    descriptor = None
    for number, text in enumerate(texts):
        if text is None:
            shown.append(None)
            continue
        part_id = None if call_id is None else f"{call_id}/{number}"
        wrapped = yield from wrap_text(context, text, source, part_id, "" if descriptor else fd)
        shown.append(wrapped.content)
        descriptor = descriptor or wrapped.descriptor
    return _Stored(shown, descriptor)


def content_blocks(value: object) -> Sequence[Any] | None:
    """Return `value` if it is a list of content blocks (dicts, or objects of an SDK), else None.

    >>> content_blocks([{"type": "text", "text": "Hello"}]) is None, content_blocks([{"type": "bug"}]) is None
    (False, True)
    """
    if not isinstance(value, (list, tuple)) or not value:
        return None
    return value if all(map(_is_block, value)) else None


def _is_block(value: object) -> bool:
    kind = _field(value, "type")
    return isinstance(kind, str) and any(_field(value, name) is not None for name in BLOCKS.get(kind, ()))


def _field(block: object, name: str) -> object:
    return block.get(name) if isinstance(block, dict) else getattr(block, name, None)
