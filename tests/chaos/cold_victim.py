"""A client that dies at a chosen step on cold contents: `python -m tests.chaos.cold_victim URL`, with one
order per line on standard input.

    out 3 before      die before the 3rd step
    out 3 torn        die when half of a request to Redis was sent; before a call of the object store
    out 3 after       die when the 3rd step was done, before its caller knows

A step is a request to Redis or a call of the object store, in their order. For each order a fork of this
process does the work on the store; it prints `died KIND`, or `lived` if the work has fewer steps.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import obstore

from fdstore.client import Store
from tests.chaos.fatal import FatalRunner, Send
from tests.chaos.proxy import count_complete
from tests.chaos.victim import MOMENTS
from tests.cold_contents import WORK

CALLS = ("put", "get", "get_range", "get_ranges", "head", "list", "delete", "copy", "rename", "open_writer")
"""The calls of the package that reach the object store."""


class Steps:
    """Counts steps, and ends this process at one of them."""

    def __init__(self, number: int, moment: str) -> None:
        self._left, self.moment = number, moment

    def reach(self) -> bool:
        """Count a step; return whether it is the last one."""
        self._left -= 1
        return self._left == 0

    def die(self, kind: str) -> None:
        os.write(1, f"died {kind}\n".encode())
        os.kill(os.getpid(), signal.SIGKILL)


class ColdDyingRunner(FatalRunner):
    """A runner whose requests are steps."""

    def __init__(self, url: str, steps: Steps) -> None:
        super().__init__(url, 0)
        self._steps = steps

    def _send_or_inject(self, link: Any, send: Any, request: bytes, *more: Any) -> None:
        if self._steps.reach():
            self.inject_fault(link, partial(_send_part, send, more), request)
        send(request, *more)

    def inject_fault(self, link: Any, send: Send, request: bytes) -> None:
        send(request[: MOMENTS[self._steps.moment](request)])
        if self._steps.moment == "after":
            link.receive([], count_complete(request)[0])
        self._steps.die("redis")


def _send_part(send: Any, more: tuple[Any, ...], part: bytes) -> None:
    if part:
        send(part, *more)


class _Stepping:
    """A writer of an object, whose writes and whose end are steps."""

    def __init__(self, writer: Any, steps: Steps) -> None:
        self._writer, self._steps = writer, steps

    def __enter__(self) -> _Stepping:
        self._writer.__enter__()
        return self

    def __exit__(self, *error: Any) -> Any:
        return _stepping(self._writer.__exit__, "close", self._steps)(*error)

    def write(self, data: bytes) -> Any:
        return _stepping(self._writer.write, "write", self._steps)(data)

    def close(self) -> Any:
        return _stepping(self._writer.close, "close", self._steps)()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._writer, name)


def _stepping(call: Callable[..., Any], name: str, steps: Steps) -> Callable[..., Any]:
    def step(*arguments: Any, **options: Any) -> Any:
        if not steps.reach():
            return call(*arguments, **options)
        if steps.moment == "after":
            found = call(*arguments, **options)
            if name == "list":
                list(found)
        steps.die(name)
        return None

    return step


def arm(steps: Steps) -> None:
    """Have each call of the object store be a step."""
    module: Any = obstore
    for name in CALLS:
        setattr(module, name, _stepping(getattr(module, name), name, steps))
    opened = module.open_writer
    module.open_writer = lambda *arguments, **options: _Stepping(opened(*arguments, **options), steps)


def main(url: str) -> None:
    for order in sys.stdin:
        work, number, moment = order.split()
        copy = os.fork()
        if copy == 0:
            steps = Steps(int(number), moment)
            arm(steps)
            with Store(ColdDyingRunner(url, steps), "fdstore", url) as dying:
                WORK[work](dying)
            os._exit(0)
        _, status = os.waitpid(copy, 0)
        died = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        if not died:
            print("lived" if status == 0 else f"failed with {status}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
