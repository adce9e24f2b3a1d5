"""The programs that the model of one host runs: they begin with its calls, and end when it cancels them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Raw

from fdstore.hosts.gateway.json_parts import encode
from fdstore.hosts.gateway.own_requests import OwnRequests
from fdstore.hosts.gateway.rewriting import CallOurTool, RequestKey

if TYPE_CHECKING:
    from fdstore.hosts.gateway.code.programs import CodeCall, Programs

log = logging.getLogger("fdstore.gateway")

PROGRESS_EVERY_S = 0.25
"""The shortest time between two notifications of progress."""


class HostPrograms:
    """The programs of one connection. `calls` are the requests to its server; `say` sends the host a
    message."""

    def __init__(self, programs: Programs, calls: OwnRequests[None], say: Callable[[bytes], None]) -> None:
        self._programs, self._calls, self._say = programs, calls, say
        self._running: dict[RequestKey, CodeCall] = {}
        self._lock = threading.Lock()

    def begin(self, request: CallOurTool) -> Callable[[], bytes | None] | None:
        """Return the function that answers a call of our tools for code, which returns None if the call was
        cancelled. None for another tool."""
        from fdstore.hosts.gateway.code.programs import CodeCall

        if request.tool not in self._programs.tools:
            return None
        token = request.meta.get("progressToken")
        call = CodeCall(self._calls, request.meta, None if token is None else self._report(token))
        with self._lock:
            self._running[request.key] = call
        self._programs.enter(request.tool, call)

        def run() -> bytes | None:
            try:
                content, is_error = self._programs.answer(request.tool, request.arguments, call)
            except Exception as error:  # even a defect here must not cost the host its answer
                log.exception("a program has failed")
                text = f"the gateway has failed: {type(error).__name__}"
                content, is_error = [{"type": "text", "text": text}], True
            finally:
                with self._lock:
                    self._running.pop(request.key, None)
            return None if call.is_cancelled.is_set() else request.answer(content, is_error=is_error)

        return run

    def cancel(self, key: RequestKey) -> None:
        """End the program that a request has begun."""
        with self._lock:
            call = self._running.get(key)
        if call is not None:
            call.cancel()

    def end(self) -> None:
        """End all programs."""
        with self._lock:
            running = list(self._running.values())
        for call in running:
            call.cancel()

    def _report(self, token: Raw) -> Callable[[str], None]:
        """Return the function that tells the host how far a program is; not more often than it can use."""
        told = 0
        next_at = 0.0
        lock = threading.Lock()

        def report(said: str) -> None:
            nonlocal told, next_at
            with lock:
                if (now := time.monotonic()) < next_at:
                    return
                told, next_at = told + 1, now + PROGRESS_EVERY_S
                params = {"progressToken": token, "progress": told, "message": said}
                note = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
                self._say(bytes(encode(note)))

        return report
