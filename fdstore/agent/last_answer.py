"""Store the last answer of a process that is too long to be passed to its parent as it is."""

from __future__ import annotations

import logging

from fdstore.errors import QuotaExceeded
from fdstore.store.contents import contents
from fdstore.store.process_handle import ProcessHandle
from fdstore.wire.operation import Operation

log = logging.getLogger("fdstore.agent")


def store_long_answer(
    handle: ProcessHandle, answer: str, page_size: int, limit: int | None
) -> Operation[tuple[str, str]]:
    """Store an answer once, and return the id of its descriptor, and the answer. If the quota refuses it, the
    id is empty, and the answer is cut after `limit` characters."""
    source = f"answer of {handle.id}"
    try:
        created = yield from contents.create(handle, answer, source, page_size, call_id="answer")
    except QuotaExceeded as error:
        log.warning("%s: its answer of %s characters is cut: %s", handle.id, len(answer), error)
        note = f"[cut here, as all {len(answer)} characters could not be stored: {error}]"
        return "", f"{answer[:limit]}\n{note}"
    return created.fd, answer
