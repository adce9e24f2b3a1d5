"""Who else runs because of a stage, read from /proc: a process group holds only those who stay in it.

A process may start others, put them into sessions of their own, and leave them to init when it ends. Two
ways lead to them:

    below     by parent, as long as the stage's first process lives; also into a sandbox
    marked    by a word in the environment they began with, when no parent leads there any more

A pid may be given to somebody else between the reading and the signal. So a process is pinned by a
descriptor first, and looked at once more before it is signalled.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from fdstore.records import Record

MARK = "FDSTORE_PIPELINE"

ROUNDS = 20
"""How often the marked are looked for again, since one may start another while it is looked for."""

DEATH_MS = 2000
"""How long one that was killed is waited for: it may hang in the kernel."""


class Relative(Record, frozen=True, kw_only=True):
    """A process below a stage. `namespaces` are its pids, in ours first and in its own last."""

    pid: int
    parent: int
    namespaces: tuple[int, ...]

    @property
    def inside(self) -> bool:
        """Whether it is in a sandbox, as pid 1 too: the init there, which holds the sandbox up."""
        return len(self.namespaces) > 1

    @property
    def init(self) -> bool:
        return self.inside and self.namespaces[-1] == 1

    def send(self, number: signal.Signals) -> None:
        """Signals it, if it is still the same process."""
        _signal_pinned(self.pid, number, lambda: _read(self.pid) == self)


class ProcessSnapshot:
    """All processes as they were at one moment, by parent."""

    def __init__(self) -> None:
        self._children: dict[int, list[Relative]] = {}
        for pid in _pids():
            if (relative := _read(pid)) is not None:
                self._children.setdefault(relative.parent, []).append(relative)

    def below(self, pid: int) -> list[Relative]:
        """The children of `pid`, theirs, and so on."""
        found = list(self._children.get(pid, ()))
        for relative in found:  # grows as it is walked
            found += self._children.get(relative.pid, ())
        return found


def kill_marked(mark: str) -> None:
    """Kills every process of ours that began with `MARK=mark` in its environment."""
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
    """Death takes a moment; an init of a sandbox is dead when all in it are."""
    poll = select.poll()
    poll.register(pin, select.POLLIN)
    poll.poll(DEATH_MS)


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _is_marked(pid: int, mark: str) -> bool:
    # what belongs to others cannot be read; what has ended has no environment
    with suppress(OSError), open(f"/proc/{pid}/environ", "rb") as environ:
        return f"{MARK}={mark}".encode() in environ.read().split(b"\0")
    return False


def _read(pid: int) -> Relative | None:
    fields: dict[str, str] = {}
    with suppress(OSError), open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as status:
        fields = dict(line.split(":", 1) for line in status if line.startswith(("PPid:", "NSpid:")))
    if "PPid" not in fields:
        return None
    namespaces = tuple(int(number) for number in fields.get("NSpid", str(pid)).split())
    return Relative(pid=pid, parent=int(fields["PPid"]), namespaces=namespaces)
