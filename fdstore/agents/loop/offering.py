"""The moment when an agent is offered the tools on descriptors: once there is something to read.

The definitions of tools and what explains them are sent with every request. An agent that only gets short
results pays for them and never uses them, so they are held back until the process holds a descriptor. They
come with a note, after the results of that turn; the system prompt stays as it was.

    tools: yours              tools: yours              tools: those on descriptors, yours
    system  question          system  question call     system  question call <fd_result> + note

The change costs one miss of the prompt cache, once, which is little while the conversation is short, as it
is when the first long result comes. With a first prompt of `LONG_PROMPT_TOKENS` they are offered at once:
they are a tenth of it or less, and the miss would cost more.

Nothing is held back from an agent that has a descriptor from the start, that can make one without its
functions, or that may hand on or save passages of its answers, and nothing with `hold_back_tools = false`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from fdstore.agents.loop.conversation import Conversation, Offered
from fdstore.store.contents import descriptors
from fdstore.text.tokens import estimate_tokens
from fdstore.tools.catalogue import BUILT_IN
from fdstore.tools.toolbox import Toolbox
from fdstore.wire.operation import Operation

LONG_PROMPT_TOKENS = 12_000

HELD_BACK = frozenset(name for name, tool in BUILT_IN.items() if tool.held_back)
"""The tools that may be held back. Any other has a use without descriptors."""


def may_hold_back(toolbox: Toolbox, prompt: object) -> Operation[bool]:
    """Return whether the tools on descriptors may be offered later than the first prompt, in one round trip
    at most."""
    context = toolbox.context
    if not context.config.hold_back_tools or not toolbox.has_functions:
        return False
    if not context.fds_on or not context.enabled <= HELD_BACK:
        return False
    sent = msgspec.json.encode([prompt, toolbox.definitions]).decode()
    if estimate_tokens(sent) >= LONG_PROMPT_TOKENS:
        return False
    return not (yield from descriptors.holds_any(context.handle))


def explain_tools(toolbox: Toolbox, conversation: Conversation) -> Offered | None:
    """Return the note with which the tools that were held back are offered from now on, once there is a
    descriptor; None before the first answer."""
    return Offered(text=toolbox.instructions) if conversation.turns else None


def offered_tools(definitions: list[dict[str, Any]], conversation: Conversation) -> list[dict[str, Any]]:
    """Return those of an agent's tools that are offered with its next request."""
    if not conversation.is_held_back:
        return definitions
    return [each for each in definitions if each["name"] not in HELD_BACK]
