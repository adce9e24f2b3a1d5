"""The states of processes and streams, and the moves between them. `ends` has why.

The Lua scripts of the store make the moves; a test runs every script in every state and compares.

    process   open -> ready -> running -> exited | failed | cancelled
              running -> waiting -> ready        (waits for its children, or for a person; the worker is
                                                 free meanwhile)
              running -> ready                   (its worker died, or gave it back)
    content   open -> sealed | broken            (a stream; other contents are sealed from the start)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

ContentState = Literal["sealed", "open", "broken"]
EndState = Literal["exited", "failed", "cancelled"]
ProcessState = Literal["open", "ready", "running", "waiting", "exited", "failed", "cancelled"]

CONTENT_MOVES: Mapping[ContentState, frozenset[ContentState]] = {
    "open": frozenset({"sealed", "broken"}),
    "sealed": frozenset(),
    "broken": frozenset(),
}
"""The states that may follow each state."""

PROCESS_MOVES: Mapping[ProcessState, frozenset[ProcessState]] = {
    "open": frozenset({"ready", "exited", "failed", "cancelled"}),
    "ready": frozenset({"running", "exited", "failed", "cancelled"}),
    "running": frozenset({"waiting", "ready", "exited", "failed", "cancelled"}),
    "waiting": frozenset({"ready", "exited", "failed", "cancelled"}),
    "exited": frozenset(),
    "failed": frozenset(),
    "cancelled": frozenset(),
}
"""The states that may follow each state. A client may end any process that has not ended; an attempt of a
worker ends the one that it runs."""

ENDED: frozenset[ProcessState] = frozenset(state for state, moves in PROCESS_MOVES.items() if not moves)
"""The process states that are final."""

PERSON = "person"
"""What a process waits for that waits for a person, beside the ids of its descendants, which have dots."""

BUSY: frozenset[ProcessState] = frozenset(PROCESS_MOVES) - ENDED - {"open"}
"""The states of a process that workers run, or will run."""


def waited_for(names: Sequence[str]) -> list[str]:
    """Return what a process waits for, in words.

    >>> waited_for(("triage.1", "person"))
    ['triage.1', 'a person']
    """
    return ["a person" if name == PERSON else name for name in names]


class ProcessEnd(NamedTuple):
    """The end of a process; `answer` is the last message of an agent."""

    state: EndState
    exit_code: int | None
    reason: str
    answer: str = ""
