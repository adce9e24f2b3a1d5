"""Build an agent's first prompt: the system prompt with the preloaded texts, and the user's message."""

from __future__ import annotations

from fdstore.agents.loop.conversation import Start
from fdstore.agents.loop.offering import hold_back
from fdstore.agents.loop.program_loader import Program
from fdstore.elements.facts import NO_FACTS, ResultFacts, join_facts
from fdstore.elements.render import fd_content, fd_inline
from fdstore.errors import NotText
from fdstore.model.records import Slice
from fdstore.results.context import Context
from fdstore.results.wrapping import render_fd, wrap_input
from fdstore.store.contents import reading
from fdstore.tools.process_task import SpawnTask
from fdstore.tools.toolbox import Toolbox
from fdstore.wire.operation import Operation

PRELOADED = "# Preloaded texts\n"
"""The heading of the preloaded texts in a system prompt."""

MAX_CHARS = 16
"""A text of more characters for each token of the threshold is not read to count its tokens."""


def first_messages(
    toolbox: Toolbox, program: Program, task: SpawnTask, *, takes_deferred: bool = False
) -> Operation[Start]:
    """Return the first record of the conversation; `takes_deferred` as of `offering`. Every attempt gets the
    same one: descriptors created here are keyed."""
    given = yield from wrap_input(toolbox.context, task.query, "input")
    prompt = [program.system, given.content]
    held_back = yield from hold_back(toolbox, program, prompt, takes_deferred=takes_deferred)
    parts = [program.system, "" if held_back else toolbox.instructions]
    preloads = NO_FACTS
    if task.preload:
        preloaded: list[str] = []
        for fd in task.preload:
            shown, facts = yield from _preloaded(toolbox, fd)
            preloaded.append(shown)
            preloads = join_facts(preloads, facts)
        parts.append(PRELOADED + "\n".join(preloaded))
    system = "\n\n".join(part for part in parts if part)
    return Start(
        system=system,
        content=given.content,
        held_back=held_back,
        input=given.facts,
        preloads=preloads,
        provider=program.provider,
        context_window=program.context_window,
    )


def _preloaded(toolbox: Toolbox, fd: str) -> Operation[tuple[str, ResultFacts]]:
    """Return a preloaded text as the model sees it: whole if it is small or the agent has no descriptors,
    else its first page and its end."""
    context = toolbox.context
    try:
        if not context.fds_on:
            return fd_inline((yield from reading.read_all(context.handle, fd)).text), NO_FACTS
        first = yield from reading.read_page(context.handle, fd, 1)
    except NotText:
        rendered = yield from render_fd(context, fd)
    else:
        whole = yield from _whole_if_small(context, fd, first.total_chars)
        rendered = (yield from render_fd(context, fd, first=first)) if whole is None else fd_content(whole)
    return rendered.text, rendered.facts


def _whole_if_small(context: Context, fd: str, chars: int) -> Operation[Slice | None]:
    tokens = context.config.max_direct_output_tokens
    if chars > (context.config.direct_chars if tokens is None else tokens * MAX_CHARS):
        return None
    whole = yield from reading.read_all(context.handle, fd)
    is_small = tokens is None or context.count_tokens(whole.text) <= tokens
    return whole if is_small else None
