"""The small parent of a worker: starts the process that works, and deals with its death.

    supervisor ─┬─ the worker's process      takes messages, runs agents and pipelines
                ├─ one for each suspect      runs a process that may be what ended its worker, alone
                └─ after a death: a burial   gives the dead one's processes back, then ends

The supervisor has one thread, no connection and nobody's code in it: it waits for signals, deaths and
reports (reports.py), and forks. All imports are done before, so a new worker is there in milliseconds
and shares its memory with the supervisor. What must talk to Redis is done by the forked processes, which
open their own connections.

A worker that dies takes all agents with it that it ran at that time, and one of them may be the cause:
a tool that crashes the interpreter, or takes all memory. Each of them counts a loss, and from then on
runs alone, until it is past the point where it was lost (claim.lua). So the cause dies alone, to its last
loss, and its neighbours finish.

If the supervisor is killed, the kernel kills the others: nothing runs unsupervised. The processes are
then found by their leases, as when the machine is lost.
"""

from __future__ import annotations

import logging
import os
import selectors
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Literal

import msgspec

from fdstore_workers.forks import die_with, end_with, offer_to_the_kernel
from fdstore_workers.reports import MAX_LINE_BYTES, Reporter, parse

log = logging.getLogger("fdstore.worker")

STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)
FIRST_PAUSE_S = 0.25
LONGEST_PAUSE_S = 30.0
"""Before the next worker is started. The pause doubles after each that died before it was ready, and never
after one that its work killed: agents that kill workers must not stop the others."""

DIES_AT_ONCE_S = 3.0
"""A ready worker that lived for less is replaced after the first pause, which bounds what restarts cost."""

MAX_WAITING = 10_000
"""Suspects that wait for their turn. One more is left to the sweep, which asks again."""

MORE_LIKELY_TO_BE_KILLED = {"worker": 100, "alone": 300, "burial": 0}
"""Added to the score by which the kernel chooses what to kill when memory is short: a suspect before the
worker, the worker before the supervisor."""

Role = Literal["worker", "alone", "burial"]


class Held(msgspec.Struct, frozen=True):
    """A process that is claimed, or about to be, and the process of the operating system that does so."""

    pid: int
    process: str
    claim: str


class Roles(msgspec.Struct, frozen=True):
    """What the forked processes do. Each returns an exit status.

    `work` takes messages until it is told to stop; `run_alone` runs one process as far as it must have an
    operating-system process of its own; `bury` gives back what a dead one held, and wakes what it had
    taken from the queue and not begun: it is told in words what died.
    """

    work: Callable[[Reporter], int]
    run_alone: Callable[[Reporter, str], int]
    bury: Callable[[str, list[Held], list[str]], int]


class Child:
    """A forked process, and what it reported."""

    def __init__(self, pid: int, role: Role, process: str, pipe: int) -> None:
        self.pid, self.role, self.process, self.pipe = pid, role, process, pipe
        self.started_at = time.monotonic()
        self.is_ready = False
        self.unread = b""
        self.held: dict[str, Held] = {}
        self.taken: dict[str, None] = {}
        self.pool: dict[int, int] = {}  # the pidfds of its own children that claim processes


class Supervisor:
    """Keeps one worker running until a signal ends it. Must be used in the main thread, before any other
    thread is started."""

    def __init__(self, roles: Roles, alone_at_once: int) -> None:
        self._roles = roles
        self._alone_at_once = alone_at_once
        self._children: dict[int, Child] = {}
        self._to_run_alone: dict[str, None] = {}
        self._selector = selectors.DefaultSelector()
        self._signals, self._wakeup = os.pipe()
        self._was_ready = self._is_stopping = False
        self._unready_deaths = 0
        self._start_at: float | None = 0.0
        self._status = 0

    def run(self) -> int:
        """Return the exit status: the worker's, once it was told to stop or could not even start."""
        os.set_blocking(self._signals, False)
        os.set_blocking(self._wakeup, False)
        self._selector.register(self._signals, selectors.EVENT_READ, self._forward)
        signal.set_wakeup_fd(self._wakeup, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _hear)
        for number in STOPS:
            # a worker under nohup outlives its terminal
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, _hear)
        while self._start_at is not None or self._children:
            self._start_what_is_due()
            left_s = None if self._start_at is None else max(self._start_at - time.monotonic(), 0.0)
            for key, _ in self._selector.select(left_s):
                if key.fd in self._selector.get_map():  # else an earlier one of these has closed it
                    key.data()
            self._reap()
        return self._status

    def _start_what_is_due(self) -> None:
        if self._start_at is not None and time.monotonic() >= self._start_at:
            self._start_at = None
            self._fork("worker", self._roles.work)
        busy = {child.process for child in self._children.values() if child.role == "alone"}
        for process in [each for each in self._to_run_alone if each not in busy]:
            if self._is_stopping or len(busy) >= self._alone_at_once:
                return
            del self._to_run_alone[process]
            busy.add(process)
            self._fork("alone", self._running_alone(process), process)

    def _running_alone(self, process: str) -> Callable[[Reporter], int]:
        return lambda reporter: self._roles.run_alone(reporter, process)

    # what is heard

    def _forward(self) -> None:
        for number in os.read(self._signals, 4096):
            if number not in STOPS:
                continue
            self._is_stopping = True
            self._start_at = None
            # Celery takes HUP for a wish to execute the whole program again
            sent = signal.SIGTERM if number == signal.SIGHUP else number
            for child in self._children.values():
                if child.role != "burial":
                    os.kill(child.pid, sent)  # not waited for yet, so the id is still its own

    def _listen(self, child: Child) -> None:
        # it may have been unregistered before
        with suppress(BlockingIOError, KeyError):
            while piece := os.read(child.pipe, 65536):
                *lines, child.unread = (child.unread + piece).split(b"\n")
                child.unread = child.unread[-MAX_LINE_BYTES:]
                for line in lines:
                    self._note(child, line)
            self._selector.unregister(child.pipe)  # its end was closed; its death comes next

    def _note(self, child: Child, line: bytes) -> None:
        report = parse(line)
        if report is None:
            return
        match report.verb:
            case "ready":
                child.is_ready = self._was_ready = True
            case "take":
                child.taken[report.process] = None
            case "claim":
                child.taken.pop(report.process, None)
                child.held[report.claim] = Held(report.pid, report.process, report.claim)
                if report.pid != child.pid:
                    self._watch(child, report.pid)
            case "release":
                child.held.pop(report.claim, None)
            case "alone" if len(self._to_run_alone) < MAX_WAITING:
                self._to_run_alone[report.process] = None

    def _watch(self, child: Child, pid: int) -> None:
        """Notice the death of a child of a child, as a pool of processes has them."""
        if pid not in child.pool and hasattr(os, "pidfd_open"):
            with suppress(OSError):
                child.pool[pid] = os.pidfd_open(pid)
                self._selector.register(
                    child.pool[pid], selectors.EVENT_READ, lambda: self._pool_death(child, pid)
                )

    # what has died

    def _pool_death(self, child: Child, pid: int) -> None:
        self._close(child.pool.pop(pid))
        self._listen(child)
        held = [each for each in child.held.values() if each.pid == pid]
        for each in held:
            del child.held[each.claim]
        if held:
            self._bury(f"process {pid} of the worker's pool died", held, [])

    def _reap(self) -> None:
        while self._children:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if child := self._children.pop(pid, None):
                self._listen(child)
                for fd in (child.pipe, *child.pool.values()):
                    self._close(fd)
                self._died(child, os.waitstatus_to_exitcode(status))

    def _died(self, child: Child, code: int) -> None:
        if child.role == "burial":
            return
        what = f"worker process {child.pid}"
        if child.role == "alone":
            what += f", which ran {child.process} alone,"
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"
        held = list(child.held.values())
        # a worker that stops in good order has put back into the queue what it had only taken
        taken = [] if self._is_stopping else list(child.taken)
        if held or taken:
            self._bury(f"{what} {how}", held, taken)
        if child.role == "alone":
            return
        if self._is_stopping or (code >= 0 and not self._was_ready):
            self._status = code if code >= 0 else 128 - code
            return
        if not held and not taken:
            log.warning("%s %s: it held no process", what, how)
        self._unready_deaths = 0 if child.is_ready else self._unready_deaths + 1
        now = time.monotonic()
        self._start_at = now + pause_before_next(self._unready_deaths, now - child.started_at)

    def _bury(self, what: str, held: list[Held], taken: list[str]) -> None:
        self._fork("burial", lambda _: self._roles.bury(what, held, taken))

    def _close(self, fd: int) -> None:
        with suppress(KeyError):
            self._selector.unregister(fd)
        os.close(fd)

    # forks

    def _fork(self, role: Role, body: Callable[[Reporter], int], process: str = "") -> None:
        reading, writing = os.pipe()
        heard = (*STOPS, signal.SIGCHLD)
        # a signal that comes now waits until the child has put the handlers away
        signal.pthread_sigmask(signal.SIG_BLOCK, heard)
        supervisor = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._leave_behind(reading)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, heard)
            # Ctrl-C on a terminal goes to the supervisor alone, which forwards it
            os.setpgid(0, 0)
            if role != "burial":
                die_with(supervisor)
            offer_to_the_kernel(MORE_LIKELY_TO_BE_KILLED[role])
            end_with(lambda: body(Reporter(writing)))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, heard)
        os.close(writing)
        os.set_blocking(reading, False)
        child = self._children[pid] = Child(pid, role, process, reading)
        self._selector.register(reading, selectors.EVENT_READ, lambda: self._listen(child))

    def _leave_behind(self, reading: int) -> None:
        """Close and put away, in a child, what is the supervisor's."""
        signal.set_wakeup_fd(-1)
        for number in (*STOPS, signal.SIGCHLD):
            if signal.getsignal(number) is _hear:
                signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self._selector.close()
        pools = [fd for child in self._children.values() for fd in child.pool.values()]
        for fd in (reading, self._signals, self._wakeup, *(c.pipe for c in self._children.values()), *pools):
            os.close(fd)


def pause_before_next(unready_deaths: int, lived_s: float) -> float:
    """Return how many seconds to wait after a death: the last one of so many in a row that came before the
    worker was ready, or of a ready worker that lived so long.

    >>> [pause_before_next(deaths, 0.1) for deaths in (0, 1, 2, 3, 99)]
    [0.25, 0.25, 0.5, 1.0, 30.0]
    """
    if unready_deaths:
        return min(FIRST_PAUSE_S * 2.0 ** min(unready_deaths - 1, 10), LONGEST_PAUSE_S)
    return FIRST_PAUSE_S if lived_s < DIES_AT_ONCE_S else 0.0


def _hear(number: int, frame: object) -> None:
    """The handler of all signals: their numbers are read from the pipe that wakes the supervisor."""
