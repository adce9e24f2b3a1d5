"""`Following`: the pieces of a content, as `Process.follow` and `follow_bytes` return them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

from fdstore.client._async.support import Lock
from fdstore.store.streams.following import Follower

Text = TypeVar("Text", str, bytes)


class Following(Generic[Text]):
    r"""An iterator over a content as it is written. A step that fails, or is cancelled, loses nothing: the
    next one continues at the same position.

    >>> async with await proc.open_stream() as out:
    ...     await out.write("compiling\n")
    >>> [piece async for piece in proc.follow(out.fd)]
    ['compiling\n']
    """

    def __init__(self, run: Callable[..., Awaitable[Any]], follower: Follower[Text]) -> None:
        self._run = run
        self._follower: Follower[Text] = follower
        self._lock = Lock()
        """Held in a step: each piece goes to one of those who ask at the same time."""

    def __aiter__(self) -> Following[Text]:
        return self

    async def __anext__(self) -> Text:
        async with self._lock:
            while not self._follower.ended:
                text: Text = await self._run(self._follower.more())
                if text:
                    return text
        raise StopAsyncIteration
