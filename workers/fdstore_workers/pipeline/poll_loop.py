r"""Run a pipeline of programs connected by pipes of the operating system.

    feed -> [stage 1] -> [stage 2] -> ... -> [stage n] -> output
               \-> error    \-> error, tee

Two stages share a plain pipe, unless the output of the first is teed. All other ends belong to one thread,
the caller of `run`, whose poll loop never blocks on a pipe: it reads each output as soon as it has data,
whatever the feed and the other stages do, so the stages cannot deadlock. Only that thread calls the
receivers; the feed, which may block, has a thread of its own (see `feeder`).

A stage ends with its first process: its descendants are then killed and its pipes drained. Outputs are
drained first, then stages reaped, then exit codes returned. No process of the pipeline outlives `run`. Needs
Linux 5.3 (pidfd, eventfd).
"""

from __future__ import annotations

import math
import os
import secrets
import select
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial

from fdstore.errors import InvalidArgument
from fdstore.model import ends
from fdstore.model.ends import Reason
from fdstore.model.pipeline_limits import PipelineLimits
from fdstore.model.records import Record
from fdstore.text.commands import fatal_signal, pipeline_exit_code
from fdstore_workers.pipeline.feeder import Bell, Feeder
from fdstore_workers.pipeline.launch_settings import NOT_MADE
from fdstore_workers.pipeline.pipes import Deliver, Intake, PipeEnd, Tap, pipe
from fdstore_workers.pipeline.process_tree import MARK, ProcessSnapshot, kill_marked
from fdstore_workers.pipeline.stage_process import NotStarted, StageProcess

GRACE_S = 5.0
KILL_AGAIN_S = 1.0
"""The interval between kills: the first may miss a sandbox that is being set up or a new process."""

FEED_S = 5.0
"""The time to wait for a stopped feed."""

MAX_POLL_MS = 3_600_000
"""The longest wait of one poll, which takes no more than 24 days."""

STRAGGLERS_S = 0.5
"""The time to wait for more output after all stages ended, if a foreign process holds a pipe open."""


class PipelineResult(Record, frozen=True, kw_only=True):
    """The result of a run: the exit code of each stage in order (128+n for signal n), and the reason if the
    runner ended it.

    `CLOSED`: neither the output nor a tee had a reader left. `is_unread`: the output had none, but a tee had.
    """

    codes: tuple[int, ...]
    reason: Reason | None = None
    is_unread: bool = False

    @property
    def code(self) -> int:
        """The exit code of the pipeline."""
        if self.reason is not None and self.reason.exit_code is not None:
            return self.reason.exit_code
        return pipeline_exit_code(self.codes, is_unread=self.is_unread)

    @property
    def signal(self) -> int | None:
        """The signal that killed a stage; SIGPIPE after its reader closed does not count."""
        return fatal_signal(self.codes, is_unread=self.is_unread)


class PipelineRun:
    """One run of a pipeline. Stages count from 1, in `error` and `tee` too.

    `feed` yields the input (None: empty input) and is closed at the end if it is a generator; without data
    it must yield b"" at least every second. `output`, `tee` and `error` receive chunks of at most 64 KiB. A
    receiver that raises `BranchClosed` is dropped and the others continue; after a closed `error` its stage
    continues too. When `output` and all tees are closed, the pipeline is ended. `run` raises any other
    exception of a receiver or of the feed after it has ended the pipeline.

    `command` turns the words of a stage into the command line to spawn (a sandbox). `environment` is the
    whole environment. With `reports` that command line is a launcher's, which reports whether the program ran
    (see `launch`).
    """

    def __init__(
        self,
        argvs: Sequence[Sequence[str]],
        *,
        output: Deliver,
        error: Callable[[int, bytes], None],
        environment: Mapping[str, str],
        feed: Iterator[bytes] | None = None,
        tee: Mapping[int, Deliver] | None = None,
        command: Callable[[list[str]], list[str]] = list,
        reports: bool = False,
        limits: PipelineLimits | None = None,
        cwd: str | None = None,
    ) -> None:
        if not argvs or not all(argvs):
            raise InvalidArgument("argvs", "a pipeline needs at least one stage, and every stage a program")
        self._tee = dict(tee or {})
        if unknown := sorted(set(self._tee) - set(range(1, len(argvs) + 1))):
            raise InvalidArgument("tee", f"there is no stage {unknown[0]}; stages are 1-{len(argvs)}")
        self._argvs = [command(list(argv)) for argv in argvs]
        self._output, self._error, self._feed = output, error, feed
        self._limits = limits or PipelineLimits()
        self._mark = secrets.token_hex(16)
        self._environment = {**environment, MARK: self._mark}
        self._reports = reports
        self._cwd = cwd

        self._ends = ExitStack()
        self._bell: Bell | None = None
        self._stages: dict[int, StageProcess] = {}
        self._codes: dict[int, int] = {}
        self._taps: list[Tap] = []
        self._outputs: list[Tap] = []
        self._intakes: list[Intake] = []
        self._feeder: Feeder | None = None
        self._fed: Intake | None = None

        self._kill_grace_s: float | None = None  # set by `kill`
        self._reason: Reason | None = None
        self._has_no_launcher = False
        self._kill_at: float | None = None
        self._killed = False
        self._silent_at: float | None = None
        self._wall_at: float | None = None
        self._moved_at = 0.0

    def kill(self, grace_s: float = GRACE_S) -> None:
        """Send SIGTERM to all processes of the pipeline, and SIGKILL after `grace_s`.

        Returns immediately; `run` returns when the pipeline has ended. Any thread may call this, at any time
        and repeatedly: the shortest grace counts.
        """
        self._kill_grace_s = grace_s if self._kill_grace_s is None else min(self._kill_grace_s, grace_s)
        if self._bell:  # else `run` checks the grace when it begins
            self._bell.ring()

    def run(self) -> PipelineResult:
        """Run the pipeline, once. Sandboxes die with the thread that spawns them, the caller's."""
        try:
            self._bell = Bell()
            self._ends.callback(self._bell.close)
            if self._kill_grace_s is not None:
                return PipelineResult(codes=(128 + signal.SIGTERM,) * len(self._argvs), reason=ends.CANCELLED)
            self._start(self._bell)
            while not self._finished():
                self._run_once(self._bell)
            is_unread = self._outputs[-1].is_unread and self._reason is None
            return PipelineResult(codes=self._reaped(), reason=self._reason, is_unread=is_unread)
        finally:
            self._clear()

    # --- start and end

    def _start(self, bell: Bell) -> None:
        self._moved_at = time.monotonic()
        self._wall_at = self._moved_at + self._limits.wall_seconds
        stdin = self._first_input(bell)
        for number, argv in enumerate(self._argvs, start=1):
            reading, stdout = pipe(self._ends)
            errors, stderr = pipe(self._ends)
            self._taps.append(
                Tap(errors, [partial(self._error, number)], limit=self._limits.stream_bytes, drain=True)
            )
            following = self._tap_output(number, reading)
            self._launch(number, argv, stdin, stdout, stderr)
            # only the stages may hold these ends, so that a reader sees EOF when the writer ends
            for end in (stdin, stdout, stderr):
                end.close()
            stdin = following

    def _first_input(self, bell: Bell) -> PipeEnd:
        reading, writing = pipe(self._ends)
        if self._feed is None:
            writing.close()
        else:
            self._fed = Intake(writing)
            self._intakes.append(self._fed)
            self._feeder = Feeder(self._feed, bell.ring)
        return reading

    def _tap_output(self, number: int, reading: PipeEnd) -> PipeEnd:
        """Tap the output of a stage if it is teed or the last; return the input of the next stage."""
        last = number == len(self._argvs)
        if not last and number not in self._tee:
            return reading
        following, onward = reading, None
        if not last:
            following, writing = pipe(self._ends)
            onward = Intake(writing)
            self._intakes.append(onward)
        receivers = [self._output] if last else []
        receivers += [self._tee[number]] if number in self._tee else []
        tap = Tap(reading, receivers, onward=onward, limit=self._limits.stream_bytes)
        self._outputs.append(tap)
        self._taps.append(tap)
        return following

    def _launch(self, number: int, argv: list[str], stdin: PipeEnd, stdout: PipeEnd, stderr: PipeEnd) -> None:
        try:
            self._stages[number] = StageProcess(
                argv,
                stdin=stdin.fd,
                stdout=stdout.fd,
                stderr=stderr.fd,
                environment=self._environment,
                cwd=self._cwd,
                reports=self._reports,
            )
        except NotStarted as problem:
            # as in a shell, the other stages run, with an empty input or a closed output
            self._codes[number] = NOT_MADE if self._reports else problem.code
            self._has_no_launcher = self._reports
            os.write(stderr.fd, f"{problem}\n".encode("utf-8", "backslashreplace"))

    # --- the loop

    def _finished(self) -> bool:
        """Return whether all stages have ended and their outputs are drained."""
        if any(stage.running for stage in self._stages.values()):
            return False
        if self._silent_at is None:
            kill_marked(self._mark)
            self._silent_at = time.monotonic() + STRAGGLERS_S
        return all(tap.closed for tap in self._taps) or time.monotonic() >= self._silent_at

    def _run_once(self, bell: Bell) -> None:
        """Wait for events and handle them."""
        self._keep_time(time.monotonic())
        moved = self._feed_on()
        for action in self._ready(bell):
            moved += action() or 0
        for tap in self._taps:
            tap.close_if_unread()

        now = time.monotonic()  # after the receivers: time they block does not count as idle
        if moved:
            self._moved_at = now
            if self._silent_at is not None and not self._killed:
                self._silent_at = now + STRAGGLERS_S
        if self._has_no_launcher or any(stage.has_no_sandbox for stage in self._stages.values()):
            self._stop(ends.SANDBOX, GRACE_S, now)
        elif any(tap.overflowed for tap in self._taps):
            self._stop(ends.BYTES, GRACE_S, now)
        elif not any(tap.has_branches for tap in self._outputs):
            self._stop(ends.CLOSED, GRACE_S, now)

    def _feed_on(self) -> int:
        if not (self._feeder and self._fed):
            return 0
        if self._fed.closed:
            self._fed = None
            self._feeder.stop()
        elif not self._fed.full:
            chunk = self._feeder.take()
            if chunk is None:
                self._fed.end()
            elif chunk:
                return self._fed.put(chunk)
        return 0

    def _ready(self, bell: Bell) -> list[Callable[[], int | None]]:
        """Wait for events and return their handlers."""
        poll = select.poll()
        actions: dict[int, Callable[[], int | None]] = {bell.fd: bell.drain}
        poll.register(bell.fd, select.POLLIN)
        for stage in self._stages.values():
            if stage.running:
                actions[stage.pidfd] = stage.ended
                poll.register(stage.pidfd, select.POLLIN)
        for tap in self._taps:
            if tap.ready:  # poll would report the hang-up of an unready one again and again
                actions[tap.fd] = tap.read
                poll.register(tap.fd, select.POLLIN)
        for intake in self._intakes:
            if not intake.closed:  # even with an empty event mask poll reports a closed reader
                actions[intake.fd] = intake.write if intake.full else intake.close
                poll.register(intake.fd, select.POLLOUT if intake.full else 0)
        return [actions[fd] for fd, _ in poll.poll(self._wait_ms(time.monotonic()))]

    # --- time limits and signals

    def _wait_ms(self, now: float) -> int | None:
        times = (
            [self._kill_at, self._silent_at]
            if self._reason
            else [self._wall_at, self._idle_at, self._silent_at]
        )
        due = [at for at in times if at is not None]
        return max(0, min(MAX_POLL_MS, math.ceil((min(due) - now) * 1000))) if due else None

    @property
    def _idle_at(self) -> float:
        return self._moved_at + self._limits.stream_idle_seconds

    def _keep_time(self, now: float) -> None:
        if self._kill_grace_s is not None:
            self._stop(ends.CANCELLED, self._kill_grace_s, now)
        elif self._wall_at is not None and now >= self._wall_at:
            self._stop(ends.WALL, GRACE_S, now)
        elif now >= self._idle_at:
            self._stop(ends.IDLE, GRACE_S, now)
        if self._kill_at is not None and now >= self._kill_at:
            self._killed = True
            self._signal(signal.SIGKILL)
            self._kill_at = now + KILL_AGAIN_S

    def _stop(self, reason: Reason, grace_s: float, now: float) -> None:
        """Send SIGTERM to all stages and schedule SIGKILL. The first reason counts."""
        if self._killed:
            return
        if self._reason is None:
            self._reason = reason
            self._signal(signal.SIGTERM)
        self._kill_at = now + grace_s if self._kill_at is None else min(self._kill_at, now + grace_s)

    def _signal(self, number: signal.Signals) -> None:
        running = [stage for stage in self._stages.values() if stage.running]
        if running:
            snapshot = ProcessSnapshot()
            for stage in running:
                stage.send(number, snapshot)

    def _reaped(self) -> tuple[int, ...]:
        while self._stages:
            number, stage = self._stages.popitem()
            self._codes[number] = stage.reap()
        return tuple(self._codes[number] for number in range(1, len(self._argvs) + 1))

    def _clear(self) -> None:
        """Kill and reap all processes, close all pipes and stop the feeder, also after an exception."""
        try:
            self._ends.close()  # first: reading /proc needs a free file descriptor
            self._signal(signal.SIGKILL)
            for stage in self._stages.values():
                stage.reap()
            kill_marked(self._mark)
        finally:
            if self._feeder:
                self._feeder.stop()
                self._feeder.join(FEED_S)
