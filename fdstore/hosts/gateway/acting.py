"""Carry out decisions about messages. The functions block while the store works."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from fdstore.errors import FDStoreError
from fdstore.hosts.gateway.descriptors import Descriptors, error_blocks
from fdstore.hosts.gateway.json_scan import Buffer
from fdstore.hosts.gateway.messages import Message
from fdstore.hosts.gateway.rewriting import (
    AddTools,
    Batch,
    CallOurTool,
    Expand,
    Forward,
    Incoming,
    StoreTexts,
)

Definitions: TypeAlias = Callable[[], Sequence[Mapping[str, Any]]]


def answer_call(descriptors: Descriptors, call: CallOurTool) -> bytes:
    """Return the answer to a call of one of our tools."""
    content, is_error = descriptors.call(call.tool, call.arguments)
    return call.answer(content, is_error=is_error)


def expand(descriptors: Descriptors, message: Buffer, decision: Expand) -> tuple[Buffer | None, bytes | None]:
    """Return the request for the server with stored content in its arguments, or else the answer for the
    host: a wrong name is a mistake of the model, and the tool does not run."""
    try:
        texts = descriptors.expand(decision.texts)
    except FDStoreError as error:
        return None, decision.call.answer(error_blocks(error), is_error=True)
    return (message if texts is None else decision.with_texts(texts)), None


def rewrite(
    descriptors: Descriptors, message: Message, decision: Incoming, definitions: Definitions
) -> Buffer:
    """Return an answer of the server as the host is to see it. `definitions` returns our tools."""
    match decision:
        case Forward():
            return message.whole
        case AddTools():
            listed = decision.with_definitions(definitions())
            return message.whole if listed is None else listed
        case StoreTexts():
            shown = [descriptors.offload(text, decision.source) for text in decision.contents]
            if all(text is None for text in shown):
                return message.whole
            return decision.with_shown(shown)
        case Batch():
            pairs = zip(decision.messages, decision.decisions, strict=True)
            parts = [rewrite(descriptors, part, each, definitions) for part, each in pairs]
            return b"[" + b",".join(parts) + b"]"
