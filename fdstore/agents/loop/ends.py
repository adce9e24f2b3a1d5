"""The end of an agent: the outcome of a step (its end, a wait for other processes, or the next step), the
limits that end it, and its last answer."""

from __future__ import annotations

import logging
from typing import TypeAlias

import msgspec

from fdstore.agents.loop.conversation import Assistant, Conversation
from fdstore.agents.loop.program_limits import Limits
from fdstore.errors import QuotaExceeded
from fdstore.model import ends
from fdstore.model.lifecycle import ProcessEnd
from fdstore.store.contents import contents
from fdstore.store.process_handle import ProcessHandle
from fdstore.wire.operation import Operation

log = logging.getLogger("fdstore.agent")

FINAL = {"end_turn": 0, "stop_sequence": 0}
"""Exit codes of stop reasons that are a normal end; any other that ends the conversation is exit code 1."""


class Awaited(msgspec.Struct, frozen=True):
    """Nothing to do until these processes have ended, a person has answered one of these `questions`, or
    `left_s` seconds have passed."""

    processes: tuple[str, ...]
    left_s: float | None = None
    questions: tuple[int, ...] = ()

    def __str__(self) -> str:
        return ", ".join([*self.processes, *(["a person"] if self.questions else [])])


Outcome: TypeAlias = ProcessEnd | Awaited | None


def end_after(last: Assistant, text: str) -> ProcessEnd:
    """Return the end of a conversation with this last answer, which says `text`."""
    exit_code = FINAL.get(last.stop_reason or "", 1)
    return ProcessEnd("exited", exit_code, "" if exit_code == 0 else f"stop_reason {last.stop_reason}", text)


def reached_limit(
    limits: Limits,
    conversation: Conversation,
    until_s: float,
    now_s: float,
    of_tree: tuple[str, int, int] | None,
) -> str | None:
    """Return the reason why an agent ends before its next request to the model, None if it may go on.
    `until_s` is the end of its time, `of_tree` the limit that its tree has reached."""
    if len(conversation.own_turns) >= limits.max_turns:
        return ends.MAX_TURNS.text(limits.max_turns)
    if now_s >= until_s:
        return ends.WALL_SECONDS.text(limits.wall_seconds)
    if limits.token_budget is not None and conversation.tokens >= limits.token_budget:
        return ends.TOKEN_BUDGET.text(limits.token_budget)
    return ends.text_of(*of_tree) if of_tree else None


def store_long_answer(
    handle: ProcessHandle, answer: str, page_size: int, limit: int | None
) -> Operation[tuple[str, str]]:
    """Store a last answer that is too long to be passed to the parent as it is, once. Return the id of its
    descriptor, and the answer. If the quota refuses it, the id is empty, and the answer is cut after `limit`
    characters."""
    source = f"answer of {handle.id}"
    try:
        created = yield from contents.create(handle, answer, source, page_size, call_id="answer")
    except QuotaExceeded as error:
        log.warning("%s: its answer of %s characters is cut: %s", handle.id, len(answer), error)
        note = f"[cut here, as all {len(answer)} characters could not be stored: {error}]"
        return "", f"{answer[:limit]}\n{note}"
    return created.fd, answer
