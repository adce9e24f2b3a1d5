"""The knowledge of a client about one process: its limits, and the contents of its descriptors met so far."""

from __future__ import annotations

import threading
import time

from fdstore.errors import StoreLostData
from fdstore.records import TreeLimits
from fdstore.store.content_info import ContentInfo
from fdstore.store.keys import ProcessKeys
from fdstore.store.recent import Recent
from fdstore.text.quantities import DAY_S

MAX_INFOS = 1000
"""Contents that a handle caches."""

MAX_MET = 10_000
"""Contents whose creation time a handle remembers."""

NOTES_PER_RETENTION = 100
"""A client records the use of a tree at most this many times per retention period."""

CEILINGS_EVERY_S = 60.0
"""The interval at which a client that writes reads the operator's ceilings (see `ceilings`)."""


class ProcessHandle:
    """One process as seen by one client. `attempt` is empty for a writer without a lease."""

    def __init__(self, keys: ProcessKeys, limits: TreeLimits, attempt: int | None = None) -> None:
        self.keys = keys
        self.limits = limits
        self.attempt = "" if attempt is None else str(attempt)
        self.highest = 0
        """The highest descriptor number that this client has seen."""
        self.highest_child = 0
        self._infos: Recent[str, ContentInfo] = Recent(MAX_INFOS)
        self._met: Recent[str, bytes] = Recent(MAX_MET)
        self._numbers_lock = threading.RLock()
        self._note_every_s = limits.retention_days * DAY_S / NOTES_PER_RETENTION
        self._noted_at = time.time()
        self.ceilings_due_at = 0.0
        """The time of the next read of the operator's ceilings, by `time.monotonic`."""

    def must_touch(self) -> bool:
        """Return whether it is time to record the use of the tree. The wall clock is used because it
        advances while the machine is suspended."""
        return bool(self._note_every_s) and not 0 <= time.time() - self._noted_at <= self._note_every_s

    def mark_touched(self) -> None:
        """Record that the use of the tree was stored just now."""
        self._noted_at = time.time()

    def may_be_collected(self) -> bool:
        """Return whether the tree may have been collected because it was unused for its retention."""
        retention_s = self._note_every_s * NOTES_PER_RETENTION
        return bool(retention_s) and not 0 <= time.time() - self._noted_at < retention_s

    def meet(self, fd: str, content: str, created: bytes) -> None:
        """Remember a content. Raises `StoreLostData` if this client knows its name with another creation
        time."""
        if self._met.first(content, created) != created:
            raise StoreLostData(fd, "its number now belongs to another text")
        self.see(fd)

    @property
    def has_met(self) -> bool:
        """Return whether this client has seen a content of the process."""
        return bool(self._met or self.highest)

    def see(self, *fds: str) -> None:
        """Remember the highest of these descriptor numbers: new descriptors must be above it."""
        highest = max((int(fd[3:]) for fd in fds if fd.startswith("fd:")), default=0)
        with self._numbers_lock:
            self.highest = max(self.highest, highest)

    @property
    def id(self) -> str:
        return self.keys.process

    def see_child(self, process: str) -> None:
        """Remember the number of a child: new children must be above it."""
        with self._numbers_lock:
            self.highest_child = max(self.highest_child, int(process.rpartition(".")[2]))

    def known(self, fd: str) -> ContentInfo | None:
        """Return a sealed content if it is cached, or None. A number always means the same content; a name
        may have been given to another one, so it is resolved again for every read."""
        return self._infos.get(fd) if fd.startswith("fd:") else None

    def last_seen(self, fd: str) -> ContentInfo | None:
        """Return the sealed content that a descriptor, or a name, meant when it was last
        resolved, or None."""
        return self._infos.get(fd)

    def remember(self, fd: str, info: ContentInfo) -> ContentInfo:
        """Cache a sealed content. Return `info`."""
        if info.descriptor.state != "open" and not info.is_torn:
            self._infos.put(fd, info)
        return info

    def forget(self, fd: str) -> None:
        self._infos.forget(fd)

    def answer_slot(self, op: str, call_id: str | None) -> tuple[str, str]:
        """Return where a script stores its reply, for retries: a key, and for a tool call the field."""
        return (self.keys.tree.answer(op), "") if call_id is None else (self.keys.calls, call_id)
