"""One stage as the operating system runs it: started, signalled with all it started, reaped.

A stage in a sandbox is started by a launcher, which reports over a pipe whether the program ran: a sandbox
that could not be made ends with a code that the program might have given.

A stage leads a session and process group of its own. It is reaped last, so that until then its pid, and
with it the group's, cannot have become somebody else's.
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress

from fdstore.errors import FDStoreError, quoted
from fdstore_workers.pipeline.launch import NOT_MADE, STATUS, has_run
from fdstore_workers.pipeline.process_tree import ProcessSnapshot

NOT_FOUND, NOT_RUNNABLE = 127, 126
"""What a shell gives as the code of a program that it cannot start."""

SANDBOX_END_S = 2.0
"""How long a sandbox takes to notice that all in it were killed, at the very most."""


class NotStarted(FDStoreError):
    """The system would not run the program. `code` is the exit code that a shell would give."""

    type = "unknown_program"

    def __init__(self, program: str, problem: str, code: int) -> None:
        super().__init__(program, problem, code)
        self.program, self.problem, self.code = program, problem, code

    def __str__(self) -> str:
        return f"{quoted(self.program)} cannot be started: {self.problem}"


class Stage:
    """One running program; `pidfd` becomes readable when it ends. With `reports`, `argv` starts a launcher
    (`fdstore_workers.pipeline.launch`)."""

    def __init__(
        self,
        argv: list[str],
        *,
        stdin: int,
        stdout: int,
        stderr: int,
        environment: Mapping[str, str],
        cwd: str | None,
        reports: bool = False,
    ) -> None:
        self._reports: int | None = None
        status: tuple[int, ...] = ()
        if reports:
            self._reports, told = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
            status = (told,)
            environment = {**environment, STATUS: str(told)}
        try:
            self._process = subprocess.Popen(
                argv,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                env=environment,
                cwd=cwd,
                start_new_session=True,
                close_fds=True,
                pass_fds=status,
                restore_signals=True,  # SIGPIPE: Python ignores it, and that would be inherited
            )
        except OSError as error:
            self._close_reports()
            if error.filename != argv[0]:  # no process, no memory, no such directory
                raise
            code = NOT_FOUND if error.errno == errno.ENOENT else NOT_RUNNABLE
            raise NotStarted(argv[0], os.strerror(error.errno or 0), code) from error
        finally:
            for fd in status:
                os.close(fd)
        try:
            self.pidfd = os.pidfd_open(self._process.pid)
        except OSError:
            self._process.kill()
            self._process.wait()
            self._close_reports()
            raise
        self.running = True
        self.has_no_sandbox = False
        """Whether it ended because its sandbox could not be made, or failed: its program did not end."""

    def ended(self) -> None:
        """Its first process has ended, and so shall its group."""
        self.running = False
        if self._reports is not None:
            # a launcher that was killed could not report
            end = os.waitid(os.P_PIDFD, self.pidfd, os.WEXITED | os.WNOWAIT)
            by_itself = end is not None and end.si_code == os.CLD_EXITED
            self.has_no_sandbox = by_itself and not has_run(_read_all(self._reports))
        self._signal_group(signal.SIGKILL)

    def send(self, number: signal.Signals, family: ProcessSnapshot) -> None:
        """Signals all of it. Of a sandbox only the inside is signalled: what made it ends by itself when
        that has ended. If it were to end first, it would take the programs along without a word."""
        below = family.below(self._process.pid)
        inside = [relative for relative in below if relative.inside]
        programs = [relative for relative in inside if not relative.init]
        if not inside:
            below = [relative for relative in below if not self._in_group(relative.pid)]
            self._signal_group(number)
            for relative in below:
                relative.send(number)
        elif programs and number != signal.SIGKILL:
            for relative in programs:
                relative.send(number)
        else:
            # all of a sandbox dies with its init; one that is still being made has nobody else to ask
            for relative in inside:
                if relative.init:
                    relative.send(signal.SIGKILL)

    def reap(self) -> int:
        """Waits for its end; the exit code, 128+n for signal n, `NOT_MADE` for a sandbox that failed."""
        try:
            code = self._process.wait(SANDBOX_END_S)
        except subprocess.TimeoutExpired:
            self._signal_group(signal.SIGKILL)
            code = self._process.wait()
        os.close(self.pidfd)
        self._close_reports()
        if self.has_no_sandbox:
            return NOT_MADE
        return code if code >= 0 else 128 - code

    def _close_reports(self) -> None:
        if self._reports is not None:
            os.close(self._reports)

    def _in_group(self, pid: int) -> bool:
        with suppress(ProcessLookupError):
            return os.getpgid(pid) == self._process.pid
        return True

    def _signal_group(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


def _read_all(fd: int) -> bytes:
    """What is in a pipe now."""
    found = b""
    with suppress(BlockingIOError):
        while piece := os.read(fd, 4096):
            found += piece
    return found
