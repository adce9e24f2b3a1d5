"""Carry out decisions about messages. The methods block while the store works."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    Rewriter,
    StoreTexts,
)
from fdstore.hosts.gateway.tool_list import ToolOffer

if TYPE_CHECKING:
    from fdstore.hosts.gateway.code.programs import Programs


class Treatment:
    """What a gateway does with messages, on any transport. `programs`: with --code, those of models."""

    def __init__(self, descriptors: Descriptors, programs: Programs | None = None) -> None:
        self._descriptors, self._programs = descriptors, programs
        self.offer = ToolOffer(descriptors.options)

    def rewriter(self, offer: ToolOffer) -> Rewriter:
        """Return what decides about the messages of one connection."""
        return Rewriter(self._descriptors.limit, offer, tell=self._descriptors.tell)

    def look_at(self, message: Message) -> None:
        """Look at a message of the server that may be of interest for programs."""
        if self._programs is not None:
            self._programs.look_at(message)

    def answer(self, call: CallOurTool) -> bytes:
        """Return the answer to a call of one of our tools."""
        content, is_error = self._descriptors.call(call.tool, call.arguments)
        return call.answer(content, is_error=is_error)

    def expand(self, message: Buffer, decision: Expand) -> tuple[Buffer | None, bytes | None]:
        """Return the request for the server with stored content in its arguments, or else the answer for the
        host: a wrong name is a mistake of the model, and the tool does not run."""
        try:
            texts = self._descriptors.expand(decision.texts)
        except FDStoreError as error:
            return None, decision.call.answer(error_blocks(error), is_error=True)
        return (message if texts is None else decision.with_texts(texts)), None

    def rewrite(self, message: Message, decision: Incoming) -> Buffer:
        """Return an answer of the server as the host is to see it."""
        match decision:
            case Forward():
                return message.whole
            case AddTools():
                of_programs = [] if self._programs is None else self._programs.definitions()
                listed = decision.with_definitions(self._descriptors.definitions() + of_programs)
                return message.whole if listed is None else listed
            case StoreTexts():
                shown = [self._descriptors.offload(text, decision.source) for text in decision.contents]
                if all(text is None for text in shown):
                    return message.whole
                return decision.with_shown(shown)
            case Batch():
                pairs = zip(decision.messages, decision.decisions, strict=True)
                return b"[" + b",".join(self.rewrite(part, each) for part, each in pairs) + b"]"
