"""Carry out decisions about messages. The functions block while the store works."""

from __future__ import annotations

from fdstore.errors import FDStoreError
from fdstore.integrations.gateway.descriptors import Descriptors, error_element
from fdstore.integrations.gateway.rewriting import (
    AddTools,
    Batch,
    CallOurTool,
    Expand,
    Forward,
    Incoming,
    StoreTexts,
)


def answer_call(descriptors: Descriptors, call: CallOurTool) -> bytes:
    """Return the answer to a call of one of our tools."""
    content, is_error = descriptors.call(call.tool, call.arguments)
    return call.answer(content, is_error=is_error)


def expand(descriptors: Descriptors, message: bytes, decision: Expand) -> tuple[bytes | None, bytes | None]:
    """Return the request for the server with stored content in its arguments, or else the answer for the
    host: a wrong name is a mistake of the model, and the tool does not run."""
    try:
        texts = descriptors.expand(decision.texts)
    except FDStoreError as error:
        shown = {"type": "text", "text": error_element(error)}
        return None, decision.call.answer([shown], is_error=True)
    return (message if texts is None else decision.with_texts(texts)), None


def rewrite(descriptors: Descriptors, message: bytes, decision: Incoming) -> bytes:
    """Return an answer of the server as the host is to see it."""
    match decision:
        case Forward():
            return message
        case AddTools():
            listed = decision.with_definitions(descriptors.definitions())
            return message if listed is None else listed
        case StoreTexts():
            shown = [descriptors.offload(text, decision.source) for text in decision.texts]
            return message if all(text is None for text in shown) else decision.with_shown(shown)
        case Batch():
            pairs = zip(decision.messages, decision.decisions, strict=True)
            parts = [rewrite(descriptors, part, each) for part, each in pairs]
            return b"[" + b",".join(parts) + b"]"
