"""The error of the estimate of tokens for one conversation, by the usage of its last answer.

The journal has what was sent and what the provider counted, so that every attempt at an agent computes the
same factor, and decides the same. Computed once for an answer, where it is needed.
"""

from __future__ import annotations

from typing import Any

import msgspec

from fdstore.agents.loop.conversation import Assistant, Conversation
from fdstore.agents.loop.offering import read_tools
from fdstore.text.tokens import calibration
from fdstore.tools.clearing import estimated_tokens


class Calibration:
    """The factor of estimates for a conversation whose requests also have these definitions of tools."""

    def __init__(self, conversation: Conversation, definitions: list[dict[str, Any]]) -> None:
        self._conversation = conversation
        self._definitions = definitions
        self._index = -1
        self._factor = 1.0

    def __call__(self) -> float:
        """Return the factor as of the last answer; 1 before the first."""
        entries = self._conversation.entries
        index = next((i for i in range(len(entries) - 1, -1, -1) if isinstance(entries[i], Assistant)), -1)
        if index != self._index:
            self._index, self._factor = index, self._computed(index)
        return self._factor

    def _computed(self, index: int) -> float:
        sent, answer = Conversation(self._conversation.entries[:index]), self._conversation.entries[index]
        assert isinstance(answer, Assistant)
        contents = [message["content"] for message in sent.messages()]
        tools = msgspec.json.encode(read_tools(self._definitions, sent)).decode("utf-8")
        estimated = estimated_tokens([sent.system, tools, *contents])
        return calibration(answer.input_tokens, estimated)
