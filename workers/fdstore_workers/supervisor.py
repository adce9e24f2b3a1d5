"""The parent process of a worker: forks the process that works, and recovers from its death.

    supervisor ─┬─ the worker's process      consumes messages, runs agents and pipelines
                ├─ one for each suspect      runs one process alone that may have killed its worker
                └─ after a death: a release  releases the processes that the dead one held, then exits

The supervisor has one thread, no connection, and runs no user code: it waits for signals, deaths and reports
(reports.py), tells its load (load_board.py), and forks. All imports precede the forks, so a new worker starts
within milliseconds and shares memory with the supervisor. Only forked processes talk to Redis, over their own
connections.

When a worker dies, all agents that it ran die with it, and one of them may be the cause: a tool that crashes
the interpreter or exhausts memory. Each of them is lost, and then runs alone until it has passed the point of
the crash (claim.lua). The loss is counted for the one that ran alone, else for the only one that ran a
user's function, else for none (`find_culprit`). So an agent that crashes its worker reaches its limit of
losses, and the others finish.

A call that goes on after its process was cancelled, or was taken over as after a freeze, holds a slot for
nothing, and a thread cannot be killed. After `LOST_CALL_S` its operating-system process gets SIGTERM: it
returns what else it runs, without a loss, and another one starts.

Work that holds the interpreter's lock, as a regular expression or a call of a C library can for minutes,
stops all threads of its operating-system process, those that renew leases too. Such a process does not beat
any more, although it runs. It is killed before its leases expire, so that the loss counts for the one that
froze it and not for its neighbours, as after any crash; of a prefork pool only the frozen process is killed.
One that is stopped from outside, or gets no processor, is not frozen by its own work: it is left alone, and
its leases expire.

If the supervisor is killed, the kernel kills its children: nothing runs unsupervised. The leases then expire
and other workers take over, as after the loss of a machine. Such losses are counted for no agent.
"""

from __future__ import annotations

import logging
import os
import selectors
import signal
import sys
import time
from collections.abc import Callable, Collection, Sequence, Set
from contextlib import suppress
from typing import Literal

import msgspec

from fdstore.store.views.worker_registry import MAX_RUNS, WorkerLoad
from fdstore.telemetry.counts import count
from fdstore_workers.forks import die_with_parent, raise_oom_score, run_and_exit
from fdstore_workers.load_board import LoadBoard
from fdstore_workers.reports import MAX_LINE_BYTES, Reporter, parse

log = logging.getLogger("fdstore.worker")

STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)
FIRST_PAUSE_S = 0.25
LONGEST_PAUSE_S = 30.0
"""The limits of the pause before a new worker. It doubles after each worker that died before it was ready,
but not after one that its work killed: agents that kill workers must not delay the others."""

SHORT_LIFE_S = 3.0
"""A ready worker that dies sooner is replaced after the first pause, which bounds the cost of restarts."""

LOST_CALL_S = 60.0
"""The time that a call may go on after it was lost. Then the process that runs it is replaced."""

REPLACED_WITHIN_S = 30.0
"""The time that a worker that is replaced may take to shut down, which returns the processes that it runs
(claim.STOP_GRACE_S, worker.LEAVE_AFTER_S). Then it is killed: it may be frozen."""

FROZEN_AFTER_S = 5.0
"""The time without a beat after which a process is frozen. A lease that was renewed in time has 7 s left at
least, so the process is blamed before the sweep finds its lease expired, even on a busy machine."""

LOOK_AGAIN_S = 0.5

BUSY_S = 1.0
"""Who has had so much processor time since the last beat did not lack it."""

MAX_WAITING = 10_000
"""The limit of queued suspects. The sweep finds any others again."""

OOM_SCORES = {"worker": 100, "alone": 300, "release": 0}
"""Added to the score for the OOM killer: it kills a suspect before the worker, and the worker before the
supervisor."""

Role = Literal["worker", "alone", "release"]


class HeldProcess(msgspec.Struct, frozen=True):
    """A process that is claimed or about to be, and the pid of the system process that claims it.
    `is_to_blame`: the death of that one counts against it. `in_slot`: it occupies a slot of the worker."""

    pid: int
    process: str
    claim: str
    is_to_blame: bool = True
    in_slot: bool = True


class Roles(msgspec.Struct, frozen=True):
    """The bodies of the forked processes. Each returns an exit status.

    `work` consumes messages until a signal stops it. `run_alone` runs one process while it must have an
    operating-system process of its own. `release` releases the processes that a dead one held, and wakes
    those that it had received and not started; its first argument describes the death for the log.
    """

    work: Callable[[Reporter], int]
    run_alone: Callable[[Reporter, str], int]
    release: Callable[[str, list[HeldProcess], list[str]], int]


class Pulse:
    """The beats of an operating-system process, which begin when it is made."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.note_beat()

    def note_beat(self) -> None:
        self.beat_at, self.used_at_beat_s = time.monotonic(), _used_s(self.pid)
        self.is_silent = False

    @property
    def frozen_at(self) -> float:
        """Return when the process counts as frozen if it does not beat until then."""
        return self.beat_at + FROZEN_AFTER_S + (LOOK_AGAIN_S if self.is_silent else 0.0)

    def has_stopped(self) -> bool:
        """Return whether the process is frozen by its own work. Looks twice at one that seems so: it and this
        one may both have been stopped until now."""
        if time.monotonic() < self.frozen_at:
            return False
        if not is_silent_by_itself(self.pid, self.used_at_beat_s):
            self.note_beat()
            return False
        was_silent, self.is_silent = self.is_silent, True
        return was_silent


class Child:
    """A forked process and the state that it reported."""

    def __init__(self, pid: int, role: Role, process: str, pipe: int) -> None:
        self.pid, self.role, self.process, self.pipe = pid, role, process, pipe
        self.started_at = time.monotonic()
        self.is_ready = False
        self.unread = b""
        self.held: dict[str, HeldProcess] = {}
        self.in_user_code: set[str] = set()  # claims
        self.lost: dict[str, float] = {}  # claims of calls that go on without their lease, and since when
        self.kill_at: float | None = None  # it was told to shut down, and is killed then
        self.taken: dict[str, None] = {}
        self.pool: dict[int, int] = {}  # the pidfds of its own children that claim processes
        self.pulses: dict[int, Pulse] = {}  # its own, from its first beat on, and those of its pool

    def working(self) -> list[Pulse]:
        """Return the pulses of the processes that hold something: this one for all of its pool."""
        holders = {self.pid, *(each.pid for each in self.held.values())} if self.held else set()
        return [pulse for pid, pulse in self.pulses.items() if pid in holders]


class Supervisor:
    """Keeps one worker running until a signal stops it. Use it in the main thread, before other threads
    start. `slots` is how many agents the worker runs at the same time, and how many run alone beside it; the
    load is written to `board`."""

    def __init__(self, roles: Roles, slots: int, board: LoadBoard | None = None) -> None:
        self._roles = roles
        self._slots = slots
        self._board = board or LoadBoard()
        self._load: WorkerLoad | None = None
        self._lost_calls = 0
        self._children: dict[int, Child] = {}
        self._to_run_alone: dict[str, None] = {}
        self._selector = selectors.DefaultSelector()
        self._signals, self._wakeup = os.pipe()
        self._was_ready = self._is_stopping = False
        self._unready_deaths = 0
        self._looked_at = time.monotonic()
        self._start_at: float | None = 0.0
        self._status = 0

    def run(self) -> int:
        """Supervise until a signal or a failed first start; return the worker's exit status."""
        os.set_blocking(self._signals, False)
        os.set_blocking(self._wakeup, False)
        self._selector.register(self._signals, selectors.EVENT_READ, self._forward)
        signal.set_wakeup_fd(self._wakeup, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _on_signal)
        for number in STOPS:
            # a worker under nohup outlives its terminal
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, _on_signal)
        while self._start_at is not None or self._children:
            self._replace_stuck()
            self._kill_frozen()
            self._tell_load()
            self._fork_due()
            due_at = self._next_due_at()
            left_s = None if due_at is None else max(due_at - time.monotonic(), 0.0)
            for key, _ in self._selector.select(left_s):
                if key.fd in self._selector.get_map():  # else an earlier handler has closed it
                    key.data()
            self._reap()
        return self._status

    def _fork_due(self) -> None:
        if self._start_at is not None and time.monotonic() >= self._start_at:
            self._start_at = None
            self._fork("worker", self._roles.work)
        busy = {child.process for child in self._children.values() if child.role == "alone"}
        for process in [each for each in self._to_run_alone if each not in busy]:
            if self._is_stopping or len(busy) >= self._slots:
                return
            del self._to_run_alone[process]
            busy.add(process)
            self._fork("alone", self._body_alone(process), process)

    def _body_alone(self, process: str) -> Callable[[Reporter], int]:
        return lambda reporter: self._roles.run_alone(reporter, process)

    def _next_due_at(self) -> float | None:
        """Return when the next fork or replacement is due."""
        moments = [] if self._start_at is None else [self._start_at]
        for child in self._children.values():
            if child.kill_at is not None:
                moments.append(child.kill_at)
            elif child.lost and not self._is_stopping:
                moments.append(min(child.lost.values()) + LOST_CALL_S)
            moments += [pulse.frozen_at for pulse in child.working()]
        return min(moments, default=None)

    def _replace_stuck(self) -> None:
        """Tell processes to shut down in which a call goes on long after it was lost, and kill those that do
        not."""
        now = time.monotonic()
        for child in self._children.values():
            if child.kill_at is not None:
                if now >= child.kill_at:
                    child.kill_at = None
                    child.lost.clear()
                    os.kill(child.pid, signal.SIGKILL)  # not reaped yet, so the pid is still valid
                continue
            stuck = [claim for claim, since in child.lost.items() if now - since >= LOST_CALL_S]
            if not stuck or self._is_stopping:
                continue
            for claim in stuck:
                self._lost_calls += 1
                count("fdstore_worker_lost_calls_total")
                process = child.held[claim].process
                log.warning("a call of %s has not ended %g s after it was lost", process, LOST_CALL_S)
            log.warning("worker process %d is replaced", child.pid)
            # what ran alone is not its own any more, so there is nothing to return
            child.kill_at = now if child.role == "alone" else now + REPLACED_WITHIN_S
            os.kill(child.pid, signal.SIGTERM)

    def _kill_frozen(self) -> None:
        """Kill processes that their own work has frozen."""
        looked_at, self._looked_at = self._looked_at, time.monotonic()
        for child in self._children.values():
            if not child.working():
                continue
            self._listen(child)
            for pulse in child.working():
                if self._looked_at - looked_at > FROZEN_AFTER_S + 1:
                    pulse.note_beat()  # this process itself did not run, and the other may not have either
                if pulse.has_stopped():
                    log.warning("worker process %d is frozen by what it runs, and is killed", pulse.pid)
                    del child.pulses[pulse.pid]
                    if pulse.pid == child.pid:
                        os.kill(child.pid, signal.SIGKILL)  # not reaped yet, so the pid is still valid
                    else:
                        signal.pidfd_send_signal(child.pool[pulse.pid], signal.SIGKILL)

    def _tell_load(self) -> None:
        load = load_of(self._children.values(), self._slots, self._lost_calls)
        if load != self._load:
            self._load = load
            self._board.write(load)

    # signals and reports

    def _forward(self) -> None:
        for number in os.read(self._signals, 4096):
            if number not in STOPS:
                continue
            self._is_stopping = True
            self._start_at = None
            # on SIGHUP Celery would re-execute the whole program
            sent = signal.SIGTERM if number == signal.SIGHUP else number
            for child in self._children.values():
                if child.role != "release":
                    os.kill(child.pid, sent)  # not reaped yet, so the pid is still valid

    def _listen(self, child: Child) -> None:
        # it may have been unregistered before
        with suppress(BlockingIOError, KeyError):
            while chunk := os.read(child.pipe, 65536):
                *lines, child.unread = (child.unread + chunk).split(b"\n")
                child.unread = child.unread[-MAX_LINE_BYTES:]
                for line in lines:
                    self._note(child, line)
            self._selector.unregister(child.pipe)  # EOF: its death follows

    def _note(self, child: Child, line: bytes) -> None:
        report = parse(line)
        if report is None:
            return
        match report.verb:
            case "ready":
                child.is_ready = self._was_ready = True
            case "take":
                child.taken[report.process] = None
            case "claim" | "beside":
                child.taken.pop(report.process, None)
                child.held[report.claim] = HeldProcess(
                    report.pid, report.process, report.claim, in_slot=report.verb == "claim"
                )
                if report.pid != child.pid:
                    self._watch(child, report.pid)
            case "enter":
                child.in_user_code.add(report.claim)
            case "leave":
                child.in_user_code.discard(report.claim)
            case "lost" if report.claim in child.held:
                child.lost.setdefault(report.claim, time.monotonic())
            case "release":
                child.in_user_code.discard(report.claim)
                child.lost.pop(report.claim, None)
                child.held.pop(report.claim, None)
            case "beat" if report.pid in child.pulses:
                child.pulses[report.pid].note_beat()
            case "beat" if report.pid == child.pid:
                child.pulses[child.pid] = Pulse(child.pid)
            case "alone" if len(self._to_run_alone) < MAX_WAITING:
                self._to_run_alone[report.process] = None

    def _watch(self, child: Child, pid: int) -> None:
        """Watch for the death of a grandchild: a process of the worker's prefork pool."""
        if pid not in child.pool and hasattr(os, "pidfd_open"):
            with suppress(OSError):
                child.pool[pid] = os.pidfd_open(pid)
                child.pulses[pid] = Pulse(pid)
                self._selector.register(
                    child.pool[pid], selectors.EVENT_READ, lambda: self._pool_death(child, pid)
                )

    # deaths

    def _pool_death(self, child: Child, pid: int) -> None:
        self._close(child.pool.pop(pid))
        child.pulses.pop(pid, None)
        self._listen(child)
        held = [each for each in child.held.values() if each.pid == pid]
        for each in held:
            del child.held[each.claim]
            child.lost.pop(each.claim, None)
        if held:
            self._release(f"process {pid} of the worker's pool died", held, [], child.in_user_code)

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
        if child.role == "release":
            return
        what = f"worker process {child.pid}"
        if child.role == "alone":
            what += f", which ran {child.process} alone,"
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"
        held, taken = list(child.held.values()), list(child.taken)
        if held or taken:
            self._release(f"{what} {how}", held, taken, child.in_user_code)
        if child.role == "alone":
            return
        if self._is_stopping or (code >= 0 and not self._was_ready):
            self._status = code if code >= 0 else 128 - code
            return
        if not held and (code or not taken):
            log.warning("%s %s: it held no process", what, how)
        self._unready_deaths = 0 if child.is_ready else self._unready_deaths + 1
        now = time.monotonic()
        self._start_at = now + pause_before_next(self._unready_deaths, now - child.started_at)

    def _release(self, what: str, held: list[HeldProcess], taken: list[str], in_user_code: Set[str]) -> None:
        culprit = find_culprit([each.claim for each in held], in_user_code)
        lost = [msgspec.structs.replace(each, is_to_blame=each.claim == culprit) for each in held]
        self._fork("release", lambda _: self._roles.release(what, lost, taken))

    def _close(self, fd: int) -> None:
        with suppress(KeyError):
            self._selector.unregister(fd)
        os.close(fd)

    # forks

    def _fork(self, role: Role, body: Callable[[Reporter], int], process: str = "") -> None:
        read_end, write_end = os.pipe()
        handled = (*STOPS, signal.SIGCHLD)
        # signals are blocked until the child has removed the handlers
        signal.pthread_sigmask(signal.SIG_BLOCK, handled)
        supervisor = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._close_inherited(read_end)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, handled)
            # Ctrl-C on a terminal reaches the supervisor only, which forwards it
            os.setpgid(0, 0)
            # in every role: if the supervisor is killed as well, no agent caused the death of the child
            die_with_parent(supervisor)
            raise_oom_score(OOM_SCORES[role])
            run_and_exit(lambda: body(Reporter(write_end)))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, handled)
        os.close(write_end)
        os.set_blocking(read_end, False)
        child = self._children[pid] = Child(pid, role, process, read_end)
        self._selector.register(read_end, selectors.EVENT_READ, lambda: self._listen(child))

    def _close_inherited(self, read_end: int) -> None:
        """Close the supervisor's descriptors and reset its signal handlers, in a child."""
        signal.set_wakeup_fd(-1)
        for number in (*STOPS, signal.SIGCHLD):
            if signal.getsignal(number) is _on_signal:
                signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self._selector.close()
        pools = [fd for child in self._children.values() for fd in child.pool.values()]
        for fd in (read_end, self._signals, self._wakeup, *(c.pipe for c in self._children.values()), *pools):
            os.close(fd)


def load_of(children: Collection[Child], slots: int, lost_calls: int = 0) -> WorkerLoad:
    """Return what a worker with these children is busy with, which was replaced because of so many
    `lost_calls`. Those that run alone occupy no slot."""
    working = [child for child in children if child.role == "worker"]
    in_slots = [(child, each) for child in working for each in child.held.values() if each.in_slot]
    runs = {
        each.process for child in children for each in child.held.values() if each.claim not in child.lost
    }
    return WorkerLoad(
        slots=slots,
        busy=len(in_slots),
        lost=sum(each.claim in child.lost for child, each in in_slots),
        lost_calls=lost_calls,
        runs=tuple(sorted(runs)[:MAX_RUNS]),
    )


def find_culprit(held: Sequence[str], in_user_code: Set[str]) -> str | None:
    """Return the claim against which the death of an operating-system process counts that held these claims:
    the only one, or the only one that ran code of the user; None if there is no such one.

    >>> find_culprit(["a"], set()), find_culprit(["a", "b"], {"b"}), find_culprit(["a", "b"], {"a", "b"})
    ('a', 'b', None)
    """
    suspects = held if len(held) == 1 else [claim for claim in held if claim in in_user_code]
    return suspects[0] if len(suspects) == 1 else None


def _used_s(pid: int) -> float:
    """Return the processor time of a process so far; 0 where the system does not tell."""
    try:
        # the clock's number in Linux, see fdstore.programs.interpreter.processor_time
        return time.clock_gettime(~pid << 3 | 2) if sys.platform == "linux" else 0.0
    except OSError:
        return 0.0


def is_silent_by_itself(pid: int, used_before_s: float) -> bool:
    """Return whether a process that does not beat runs, or sleeps, by its own doing: whether it has had a
    second of processor time meanwhile, or wants none. False if it was stopped, or waits for a processor or
    a disk, and where the system does not tell."""
    states = set()
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/stat", encoding="ascii", errors="replace") as file:
                states.add(file.read().rpartition(")")[2].split()[0])
    except (OSError, IndexError):
        return False
    return states == {"S"} or (_used_s(pid) - used_before_s >= BUSY_S and not states & {"T", "t"})


def pause_before_next(unready_deaths: int, lived_s: float) -> float:
    """Return the pause in seconds before the next worker.

    `unready_deaths` counts the last workers in a row that died before they were ready; if it is 0, the last
    one was ready and lived for `lived_s`.

    >>> [pause_before_next(deaths, 0.1) for deaths in (0, 1, 2, 3, 99)]
    [0.25, 0.25, 0.5, 1.0, 30.0]
    """
    if unready_deaths:
        return min(FIRST_PAUSE_S * 2.0 ** min(unready_deaths - 1, 10), LONGEST_PAUSE_S)
    return FIRST_PAUSE_S if lived_s < SHORT_LIFE_S else 0.0


def _on_signal(number: int, frame: object) -> None:
    """Handle a signal by doing nothing: the supervisor reads its number from the wake-up pipe."""
