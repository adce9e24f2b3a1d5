"""The event loop that connections belong to."""

from __future__ import annotations

from asyncio import AbstractEventLoop, get_running_loop

from fdstore.errors import WrongEventLoop


class OwnLoop:
    """The event loop in which a runner has connections, while it has some."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._loop: AbstractEventLoop | None = None

    def check(self) -> None:
        """Enter the running loop. Raises `WrongEventLoop` in another than that of the connections: there they
        would fail with errors of asyncio, or wait for ever."""
        loop = get_running_loop()
        if self._loop is None:
            self._loop = loop
        elif self._loop is not loop:
            raise WrongEventLoop(self._where)

    def leave(self) -> None:
        """Check, and forget: the connections are being closed."""
        self.check()
        self._loop = None

    def forget(self) -> None:
        """Forget the loop after a fork, in which there are no connections yet."""
        self._loop = None
