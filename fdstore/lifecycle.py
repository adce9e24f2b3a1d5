"""The states of processes and streams, the moves between them, and the reasons why they end.

The Lua scripts of the store make the moves; a test runs every script in every state and compares.

    process   open -> ready -> running -> exited | failed | cancelled
              running -> waiting -> ready        (waits for its children; the worker is free meanwhile)
              running -> ready                   (its worker died, or gave it back)
    content   open -> sealed | broken            (a stream; other contents are sealed from the start)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

ContentState = Literal["sealed", "open", "broken"]
ProcessState = Literal["open", "ready", "running", "waiting", "exited", "failed", "cancelled"]

CONTENT_MOVES: Mapping[ContentState, frozenset[ContentState]] = {
    "open": frozenset({"sealed", "broken"}),
    "sealed": frozenset(),
    "broken": frozenset(),
}
"""Which state may follow which."""

PROCESS_MOVES: Mapping[ProcessState, frozenset[ProcessState]] = {
    "open": frozenset({"ready", "exited", "failed", "cancelled"}),
    "ready": frozenset({"running", "exited", "failed", "cancelled"}),
    "running": frozenset({"waiting", "ready", "exited", "failed", "cancelled"}),
    "waiting": frozenset({"ready", "exited", "failed", "cancelled"}),
    "exited": frozenset(),
    "failed": frozenset(),
    "cancelled": frozenset(),
}
"""Which state may follow which. A client may end any process that has not ended; an attempt of a worker ends
the one that it runs."""

ENDED: frozenset[ProcessState] = frozenset(state for state, moves in PROCESS_MOVES.items() if not moves)
"""The process states that are final."""


class ProcessEnd(NamedTuple):
    """How a process ended."""

    state: Literal["exited", "failed"]
    exit_code: int | None
    reason: str


# Reasons of agents. The first three are followed by the limit: "max_turns: 5 answers were given".
MAX_TURNS: Final = "max_turns"
WALL_SECONDS: Final = "wall_seconds"
TOKEN_BUDGET: Final = "token_budget"
POISON: Final = "poison"
"""Too many workers died while they ran it."""

# Reasons of pipelines, and of the streams that they write.
CLOSED: Final = "closed"
"""No process holds any of its outputs any more: the pipeline exits, and its outputs break."""
IDLE: Final = "idle"
WALL: Final = "wall"
BYTES: Final = "bytes"
SANDBOX: Final = "sandbox"
"""The sandbox of a stage could not be created (exit code 125)."""
UPSTREAM_BROKEN: Final = "upstream_broken"
"""The input stream broke."""
QUOTA_EXCEEDED: Final = "quota_exceeded"

# Reasons of processes and streams.
WORKER_LOST: Final = "worker_lost"
"""The worker of a pipeline died or left: commands are never run twice."""
WRITER_LOST: Final = "writer_lost"
"""The writer of a stream died, or ended without ending the stream."""
CANCELLED: Final = "cancelled"
KILLED: Final = "killed"
INTERRUPTED: Final = "interrupted"
SPAWN_LIMIT: Final = "spawn_limit"

STREAM_REASONS: frozenset[str] = frozenset(
    {WRITER_LOST, CANCELLED, CLOSED, IDLE, WALL, BYTES, SANDBOX, UPSTREAM_BROKEN, QUOTA_EXCEEDED, POISON}
)
"""Why fdstore breaks a stream; besides these, the reasons that programs give, and "signal n"."""
