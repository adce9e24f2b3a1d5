"""The hosts by name, and their events."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from fdstore.errors import InvalidArgument
from fdstore.hosts.hooks import claude, codex, gemini
from fdstore.hosts.hooks.output import Event, ToolOutput, decoded

HOSTS: Mapping[str, Callable[[Event, int], ToolOutput | None]] = {
    "claude": claude.output_of,
    "codex": codex.output_of,
    "gemini": gemini.output_of,
}
"""Host -> the function that finds an output of more than so many characters in its event."""


def read_event(data: bytes) -> Event:
    r"""Return the event of a hook, with halves of characters shown as `\udXXX`. Raises `InvalidArgument` for
    what is not a JSON object."""
    try:
        event = decoded(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidArgument("event", f"it is not JSON: {error}") from error
    if not isinstance(event, dict):
        raise InvalidArgument("event", "it is not a JSON object")
    return event
