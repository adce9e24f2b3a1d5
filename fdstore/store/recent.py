"""A bounded, thread-safe cache that evicts the entry set longest ago.

Eviction takes two steps, finding and removing the oldest entry, and two threads doing so concurrently would
remove it twice. So every change of the dict holds its lock; `get` needs none.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(OrderedDict[K, V]):
    """A dict of at most `limit` entries that evicts those set longest ago.

    >>> recent = Recent(2)
    >>> for key in ("a", "b", "a", "c"):
    ...     _ = recent.put(key, key.upper())
    >>> list(recent.items())
    [('a', 'A'), ('c', 'C')]
    """

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit
        # reentrant: a signal handler may use the store that it interrupts
        self._lock = threading.RLock()

    def put(self, key: K, value: V) -> V:
        """Set an entry and make it the newest. Return its value."""
        with self._lock:
            self[key] = value
            self._trim(key)
        return value

    def first(self, key: K, value: V) -> V:
        """Set an entry unless there is one, and make it the newest. Return the value it has now."""
        with self._lock:
            found = self.setdefault(key, value)
            self._trim(key)
        return found

    def forget(self, key: K) -> None:
        """Remove an entry, if there is one."""
        with self._lock:
            self.pop(key, None)

    def snapshot(self) -> list[tuple[K, V]]:
        """Return all entries, the oldest first."""
        with self._lock:
            return list(self.items())

    def _trim(self, newest: K) -> None:
        self.move_to_end(newest)
        while len(self) > self._limit:
            self.popitem(last=False)
