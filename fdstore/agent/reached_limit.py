"""The limit of its program or its tree that ends an agent before its next request to the model."""

from __future__ import annotations

from fdstore import end_reasons
from fdstore.agent.conversation import Conversation
from fdstore.agent.program_limits import Limits


def reached_limit(
    limits: Limits,
    conversation: Conversation,
    until_s: float,
    now_s: float,
    of_tree: tuple[str, int, int] | None,
) -> str | None:
    """Return the reason for the end of an agent, None if it may go on. `until_s` is the end of its time,
    `of_tree` the limit that its tree has reached."""
    if len(conversation.own_turns) >= limits.max_turns:
        return f"{end_reasons.MAX_TURNS}: {limits.max_turns} answers were given"
    if now_s >= until_s:
        return f"{end_reasons.WALL_SECONDS}: {limits.wall_seconds:g} s are over"
    if limits.token_budget is not None and conversation.tokens >= limits.token_budget:
        return f"{end_reasons.TOKEN_BUDGET}: {limits.token_budget} tokens are used"
    return end_reasons.of_tree_limit(*of_tree) if of_tree else None
