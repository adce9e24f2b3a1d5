"""Count the long texts that a conversation shows whole, by what its journal says."""

from __future__ import annotations

from collections.abc import Iterator

from fdstore.agent.conversation import Conversation
from fdstore.tools.config import FDConfig
from fdstore.tools.context import Context
from fdstore.tools.tool_names import FD_TOOLS, PROCESS_TOOLS
from fdstore.tools.wrapping import block_text

_STORED = "<fd_result "
"""How every stored text begins; no other text does, as it would be escaped."""


def recount_whole(context: Context, conversation: Conversation) -> None:
    """Count the texts shown whole from the conversation alone, so that each attempt decides the same: a
    result may be that of a call that an earlier attempt ran."""
    if context.whole is not None:
        context.whole.used = whole_chars(conversation, context.config)


def whole_chars(conversation: Conversation, config: FDConfig) -> int:
    """Return the characters of the results and inputs that are longer than the thresholds and not stored.
    Results that were cleared since count too: clearing must not change what is shown of the next one."""
    results = (
        result.content
        for result in conversation.results()
        if result.tool not in FD_TOOLS | PROCESS_TOOLS and isinstance(result.content, str)
    )
    return _count(results, config.max_direct_output_chars) + _count(
        _inputs(conversation), config.max_input_chars
    )


def _inputs(conversation: Conversation) -> Iterator[str]:
    start = conversation.start
    if start is None:
        return
    for block in [start.content] if isinstance(start.content, str) else start.content:
        text = block_text(block)
        if text is not None:
            yield text


def _count(texts: Iterator[str], limit: int) -> int:
    return sum(len(text) for text in texts if len(text) > limit and not text.startswith(_STORED))
