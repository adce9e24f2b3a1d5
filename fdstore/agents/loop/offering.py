"""The moment when an agent is offered the tools on descriptors: once there is something to read.

The definitions of tools and what explains them are sent with every request. An agent that only gets short
results pays for them and never uses them, so they are held back until the process holds a descriptor. How
depends on the model's server.

*Deferred*, where it takes tools that are loaded later: their definitions stand in each request, marked so
that the model does not see them, and a result of the first turn that shows a descriptor loads them. Nothing
that was sent changes, so a cached prefix stays cached. The API takes references to tools only in a result
that is no error and has nothing else, so the text of that result follows the results:

    tools: ours, deferred, and yours      tools: ours, deferred, and yours
    system  question                      system  question call  references  <fd_result>  note

*Left out*, elsewhere, where prompts are not cached: the list of tools changes.

    tools: yours                          tools: ours and yours
    system  question                      system  question call  <fd_result>  note

Where prompts are cached, that change loses the cached prefix, which costs more than the definitions. So there
they are offered at once, and so they are with a first prompt of `LONG_PROMPT_TOKENS`: they are a tenth of it
or less. The note explains them; the system prompt stays as it was.

Where no result can load them, deferred tools are offered as if they had been left out. A server that refuses
them is asked without for the rest of the conversation (`Undeferred`).

Nothing is held back from an agent that has a descriptor from the start, that can make one without its
functions, or that may hand on or save passages of its answers, and nothing with `hold_back_tools = false`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from fdstore.agents.loop.conversation import Conversation, HeldBack, Offered
from fdstore.agents.loop.program_loader import Program
from fdstore.store.contents import descriptors
from fdstore.text.tokens import estimate_tokens
from fdstore.tools.catalogue import HELD_BACK
from fdstore.tools.toolbox import Toolbox
from fdstore.wire.operation import Operation

LONG_PROMPT_TOKENS = 12_000


def hold_back(
    toolbox: Toolbox, program: Program, prompt: object, *, takes_deferred: bool
) -> Operation[HeldBack]:
    """Return how the tools on descriptors are held back at first, in one round trip at most.
    `takes_deferred`: the model's server is known to take deferred ones."""
    context = toolbox.context
    if not context.config.hold_back_tools or not toolbox.has_functions:
        return False
    if not context.fds_on or not context.enabled <= HELD_BACK:
        return False
    deferred = takes_deferred if program.deferred_tools is None else program.deferred_tools
    if not deferred and (program.prompt_cache or _is_long([prompt, toolbox.definitions])):
        return False
    if (yield from descriptors.holds_any(context.handle)):
        return False
    return "deferred" if deferred else True


def _is_long(sent: object) -> bool:
    return estimate_tokens(msgspec.json.encode(sent).decode()) >= LONG_PROMPT_TOKENS


def offer(toolbox: Toolbox, conversation: Conversation) -> Offered:
    """Return the record with which the tools that were held back are offered from now on. The last result of
    the last turn that shows a descriptor loads those that are deferred: mostly, no other result follows."""
    if conversation.held_back == "deferred" and conversation.turns:
        last = conversation.turns[-1]
        found = ((call.key, last.results.get(call.key)) for call in last.calls)
        shown = [key for key, result in found if result and result.facts.fds and not result.is_error]
        if shown:
            names = tuple(each["name"] for each in toolbox.definitions if each["name"] in HELD_BACK)
            return Offered(text=toolbox.instructions, loaded_by=shown[-1], tools=names)
    return Offered(text=toolbox.instructions)


def sent_tools(definitions: list[dict[str, Any]], conversation: Conversation) -> list[dict[str, Any]]:
    """Return the definitions of an agent's tools as they are sent with its next request."""
    if conversation.held_back == "deferred":
        return [
            {**each, "defer_loading": True} if each["name"] in HELD_BACK else each for each in definitions
        ]
    return read_tools(definitions, conversation)


def read_tools(definitions: list[dict[str, Any]], conversation: Conversation) -> list[dict[str, Any]]:
    """Return the definitions that the model reads with its next request: of deferred tools those that are
    loaded."""
    if conversation.is_offered:
        return definitions
    return [each for each in definitions if each["name"] not in HELD_BACK]
