"""Store large texts as descriptors, and render descriptors for a model.

A text longer than `max_direct_output_chars` is stored and rendered as an `fd_result`, see `fd_results`. A
shorter one stays inline, as an `fd_inline` if it could be mistaken for one of our elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from fdstore.elements.build import Rendered
from fdstore.elements.facts import NO_FACTS, ResultFacts, in_block, join_facts
from fdstore.elements.render import fd_error, fd_inline, fd_result_of_bytes
from fdstore.errors import FDStoreError
from fdstore.errors.description import read_or
from fdstore.model.records import Descriptor, ProcessRecord
from fdstore.results.block_groups import groups_to_store, join_groups
from fdstore.results.context import Context
from fdstore.results.fd_results import display_of, render_stored
from fdstore.results.fd_results import render_fd as render_fd
from fdstore.results.json_text import json_text
from fdstore.results.tool_outcome import Offloaded
from fdstore.store.contents import contents
from fdstore.store.processes import savings, tool_calls
from fdstore.telemetry.counts import count
from fdstore.text.layout import reindent_json
from fdstore.text.ref_tags import references
from fdstore.text.surrogates import escape_surrogates
from fdstore.text.tokens import estimate_tokens
from fdstore.wire.operation import Operation

TEXT_BLOCKS = ("text", "input_text")
"""Types of blocks that hold a text: those of the Messages API and of MCP, and of OpenAI's Responses API."""


NO_OUTPUT = "(no output)"
"""What a model is told of a tool that returned no text."""

NO_TEXT = "(no text)"
"""What a model is told of an input without a text."""


def wrap_text(
    context: Context,
    text: str,
    source: str,
    call_id: str | None = None,
    name: str = "",
    *,
    is_same: bool = True,
    media_type: str | None = None,
) -> Operation[Offloaded]:
    """Return `text` as the model sees it, inline, or stored and rendered as an `fd_result`; with its
    descriptor: the next number, or the id of a name. `is_same`: every run of the call has this text."""
    text = escape_surrogates(text)
    if not exceeds_threshold(context, text, source):
        count("fdstore_result_chars_total", "false", by=len(text))
        return Offloaded(fd_inline(text))
    count("fdstore_result_chars_total", "true", by=len(text))
    stored = (context.config.json_pretty_print and reindent_json(text)) or text
    slot = None if call_id is None else f"{call_id}/wrapped"
    rendered, descriptor = yield from _store(
        context, stored, source, slot, name, is_same=is_same, media_type=media_type
    )
    count("fdstore_kept_out_chars_total", by=max(0, len(text) - len(rendered.text)))
    if context.meter is not None:
        tokens = estimate_tokens(text)
        yield from savings.count_kept(
            context.handle, context.meter, source, len(text), tokens, rendered.text, slot
        )
    return Offloaded(rendered.text, descriptor, facts=rendered.facts)


def wrap_once(context: Context, text: str, source: str, call_id: str | None) -> Operation[Offloaded]:
    """Wrap the output of a tool that the user's own loop ran under `call_id`. Raises `InvalidArgument` if
    another output was wrapped under that id."""
    if call_id is not None and exceeds_threshold(context, text, source):
        call_id = f"{call_id}/wrap"
        yield from tool_calls.identify(context.handle, call_id, tool_calls.request_of("wrap", [source, text]))
    return (yield from wrap_text(context, text, source, call_id))


def wrap_error(
    context: Context, error: FDStoreError, source: str, call_id: str | None = None
) -> Operation[Offloaded]:
    """Wrap the typed error of a function. A short one stays a plain `fd_error`, without `fd_inline`."""
    rendered = fd_error(error)
    text = escape_surrogates(rendered.text)
    if not exceeds_threshold(context, text, source, is_element=True):
        return Offloaded(text, facts=rendered.facts)
    return (yield from wrap_text(context, text, source, call_id, is_same=False))


def exceeds_threshold(context: Context, text: str, source: str, *, is_element: bool = False) -> bool:
    """Return whether a result of the tool `source` is stored. An element of ours, such as an error, is stored
    only if it is long."""
    if not context.fds_on:
        return False
    policy = context.policy_of(source)
    if policy.inline == "always":
        return False
    if policy.inline == "never" and not is_element:
        return True
    for limits in (policy, context.config):
        if limits.max_direct_output_tokens is not None:
            return context.count_tokens(text) > limits.max_direct_output_tokens
        if limits.max_direct_output_chars is not None:
            return len(text) > limits.max_direct_output_chars
    return len(text) > context.config.direct_chars


def _store(
    context: Context,
    text: str,
    source: str,
    call_id: str | None,
    name: str = "",
    *,
    is_same: bool = True,
    may_be_whole: bool = True,
    media_type: str | None = None,
) -> Operation[tuple[Rendered, Descriptor]]:
    page_size, display = context.config.default_page_size, display_of(context.policy_of(source))
    if not may_be_whole:
        display = display._replace(may_be_whole=False)
    descriptor, is_known = yield from contents.create_or_recall(
        context.handle, text, source, page_size, media_type=media_type, name=name, call_id=call_id
    )
    # an earlier run of a function may have stored another text
    if (is_known or is_same) and descriptor.chars == len(text):
        rendered = render_stored(context, descriptor, text, display)
    else:
        rendered = yield from render_fd(context, descriptor.fd, display)
    return rendered, descriptor


def store_answer(context: Context, answer: str, process: ProcessRecord) -> Operation[Rendered]:
    """Store the answer of a process that is too long to be shown, once, and render it as an `fd_result`."""
    return (yield from store_text(context, answer, process.program or process.id, f"{process.id}/answer"))


def store_text(context: Context, text: str, source: str, call_id: str | None) -> Operation[Rendered]:
    """Store a text that is too long to be shown, once, and render it as an `fd_result`."""
    rendered, _ = yield from _store(context, text, source, call_id, may_be_whole=False)
    return rendered


def store_bytes(
    context: Context,
    data: bytes,
    source: str,
    call_id: str | None = None,
    *,
    media_type: str | None = None,
    name: str = "",
) -> Operation[Offloaded]:
    """Store bytes, and render them as an `fd_result`."""
    descriptor = yield from contents.create(
        context.handle, data, source, media_type=media_type, name=name, call_id=call_id
    )
    rendered = fd_result_of_bytes(descriptor, context.stored_message(descriptor))
    return Offloaded(rendered.text, descriptor, facts=rendered.facts)


def wrap_input(
    context: Context, given: str | Sequence[Any], call_id: str | None = None
) -> Operation[Offloaded]:
    """Return user input as the model sees it: a long text as an `fd_result`, a short one inline; of blocks as
    `block_groups` decides. Blocks of blank texts are left out, since APIs refuse them."""
    if isinstance(given, str):
        content, facts = yield from _wrap_input_text(context, given, call_id)
        return Offloaded(content, facts=facts)
    texts = [block_text(block) for block in given]
    groups = groups_to_store(texts, lambda text: _is_long_input(context, text))
    of_groups, others = join_groups(texts, groups)
    blocks: list[Any] = []
    facts = NO_FACTS
    for number, (block, text) in enumerate(zip(given, texts, strict=True)):
        if text is None:
            blocks.append(block)
        elif number not in others:
            slot = None if call_id is None else f"{call_id}/{number}"
            content, said = yield from _wrap_input_text(context, of_groups.get(number, text), slot)
            if is_blank(content):
                continue
            facts = join_facts(facts, in_block(said, len(blocks)))
            blocks.append(replace_text(block, content))
    if given and not blocks:
        blocks = [replace_text(given[0], NO_TEXT)]
    return Offloaded(blocks, facts=facts)


def replace_text(block: Any, text: str) -> Any:
    """Return a text block with another text. Its other fields, such as `cache_control`, stay."""
    if block_text(block) == text:
        return block
    fields = block if isinstance(block, dict) else {"type": getattr(block, "type", "text")}
    return {**fields, "text": text}


def is_blank(text: str) -> bool:
    """Return whether a text says nothing: the APIs of models refuse it as a block."""
    return not text.strip()


def as_of_input(context: Context) -> Context:
    """Return a context in which results are judged as inputs of the user are."""
    config = context.config
    return msgspec.structs.replace(
        context,
        config=msgspec.structs.replace(
            config,
            max_direct_output_chars=config.max_input_chars,
            max_direct_output_tokens=None,
            json_pretty_print=False,
        ),
        fds_on=context.fds_on and config.page_user_input,
        policies={},
    )


def _is_long_input(context: Context, text: str) -> bool:
    config = context.config
    return context.fds_on and config.page_user_input and len(text) > config.max_input_chars


def _wrap_input_text(context: Context, text: str, call_id: str | None) -> Operation[tuple[str, ResultFacts]]:
    text = escape_surrogates(text)
    if _is_long_input(context, text):
        rendered, _ = yield from _store(context, text, "user_input", call_id)
        return rendered.text, rendered.facts
    return fd_inline(text), NO_FACTS


def block_text(block: Any) -> str | None:
    """Return the text of a text block (a dict or an SDK object); None for any other block, also one that
    raises when it is read."""
    return read_or(lambda: _text_of(block), None)


def _text_of(block: Any) -> str | None:
    if isinstance(block, str):
        return block
    if isinstance(block, dict):
        kind, text = block.get("type"), block.get("text")
    else:
        kind, text = getattr(block, "type", None), getattr(block, "text", None)
    return text if kind in TEXT_BLOCKS and isinstance(text, str) else None


def to_text(result: Any) -> str:
    """Convert a tool's return value to text: a string, bytes, or any value that `json_text` writes. Raises
    `InvalidArgument` for other values."""
    kind = type(result)  # `isinstance` reads `__class__`, which may raise
    if issubclass(kind, str):
        return str.__str__(result)  # a subclass may have other rules
    if result is None:
        return ""
    if issubclass(kind, (bytes, bytearray)):
        return bytes(result).decode("utf-8", "backslashreplace")
    return json_text(result)


def store_references(
    context: Context, answer: str | Sequence[Any], call_id: str | None = None
) -> Operation[list[str]]:
    """Store each `<ref id="NAME">` passage of an answer as `ref:NAME`. Return the ids."""
    if isinstance(answer, str):
        text = answer
    else:
        # the text may be split into blocks at any character
        text = "".join(found for block in answer if (found := block_text(block)) is not None)
    ids = []
    for name, passage in reference_passages(context, text).items():
        ids.append((yield from store_passage(context, name, passage, call_id)))
    return ids


def reference_passages(context: Context, text: str) -> dict[str, str]:
    """Return the reference passages of an answer by name; empty if references are disabled."""
    if not (context.fds_on and context.config.enable_references):
        return {}
    return dict(references(text))  # the last of a name counts


def store_passage(context: Context, name: str, passage: str, call_id: str | None = None) -> Operation[str]:
    """Store a passage as `ref:NAME` and return its id. Raises `QuotaExceeded`."""
    descriptor = yield from contents.create(
        context.handle,
        escape_surrogates(passage),
        "reference",
        context.config.default_page_size,
        name=f"ref:{name}",
        call_id=None if call_id is None else f"{call_id}/ref:{name}",
    )
    return descriptor.fd
