"""Run requests to models on an event loop, so that the thread that waits for an answer may give it up.

A thread that reads from a connection cannot be interrupted: it waits for as long as the model is silent. So
requests are coroutines on the event loop of one background thread, and the caller waits for a queue instead.
When it stops waiting, for whatever reason, its coroutine is cancelled, which closes the connection.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from fdstore.agents.loop.models.base import ModelFailed

T = TypeVar("T")
Request = Callable[[Callable[[str], None]], Coroutine[Any, Any, T]]
"""Starts a request, which passes on the text of its answer as it arrives."""

CHECK_EVERY_S = 0.25
"""The interval at which a waiting caller checks whether to give up."""
CLOSED = "the client of the model was closed"


class _RequestThread:
    """The thread and its event loop: one for all clients of this operating-system process."""

    def __init__(self) -> None:
        self._reset()
        os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def loop(self) -> asyncio.AbstractEventLoop:
        """Return the event loop, started on first use."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                # daemon: a request that hangs does not keep the interpreter
                threading.Thread(target=self._loop.run_forever, name="model requests", daemon=True).start()
            return self._loop


_thread = _RequestThread()


class Requests:
    """The requests of one client."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._closed = False
        self._pending: set[Future[Any]] = set()

    def run(
        self, request: Request[T], *, on_text: Callable[[str], None] | None, check: Callable[[], None]
    ) -> T:
        """Run a request, and return its result. Calls `on_text`, on this thread, with each text that the
        request passes on, and `check` at least every `CHECK_EVERY_S`; an exception of either ends the request
        and is raised. Raises `ModelFailed` when the client is closed, before or meanwhile."""
        arrived: SimpleQueue[str | None] = SimpleQueue()
        with self._lock:  # a request that has begun is one that `close` ends
            if self._closed:
                raise ModelFailed(CLOSED)
            pending = asyncio.run_coroutine_threadsafe(request(arrived.put), _thread.loop())
            self._pending.add(pending)
        pending.add_done_callback(lambda _: arrived.put(None))
        try:
            while True:
                check()
                try:
                    text = arrived.get(timeout=CHECK_EVERY_S)
                except Empty:
                    continue
                if text is None:
                    return pending.result()
                if on_text is not None:
                    on_text(text)
        except CancelledError as error:
            raise ModelFailed(CLOSED) from error
        finally:
            pending.cancel()
            with self._lock:
                self._pending.discard(pending)

    def close(self, client_close: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """End all requests and refuse new ones, then run `client_close` on their event loop."""
        with self._lock:
            self._closed = True
            pending = list(self._pending)
        for request in pending:
            request.cancel()
        asyncio.run_coroutine_threadsafe(client_close(), _thread.loop()).result()
