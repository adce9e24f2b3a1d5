"""Close the oldest descriptors of a full process, so that a conversation without end never stops storing."""

from __future__ import annotations

import math
import time
from contextlib import suppress

from fdstore.errors import NotFound
from fdstore.model.records import Descriptor
from fdstore.store.contents import descriptors
from fdstore.store.process_handle import ProcessHandle
from fdstore.wire.operation import Operation

KEEP_S = 86_400.0
"""The age from which descriptors are closed when their tree is full."""

FULL = ("tree_fds", "tree_bytes")
"""The limits of a tree that closing descriptors makes room below."""

RELEASED_AT_ONCE = 0.1
"""The part of the descriptors of a full process that is closed at once."""


def close_oldest(handle: ProcessHandle, keep_s: float, kind: str = "fd:") -> Operation[list[Descriptor]]:
    """Close the oldest descriptors of a full process, and return them: ended ones of a kind ("fd:",
    "name:") that are older than `keep_s` seconds."""
    found = yield from descriptors.list_fds(handle)
    before = time.time() - keep_s
    old = [
        each
        for each in found
        if each.fd.startswith(kind) and each.state != "open" and each.created_at <= before
    ]
    old.sort(key=lambda each: each.created_at)
    released = old[: math.ceil(len(found) * RELEASED_AT_ONCE)]
    for each in released:
        with suppress(NotFound):  # another one closed it
            yield from descriptors.close(handle, each.fd)
    return released
