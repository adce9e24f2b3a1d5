"""A client with a fault at the n-th request: the client or its Redis is killed there."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from fdstore.wire._sync.runner import Runner

Send = Callable[[bytes], None]


class FatalRunner(Runner):
    """A runner that calls `inject_fault` at its n-th request, which may send a part of it."""

    def __init__(self, url: str, number: int) -> None:
        super().__init__(url)
        self._left = number

    def counts(self) -> bool:
        """Return whether this request is counted."""
        return True

    def inject_fault(self, link: Any, send: Send, request: bytes) -> None:
        """Handle the n-th request."""
        raise NotImplementedError

    def _take(self) -> Any:
        link = super()._take()
        if "send" not in vars(link):  # else it is armed already
            link.send = partial(self._send_or_inject, link, link.send)
        return link

    def _send_or_inject(self, link: Any, send: Any, request: bytes, *more: Any) -> None:
        if self.counts():
            self._left -= 1
            if self._left == 0:
                self.inject_fault(link, lambda part: send(part, *more), request)
                return
        send(request, *more)
