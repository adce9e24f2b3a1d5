"""One stage as a process: spawn it, signal it with its descendants, reap it.

A sandboxed stage is spawned by a launcher, which reports over a pipe whether the program ran: its exit code
cannot tell, since a program may exit with the same code.

A stage leads its own session and process group. It is reaped last: until then the kernel cannot reuse its
pid, which is also the id of the group.
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress

from fdstore.errors import FDStoreError, quoted
from fdstore_workers.pipeline.launch_settings import NOT_MADE, STATUS, has_run
from fdstore_workers.pipeline.process_tree import ProcessSnapshot

NOT_FOUND, NOT_RUNNABLE = 127, 126
"""Exit codes of a shell for a program that it cannot start."""

SANDBOX_END_S = 2.0
"""The time to wait for a sandbox to exit after all its processes were killed."""


class NotStarted(FDStoreError):
    """The program cannot be started. `code` is the exit code that a shell would use."""

    type = "unknown_program"

    program: str
    problem: str
    code: int

    def __str__(self) -> str:
        return f"{quoted(self.program)} cannot be started: {self.problem}"


class StageProcess:
    """One running program. `pidfd` becomes readable when it ends. With `reports`, `argv` is a launcher's
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
        self._reported = b""
        pass_fds: tuple[int, ...] = ()
        if reports:
            self._reports, status_fd = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
            pass_fds = (status_fd,)
            environment = {**environment, STATUS: str(status_fd)}
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
                pass_fds=pass_fds,
                restore_signals=True,  # Python ignores SIGPIPE, and the program would inherit that
            )
        except OSError as error:
            self._close_reports()
            if error.filename != argv[0]:  # not the program's fault: no pid, no memory, no such cwd
                raise
            code = NOT_FOUND if error.errno == errno.ENOENT else NOT_RUNNABLE
            raise NotStarted(argv[0], os.strerror(error.errno or 0), code) from error
        finally:
            for fd in pass_fds:
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
        """True if the stage ended because its sandbox failed, before the program ended."""

    def ended(self) -> None:
        """Handle the end of the first process: read the launcher's report and kill the rest of the group."""
        self.running = False
        if self._reports is not None:
            # a killed launcher cannot report
            end = os.waitid(os.P_PIDFD, self.pidfd, os.WEXITED | os.WNOWAIT)
            exited = end is not None and end.si_code == os.CLD_EXITED
            self.has_no_sandbox = exited and not self._has_run()
        self._signal_group(signal.SIGKILL)

    def send(self, number: signal.Signals, snapshot: ProcessSnapshot) -> None:
        """Signal the stage and its descendants.

        In a sandbox only the programs are signalled; the sandbox exits after them. If it got the signal
        first, it would kill the programs before they could handle theirs.
        """
        below = snapshot.below(self._process.pid)
        inside = [process for process in below if process.inside]
        programs = [process for process in inside if not process.init]
        if not inside:
            below = [process for process in below if not self._in_group(process.pid)]
            self._signal_group(number)
            for process in below:
                process.send(number)
        elif programs and number != signal.SIGKILL:
            for process in programs:
                process.send(number)
        elif number == signal.SIGKILL or not self._has_run():
            # a sandbox dies with its init, which is alone while the sandbox is being set up; also when its
            # program has ended, but then it is about to pass the exit code on
            for process in inside:
                if process.init:
                    process.send(signal.SIGKILL)

    def reap(self) -> int:
        """Wait for the end. Return the exit code, 128+n for signal n, `NOT_MADE` for a failed sandbox."""
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

    def _has_run(self) -> bool:
        """Return whether the launcher has reported that the program runs, or ran."""
        if self._reports is not None:
            self._reported += _read_all(self._reports)
        return has_run(self._reported)

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
    """Return the available data of a non-blocking pipe."""
    found = b""
    with suppress(BlockingIOError):
        while chunk := os.read(fd, 4096):
            found += chunk
    return found
