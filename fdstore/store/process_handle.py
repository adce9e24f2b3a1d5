"""The knowledge of a client about one process: its limits, and the contents of its descriptors met so far."""

from __future__ import annotations

import math
import threading
import time

from fdstore.errors import StoreLostData
from fdstore.model.records import TreeLimits
from fdstore.store.content_info import ContentInfo
from fdstore.store.keys import ProcessKeys
from fdstore.store.recent import Recent
from fdstore.store.record_format import decode_count, decoding
from fdstore.text.index import GROUP_PAGES, Group
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
        self.id = keys.process
        self.limits = limits
        self.attempt = "" if attempt is None else str(attempt)
        self.highest = 0
        """The highest descriptor number that this client has seen."""
        self.highest_child = 0
        self._infos: Recent[str, ContentInfo] = Recent(MAX_INFOS)
        self._met: Recent[str, bytes] = Recent(MAX_MET)
        self._numbers_lock = threading.RLock()
        self._retention_s = limits.retention_days * DAY_S
        self.mark_touched()
        self.ceilings_due_at = 0.0
        """The time of the next read of the operator's ceilings, by `time.monotonic`."""

    def mark_touched(self) -> None:
        """Record that the use of the tree was stored just now. The wall clock is used because it advances
        while the machine is suspended."""
        self._noted_at = time.time()
        self._due_at = self._noted_at + (self._retention_s / NOTES_PER_RETENTION or math.inf)

    def must_touch(self) -> bool:
        """Return whether it is time to record the use of the tree, by a clock that may have been set back."""
        return not self._noted_at <= time.time() <= self._due_at

    def may_be_collected(self) -> bool:
        """Return whether the tree may have been collected because it was unused for its retention."""
        return bool(self._retention_s) and not 0 <= time.time() - self._noted_at < self._retention_s

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
        with decoding(f"the descriptors of process {self.id}"):
            highest = max((decode_count(fd[3:]) for fd in fds if fd.startswith("fd:")), default=0)
        with self._numbers_lock:
            self.highest = max(self.highest, highest)

    def see_child(self, process: str) -> None:
        """Remember the number of a child: new children must be above it."""
        with decoding(f"the children of process {self.id}"):
            number = decode_count(process.rpartition(".")[2])
        with self._numbers_lock:
            self.highest_child = max(self.highest_child, number)

    def known(self, fd: str) -> ContentInfo | None:
        """Return a sealed content if it is cached, or None. A number always means the same content; a name
        may have been given to another one, so it is resolved again for every read."""
        return self._infos.get(fd) if fd.startswith("fd:") else None

    def cached_page(self, fd: str, number: int) -> tuple[ContentInfo, Group] | None:
        """Return the content and index group of a page if both are cached: then a read needs the page alone,
        and this is all that it looks up. None also if the use of the tree must be recorded."""
        info = self._infos.get(fd) if fd.startswith("fd:") else None
        if info is None or not 1 <= number <= info.descriptor.pages:
            return None
        group = info.groups.get(number - (number - 1) % GROUP_PAGES)  # as `group_of`
        if group is None or not self._noted_at <= time.time() <= self._due_at:
            return None
        return info, group

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

    def forget_all(self) -> None:
        """Look up every content again: the process holds none any more."""
        for fd, _ in self._infos.snapshot():
            self._infos.forget(fd)

    def changing_once(self, op: str, call_id: str | None) -> dict[str, str]:
        """Return the arguments of every script that changes the table of the process: its keys, its attempt,
        and where a repeat finds the reply (see `answer_slot`)."""
        answers, field = self.answer_slot(op, call_id)
        return {
            "tree": self.keys.tree.record,
            "process": self.keys.record,
            "fd_table": self.keys.fds,
            "answers": answers,
            "op": field,
            "attempt": self.attempt,
        }

    def answer_slot(self, op: str, call_id: str | None) -> tuple[str, str]:
        """Return where a script stores its reply, for retries: a key, and for a tool call the field."""
        return (self.keys.tree.answer(op), "") if call_id is None else (self.keys.calls, call_id)
