"""Helpers for tests of streams: a follower in a thread, stored contents, and repeated requests."""

from __future__ import annotations

import threading
from typing import Any, TypeVar

from fdstore.client import Process, Store
from fdstore.errors import FDStoreError, StoreUnavailable
from fdstore.wire.operation import Batch, Operation, Receive, Send
from tests.stored_keys import whole_pages
from tests.waiting import PATIENCE_S, wait_until

T = TypeVar("T")


class Reader:
    """A follower in a thread: `text` is the text so far, `error` the error that ended it."""

    def __init__(self, proc: Process, fd: str, start: int = 1) -> None:
        self.pieces: list[str] = []
        self.error: FDStoreError | None = None
        self._thread = threading.Thread(target=self._follow, args=(proc, fd, start), daemon=True)
        self._thread.start()

    def _follow(self, proc: Process, fd: str, start: int) -> None:
        try:
            for piece in proc.follow(fd, start):
                self.pieces.append(piece)
        except FDStoreError as error:
            self.error = error

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def wait_for(self, text: str) -> None:
        wait_until(lambda: self.text == text, what="the text")

    def done(self) -> str:
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()
        return self.text


def stored(execute: Any, content: str) -> dict[str, Any]:
    """Return pages, index and totals of a content from Redis."""

    def pairs(key: str) -> dict[bytes, bytes]:
        flat = execute("HGETALL", key)
        return dict(zip(flat[::2], flat[1::2], strict=True))

    record = pairs(content)
    totals = {name: record[name] for name in (b"chars", b"bytes", b"lines", b"pages", b"page_size")}
    # a short index of a content stored whole is a field of its record
    index = {b"1": record[b"index"]} if b"index" in record else pairs(f"{content}:index")
    return {"pages": whole_pages(execute, content), "index": index, **totals}


def key_of(proc: Process, fd: str) -> str:
    return f"{proc.handle.keys.record}:{fd}"


class RepeatingStore:
    """A store that sends every request `times` times and uses the last reply.

    The first `failing` operations raise `StoreUnavailable` after their first request, as without a reply.
    """

    def __init__(self, store: Store, times: int = 1) -> None:
        self.store = store
        self.times = times
        self.failing = 0

    def run(self, operation: Operation[T]) -> T:
        reply: Any = None
        batch: Batch = []
        while True:
            try:
                request = operation.send(reply)
                if isinstance(request, Send):
                    batch = request.batch
                    request = operation.send(None)
            except StopIteration as done:
                result: T = done.value
                return result
            if isinstance(request, Receive):
                request = batch
            for _ in range(self.times):
                reply = self.store.run(self._one(request))
            if self.failing:
                self.failing -= 1
                operation.close()
                raise StoreUnavailable("here", "no reply came")

    def _one(self, request: Any) -> Operation[Any]:
        return (yield request)
