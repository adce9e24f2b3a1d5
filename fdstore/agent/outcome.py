"""The outcome of a step of an agent: its end, a wait for other processes, or the next step."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from fdstore.agent.conversation import Assistant

FINAL = {"end_turn": 0, "stop_sequence": 0}
"""Exit codes of stop reasons that are a normal end; any other that ends the conversation is exit code 1."""


class Finished(msgspec.Struct, frozen=True):
    """End of the conversation: the final state of the process and the agent's last message."""

    state: Literal["exited", "failed"]
    exit_code: int | None
    reason: str
    answer: str


class Waiting(msgspec.Struct, frozen=True):
    """Nothing to do until these processes have ended or `left_s` seconds have passed."""

    children: tuple[str, ...]
    left_s: float | None = None


Outcome: TypeAlias = Finished | Waiting | None


def end_after(last: Assistant, text: str) -> Finished:
    """Return the end of a conversation with this last answer, which says `text`."""
    exit_code = FINAL.get(last.stop_reason or "", 1)
    return Finished("exited", exit_code, "" if exit_code == 0 else f"stop_reason {last.stop_reason}", text)
