"""The reasons why processes and streams end, as their records and the command line show them."""

from __future__ import annotations

from typing import Final

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
REFUSED: Final = "permission_error"
"""Followed by what its worker may not run."""

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
"""The reasons for which fdstore breaks a stream; others are those that programs give, and "signal n"."""


def of_refusal(message: str) -> str:
    """Return the reason of a pipeline that its worker may not run.

    >>> is_refusal(of_refusal("the command 'sort' is not allowed"))
    True
    """
    return f"{REFUSED}: {message}"


def is_refusal(reason: str) -> bool:
    """Return whether a pipeline ended because its worker may not run it."""
    return reason.startswith(f"{REFUSED}: ")


def of_tree_limit(name: str, limit: int, used: int) -> str:
    """Return the reason of an agent whose tree has reached a limit of model calls or tokens."""
    match name:
        case "tree_token_budget":
            return f"{name}: this tree has used {used} tokens of {limit}"
        case "tree_model_calls":
            return f"{name}: this tree has used {used} answers of models of {limit}"
        case _:
            return f"{name}: this tree has used the {limit} of today (UTC); `fdstore limits` shows ceilings"
