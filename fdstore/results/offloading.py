"""Offload what the user's own tools return: long texts are stored and rendered as `fd_result`s.

`offload` is for a loop that runs its tools itself. It takes a text or a JSON value, which is one text, and
content blocks (of the Messages API, of OpenAI's APIs, of MCP). `block_groups` decides which of their texts
are stored, and which together, in the place of the first. The text in a document, a search result or a
resource is judged on its own; other blocks stay as they are. Images and PDFs are stored too, and the model
sees their ids. `wrap` and `wrap_output`, which is for the agent loop, are the same for results that go to the
Messages API.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any

import msgspec

from fdstore.elements.facts import NO_FACTS, ResultFacts, in_block, join_facts, move_blocks
from fdstore.elements.render import fd_error
from fdstore.errors import DamagedRecord, FDStoreError
from fdstore.model.msgspec_types import prepare
from fdstore.results.block_groups import groups_to_store, join_groups
from fdstore.results.content_blocks import (
    content_blocks,
    embedded_text,
    field,
    for_messages_api,
    is_block,
    picture_in,
    text_block,
    without_blank_pieces,
)
from fdstore.results.context import Context
from fdstore.results.pictures import Picture
from fdstore.results.tool_errors import error_output
from fdstore.results.tool_outcome import Offloaded
from fdstore.results.wrapping import (
    NO_OUTPUT,
    as_of_input,
    block_text,
    exceeds_threshold,
    is_blank,
    replace_text,
    store_bytes,
    to_text,
    wrap_once,
    wrap_text,
)
from fdstore.store.processes import tool_calls
from fdstore.store.record_format import decode_record
from fdstore.text.media_types import BYTES_TYPE, type_of_bytes
from fdstore.text.names import name_id
from fdstore.text.surrogates import escape_surrogates
from fdstore.wire.operation import Operation

prepare(Offloaded)


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
    is_error = issubclass(type(value), BaseException)
    output = error_output(value) if is_error else value
    if is_error and isinstance(output, FDStoreError):
        rendered = fd_error(output)
        output = escape_surrogates(rendered.text)
        if not exceeds_threshold(context, output, source, is_element=True):
            # an element of ours, which is not escaped
            return Offloaded(output, is_error=is_error, facts=rendered.facts)
    blocks = content_blocks(output)
    parts = [_part(context, each, source) for each in (blocks or [output])]
    slot = call_id and f"{call_id}/offload"
    if blocks is not None:
        stored = yield from _wrap_blocks(context, blocks, parts, source, slot, fd)
        content, facts = _shown(blocks, parts, stored)
        return Offloaded(content, stored.descriptor, is_error, facts)
    stored = yield from _wrap_once(context, parts, source, slot, fd, lambda: [*map(_identity, parts)])
    return Offloaded(stored.content[0] or "", stored.descriptor, is_error, stored.facts)


def wrap(context: Context, output: Any, source: str, call_id: str | None) -> Operation[Offloaded]:
    """Return the output of a tool that the user's own loop ran as the Messages API takes it: its content is
    of content blocks a list of blocks, else a text. Raises as `offload`."""
    found = content_blocks(output)
    if found is None:
        return (yield from wrap_once(context, to_text(output), source, call_id))
    blocks = [for_messages_api(block) for block in found]
    parts = [_part(context, block, source) for block in blocks]
    stored = yield from _wrap_blocks(context, blocks, parts, source, call_id and f"{call_id}/wrap", "")
    content, facts = _shown(blocks, parts, stored, for_api=True)
    return Offloaded(content, stored.descriptor, facts=facts)


def offload_parts(
    context: Context,
    parts: Sequence[str | bytes | None],
    source: str,
    call_id: str | None = None,
    *,
    join_short: bool = True,
    is_input: bool = False,
) -> Operation[Offloaded]:
    """Return the parts of an output as the model is to see them, by the rules of `offload`: for a text the
    text to show instead, "" if it was stored with an earlier one; for the bytes of a picture the text to show
    before it; None for a part that stays as it is. `is_input`: of an input of the user, by its threshold.
    Raises as `offload`."""
    if is_input:
        context = as_of_input(context)
    found: list[_Part] = []
    for part in parts:
        if isinstance(part, str):
            found.append(escape_surrogates(part))
        elif isinstance(part, bytes) and context.fds_on:
            found.append(Picture(type_of_bytes(part) or BYTES_TYPE, part))
        else:
            found.append(None)
    texts = [part if isinstance(part, str) else None for part in found]
    joined = _joined(context, texts, source) if join_short else []
    slot = call_id and f"{call_id}/offload"

    def identity() -> object:
        return {"parts": [*map(_identity, found)]}

    return (yield from _wrap_once(context, found, source, slot, "", identity, joined))


def wrap_output(
    context: Context, output: str | bytes | list[Any], source: str, call_id: str | None
) -> Operation[Offloaded]:
    """Return the output of a user's function as the Messages API takes it: of content blocks a list of blocks
    of text, images and documents, where any other is shown as JSON, else a text."""
    if isinstance(output, str):
        return (yield from wrap_text(context, output, source, call_id, is_same=False))
    if isinstance(output, bytes):
        picture = Picture(type_of_bytes(output) or BYTES_TYPE, output)
        if picture.problem() is not None:
            part = _part(context, output, source)
            stored = yield from _wrap_each(context, [part], source, call_id, "", is_same=False)
            return Offloaded(stored.content[0] or "", stored.descriptor, facts=stored.facts)
        output = [picture.block()]
    blocks = [for_messages_api(block) for block in output]
    parts = [_part(context, block, source) for block in blocks]
    joined = _joined(context, _texts_of(blocks, parts), source)
    stored = yield from _wrap_each(context, parts, source, call_id, "", joined, is_same=False)
    content, facts = _shown(blocks, parts, stored, for_api=True)
    return Offloaded(content, stored.descriptor, facts=facts)


_Part = str | bytes | Picture | None
"""The value in an output or a block: a text, bytes, a picture or PDF, or (None) something else."""


def _part(context: Context, output: Any, source: str) -> _Part:
    if (picture := picture_in(output)) is not None:
        return picture if context.fds_on else None
    if issubclass(type(output), (bytes, bytearray)) and context.fds_on:
        try:
            return bytes(output).decode("utf-8")
        except UnicodeDecodeError:
            escaped = to_text(output)
            return escaped if not exceeds_threshold(context, escaped, source) else bytes(output)
    text = block_text(output)
    if text is None and is_block(output):
        text = embedded_text(output)
    elif text is None:
        text = to_text(output)
    return None if text is None else escape_surrogates(text)


def _texts_of(blocks: Sequence[Any], parts: Sequence[_Part]) -> list[str | None]:
    """Return the text of each text block, None for another block."""
    return [
        part if isinstance(part, str) and block_text(block) is not None else None
        for block, part in zip(blocks, parts, strict=True)
    ]


def _joined(context: Context, texts: Sequence[str | None], source: str) -> list[tuple[int, ...]]:
    """Return the positions of the texts that are stored with others as one."""
    groups = groups_to_store(texts, lambda text: exceeds_threshold(context, text, source))
    return [group for group in groups if len(group) > 1]


def _is_stored(context: Context, part: _Part, source: str) -> bool:
    return exceeds_threshold(context, part, source) if isinstance(part, str) else part is not None


def _identity(part: _Part) -> object:
    """Return what identifies a part in the request of a call."""
    if isinstance(part, Picture):
        return [part.media_type, sha256(part.data).hexdigest()]
    return sha256(part).hexdigest() if isinstance(part, bytes) else part


def _shown(
    blocks: Sequence[Any], parts: Sequence[_Part], stored: Offloaded, *, for_api: bool = False
) -> tuple[list[Any], ResultFacts]:
    """Return the blocks as the model is to see them: texts wrapped, pictures after what tells their id. Of
    pictures that the Messages API would refuse, only that is shown `for_api`. Blank texts are left out, since
    the APIs refuse them, and so are those that were stored with an earlier one."""
    shown: list[Any] = []
    places: dict[int, int] = {}
    for number, (block, part, text) in enumerate(zip(blocks, parts, stored.content, strict=True)):
        places[number] = len(shown)
        picture = part if isinstance(part, Picture) else picture_in(block) if for_api else None
        problem = picture.problem() if picture and for_api else None
        if isinstance(part, Picture):
            kind = "input_text" if field(block, "type") in ("input_image", "input_file") else "text"
            shown.append({"type": kind, "text": text})
        elif text is not None:
            if block_text(block) is None:
                unchanged = without_blank_pieces(block) if isinstance(block, dict) else block
                shown.append(unchanged if text == embedded_text(block) else text_block(text))
            elif not is_blank(text):
                shown.append(replace_text(block, text))
            continue
        shown.append(block if problem is None else text_block(f"It cannot be shown: {problem}."))
    return shown or [replace_text(blocks[0], NO_OUTPUT)], move_blocks(stored.facts, places)


def _wrap_blocks(
    context: Context,
    blocks: Sequence[Any],
    parts: Sequence[_Part],
    source: str,
    call_id: str | None,
    fd: str,
) -> Operation[Offloaded]:
    """Wrap the parts that the blocks of an output hold, under a `call_id` once."""

    def identity() -> object:
        pairs = zip(parts, blocks, strict=True)
        return {"blocks": [block if part is None else _identity(part) for part, block in pairs]}

    joined = _joined(context, _texts_of(blocks, parts), source)
    return (yield from _wrap_once(context, parts, source, call_id, fd, identity, joined))


def _wrap_once(
    context: Context,
    parts: Sequence[_Part],
    source: str,
    call_id: str | None,
    fd: str,
    identity: Callable[[], object],
    joined: Sequence[tuple[int, ...]] = (),
) -> Operation[Offloaded]:
    """Wrap the parts of a call. If one is stored under a `call_id`, return what its first run stored;
    `identity` returns what must be the same then."""
    if call_id is None or not (joined or any(_is_stored(context, part, source) for part in parts)):
        return (yield from _wrap_each(context, parts, source, None, fd, joined))
    request = tool_calls.request_of("offload", [source, fd, identity()])
    before = yield from tool_calls.identify(context.handle, call_id, request)
    if before is not None:
        what = f"the calls of process {context.handle.id}"
        known: Offloaded = decode_record(before, Offloaded, what)
        shown = known.content if isinstance(known.content, list) else []
        if len(shown) != len(parts) or not all(each is None or isinstance(each, str) for each in shown):
            raise DamagedRecord(what, "an output has other parts than the call")
        return known
    stored = yield from _wrap_each(context, parts, source, call_id, fd, joined)
    result = msgspec.json.encode(stored).decode("utf-8")
    yield from tool_calls.store_result(context.handle, call_id, result)
    return stored


def _wrap_each(
    context: Context,
    parts: Sequence[_Part],
    source: str,
    call_id: str | None,
    fd: str,
    joined: Sequence[tuple[int, ...]] = (),
    *,
    is_same: bool = True,
) -> Operation[Offloaded]:
    """Wrap each part. The content has the text shown for each, None for one without a text. Texts that are
    `joined` are one, in the place of the first; the others are ""."""
    of_groups, others = join_groups(parts, joined)
    shown: list[Any] = []
    facts: list[ResultFacts] = []
    descriptor = None
    for number, part in enumerate(parts):
        if part is None or number in others:
            shown.append(None if part is None else "")
            continue
        part = of_groups.get(number, part)
        part_id = None if call_id is None else f"{call_id}/{number}"
        name = "" if descriptor else fd
        if isinstance(part, str):
            wrapped = yield from wrap_text(context, part, source, part_id, name, is_same=is_same)
        else:
            slot = None if part_id is None else f"{part_id}/bytes"
            media_type, data = part if isinstance(part, Picture) else (None, part)
            wrapped = yield from store_bytes(context, data, source, slot, media_type=media_type, name=name)
        shown.append(wrapped.content)
        facts.append(in_block(wrapped.facts, number))
        descriptor = descriptor or wrapped.descriptor
    return Offloaded(shown, descriptor, facts=join_facts(NO_FACTS, *facts))
