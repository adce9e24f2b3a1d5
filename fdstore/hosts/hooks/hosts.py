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


class _WithResponse(msgspec.Struct):
    """An event, and the fields of its output as they are written."""

    tool_response: dict[str, msgspec.Raw]


def read_event(data: bytes) -> Event:
    r"""Return the event of a hook, with halves of characters shown as `\udXXX`, and a structured result as it
    is written, with all digits of its numbers. Raises `InvalidArgument` for what is not a JSON object."""
    try:
        event = decoded(data)
        response = event.get("tool_response") if isinstance(event, dict) else None
        if isinstance(response, dict):
            structured = [name for name in codex.STRUCTURED if response.get(name) is not None]
            written = decoded(data, _WithResponse).tool_response if structured else {}
            response.update({name: written[name] for name in structured})
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidArgument("event", f"it is not JSON: {error}") from error
    if not isinstance(event, dict):
        raise InvalidArgument("event", "it is not a JSON object")
    return event
