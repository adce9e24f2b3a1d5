"""Child processes of tests: none outlives its test, and none blocks a test for ever.

`Child` is `subprocess.Popen` with a deadline. A child of a test is killed by its id at its deadline; pending
waits and reads then return, and the test fails. A child of a fixture has no deadline (`deadline_s=None`);
the fixture ends it with `end`.

Children inherit the environment without PYTHONUNBUFFERED, which would hide output that is never flushed.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Any, AnyStr

from tests.waiting import CHILD_DEADLINE_S, PATIENCE_S

alive: set[Child[Any]] = set()
"""The children with a deadline that were not waited for yet."""


class Child(subprocess.Popen[AnyStr]):
    """A process that is killed `deadline_s` after its start, and when an error leaves its `with` block."""

    def __init__(
        self,
        command: Any,
        *,
        deadline_s: float | None = CHILD_DEADLINE_S,
        env: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        kept = {name: value for name, value in (env or os.environ).items() if name != "PYTHONUNBUFFERED"}
        self.was_overdue = False
        super().__init__(command, env=kept, **options)
        self._timer = threading.Timer(deadline_s or 0, self._end_overdue)
        if deadline_s is not None:
            alive.add(self)
            self._timer.daemon = True
            self._timer.start()

    def _end_overdue(self) -> None:
        self.was_overdue = True
        self.kill()

    def wait(self, timeout: float | None = None) -> int:
        code = super().wait(timeout)
        self._timer.cancel()
        if not self.was_overdue:
            alive.discard(self)
        return code

    def signal_beside_main(self, number: int) -> None:
        """Send a signal that does not wake the main thread, as one that arrives just before it waits."""
        threads = {int(thread) for thread in os.listdir(f"/proc/{self.pid}/task")}
        assert ctypes.CDLL(None).tgkill(self.pid, max(threads - {self.pid}), number) == 0

    def end(self) -> int:
        """Ask the process to end and return its exit code. One that does not end is killed, and an error."""
        self.terminate()
        try:
            return self.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.kill()
            self.wait()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self.kill()
        super().__exit__(kind, error, trace)


def end_remaining_children() -> list[str]:
    """End the remaining children that have a deadline, and return the problem of each that did not end
    cleanly."""
    problems = []
    for child in list(alive):
        alive.discard(child)
        if child.was_overdue:
            problems.append(f"{child.args} did not end in time and was killed")
        elif child.poll() is None:
            problems.append(f"{child.args} was left running and was killed")
            child.kill()
        child.wait()
    return problems
