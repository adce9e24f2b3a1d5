"""Build an agent's first prompt: the system prompt with the preloaded texts, and the user's message."""

from __future__ import annotations

from typing import Any

from msgspec import UnsetType

from fdstore.agent.conversation import PRELOADED, Start
from fdstore.agent.offering import may_hold_back
from fdstore.agent.program_loader import Program
from fdstore.elements.render import fd_content, fd_inline
from fdstore.errors import NotText
from fdstore.results.wrapping import render_fd, wrap_input
from fdstore.store.contents import reading
from fdstore.tools.process_task import SpawnTask
from fdstore.tools.toolbox import Toolbox
from fdstore.wire.operation import Operation

MAX_CHARS = 16
"""A text of more characters for each token of the threshold is not read to count its tokens."""


def first_messages(toolbox: Toolbox, program: Program, birth: SpawnTask) -> Operation[Start]:
    """Return the first record of the conversation. Every attempt gets the same one: descriptors created
    here are keyed."""
    preloaded: list[str] = []
    content: str | list[Any] = yield from wrap_input(toolbox.context, birth.query, "input")
    held_back = yield from may_hold_back(toolbox, [program.system, content])
    parts = [program.system, "" if held_back else toolbox.instructions]
    if birth.preload:
        for fd in birth.preload:
            preloaded.append((yield from _preloaded(toolbox, fd)))
        parts.append(PRELOADED + "\n".join(preloaded))
    system = "\n\n".join(part for part in parts if part)
    return Start(system=system, content=content, held_back=held_back)


def _preloaded(toolbox: Toolbox, fd: str) -> Operation[str]:
    """Render a preloaded text: whole if it is small or the agent has no descriptors, else its first page
    and its end."""
    context = toolbox.context
    try:
        if not context.fds_on:
            return fd_inline((yield from reading.read_all(context.handle, fd)).text)
        first = yield from reading.read_page(context.handle, fd, 1)
    except NotText:
        return (yield from render_fd(context, fd))
    tokens = context.config.max_direct_output_tokens
    most = context.config.direct_chars if isinstance(tokens, UnsetType) else tokens * MAX_CHARS
    if first.total_chars > most:
        return (yield from render_fd(context, fd, first=first))
    whole = yield from reading.read_all(context.handle, fd)
    if isinstance(tokens, UnsetType) or context.count_tokens(whole.text) <= tokens:
        return fd_content(whole)
    return (yield from render_fd(context, fd, first=first))
