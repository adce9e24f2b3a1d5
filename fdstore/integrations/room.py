"""Descriptors that a full process lets go of, so that a conversation without end never stops storing."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from fdstore.records import Descriptor

KEEP_S = 86_400.0
"""The age from which descriptors are closed when their tree is full."""

FULL = ("tree_fds", "tree_bytes")
"""The limits of a tree that closing descriptors makes room below."""

RELEASED_AT_ONCE = 0.1
"""The part of the descriptors of a full process that is closed at once."""


def oldest(found: Sequence[Descriptor], keep_s: float, kind: str = "fd:") -> list[Descriptor]:
    """Return those of the descriptors of a full process that are closed next: ended ones of a kind ("fd:" or
    "name:") that are older than `keep_s` seconds, the oldest first."""
    before = time.time() - keep_s
    old = [
        each
        for each in found
        if each.fd.startswith(kind) and each.state != "open" and each.created_at <= before
    ]
    old.sort(key=lambda each: each.created_at)
    return old[: math.ceil(len(found) * RELEASED_AT_ONCE)]
