"""A dict of the entries used last, for what a client remembers of a store. Threads may share it.

Forgetting the oldest entry takes two steps, finding and removing it, and two threads that take them at once
remove it twice. So whatever changes the dict holds its lock; `get` needs none.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(OrderedDict[K, V]):
    """A dict that holds at most `limit` entries and drops those not set for longest.

    >>> recent = Recent(2)
    >>> for key in ("a", "b", "a", "c"):
    ...     _ = recent.put(key, key.upper())
    >>> list(recent.items())
    [('a', 'A'), ('c', 'C')]
    """

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit
        # a signal handler may use the store that it interrupts
        self._lock = threading.RLock()

    def put(self, key: K, value: V) -> V:
        """Set an entry, now the newest; its value."""
        with self._lock:
            self[key] = value
            self._trim(key)
        return value

    def first(self, key: K, value: V) -> V:
        """Set an entry if there is none; the value that it has now. It is the newest then."""
        with self._lock:
            found = self.setdefault(key, value)
            self._trim(key)
        return found

    def forget(self, key: K) -> None:
        """Drop an entry, if there is one."""
        with self._lock:
            self.pop(key, None)

    def snapshot(self) -> list[tuple[K, V]]:
        """All entries, the oldest first."""
        with self._lock:
            return list(self.items())

    def _trim(self, newest: K) -> None:
        self.move_to_end(newest)
        while len(self) > self._limit:
            self.popitem(last=False)
