# Generated from fdstore/client/_async/following.py by `make generate`: change that one.
"""`Following`: the pieces of a content, as `Process.follow` and `follow_bytes` return them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from fdstore.client._sync.support import Lock
from fdstore.store.streams.following import Follower

Text = TypeVar("Text", str, bytes)


class Following(Generic[Text]):
    r"""An iterator over a content as it is written. A step that fails, or is cancelled, loses nothing: the
    next one continues at the same position.

    >>> with proc.open_stream() as out:
    ...     out.write("compiling\n")
    >>> [piece for piece in proc.follow(out.fd)]
    ['compiling\n']
    """

    def __init__(self, run: Callable[..., Any], follower: Follower[Text]) -> None:
        self._run = run
        self._follower: Follower[Text] = follower
        self._lock = Lock()
        """Held in a step: each piece goes to one of those who ask at the same time."""

    def __iter__(self) -> Following[Text]:
        return self

    def __next__(self) -> Text:
        with self._lock:
            while not self._follower.ended:
                text: Text = self._run(self._follower.more())
                if text:
                    return text
        raise StopIteration
