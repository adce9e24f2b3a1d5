"""Find the descendants of a stage through /proc: process groups miss `setsid()` and reparented children.

    below     by parent pid, while the first process of the stage lives; works into sandboxes too
    marked    by a variable in their initial environment, after the parent has gone

The kernel may reuse a pid between the look-up and the signal. So a process is pinned with a pidfd and checked
again before it is signalled.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from fdstore.model.records import Record

MARK = "FDSTORE_PIPELINE"

ROUNDS = 20
"""The number of searches for marked processes: one may spawn another during a search."""

DEATH_MS = 2000
"""The time to wait for a killed process, which may hang in the kernel."""


class Descendant(Record, frozen=True, kw_only=True):
    """A process below a stage. `namespaces` are its pids, from our PID namespace to its own."""

    pid: int
    parent: int
    namespaces: tuple[int, ...]

    @property
    def inside(self) -> bool:
        """Return whether it is in a sandbox. This includes its init, pid 1 there, whose end kills all the
        others."""
        return len(self.namespaces) > 1

    @property
    def init(self) -> bool:
        return self.inside and self.namespaces[-1] == 1

    def send(self, number: signal.Signals) -> None:
        """Send the signal if this is still the same process."""
        _signal_pinned(self.pid, number, lambda: _read(self.pid) == self)


class ProcessSnapshot:
    """All processes at one moment, by parent."""

    def __init__(self) -> None:
        self._children: dict[int, list[Descendant]] = {}
        for pid in _pids():
            if (process := _read(pid)) is not None:
                self._children.setdefault(process.parent, []).append(process)

    def below(self, pid: int) -> list[Descendant]:
        """Return all descendants of `pid`."""
        found = list(self._children.get(pid, ()))
        for process in found:  # the list grows during the loop
            found += self._children.get(process.pid, ())
        return found


def kill_marked(mark: str) -> None:
    """Kill every process of this user that started with `MARK=mark` in its environment."""
    for _ in range(ROUNDS):
        found = [pid for pid in _pids() if _is_marked(pid, mark)]
        for pid in found:
            _signal_pinned(pid, signal.SIGKILL, partial(_is_marked, pid, mark))
        if not found:
            return


def _signal_pinned(pid: int, number: signal.Signals, still: Callable[[], bool]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        pin = os.pidfd_open(pid)
        try:
            if still():
                signal.pidfd_send_signal(pin, number)
                if number == signal.SIGKILL:
                    _await_end(pin)
        finally:
            os.close(pin)


def _await_end(pin: int) -> None:
    """Wait for the end of a killed process. The init of a sandbox ends after all others in it."""
    poll = select.poll()
    poll.register(pin, select.POLLIN)
    poll.poll(DEATH_MS)


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _is_marked(pid: int, mark: str) -> bool:
    # unreadable for other users' processes, gone for ended ones
    with suppress(OSError), open(f"/proc/{pid}/environ", "rb") as environ:
        return f"{MARK}={mark}".encode() in environ.read().split(b"\0")
    return False


def _read(pid: int) -> Descendant | None:
    fields: dict[str, str] = {}
    with suppress(OSError), open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as status:
        fields = dict(line.split(":", 1) for line in status if line.startswith(("PPid:", "NSpid:")))
    if "PPid" not in fields:
        return None
    namespaces = tuple(int(number) for number in fields.get("NSpid", str(pid)).split())
    return Descendant(pid=pid, parent=int(fields["PPid"]), namespaces=namespaces)
