"""A tool result as it stands in a conversation: what clearing and coverage decide by."""

from __future__ import annotations

from typing import Any

import msgspec


class ShownResult(msgspec.Struct, frozen=True):
    """A tool result in a conversation. `turn` is the number of the answer that called the tool, from 1."""

    key: str
    turn: int
    tool: str
    arguments: Any
    content: Any
    is_error: bool = False
