"""Run one command under sandlock, whose supervisor is a thread of this process.

    in namespaces   launcher -> its child, pid 1 of a PID namespace -> the program
    alone           launcher -> its child -> the program

A PID namespace ends with its pid 1. Alone, the launcher and its child adopt orphans, and each kills what is
left of the command if the other one is killed.

The exit code is the program's, or 128+n for signal n.
"""

from __future__ import annotations

import errno
import os
import select
import signal
from contextlib import suppress
from typing import Any

from fdstore_workers.pipeline import kernel, sandbox_root, syscall_filter
from fdstore_workers.pipeline.launch_settings import (
    NOT_MADE,
    STARTED,
    Settings,
    die_with_worker,
    report,
    scratch,
)

PARENT_ENDED = signal.SIGHUP
"""The signal for the end of the launcher, if its child must first kill the command."""


def run(settings: Settings, program: list[str]) -> int:
    """Run the program to its end and return its exit code."""
    own_namespaces = settings["own_namespaces"] == ["1"]
    # sandlock needs HOME to load; its files may be readable by root only, so import it before dropping root
    os.environ["HOME"] = "/work" if own_namespaces else "/nonexistent"
    import sandlock

    if not own_namespaces:
        sandbox_root.become_nobody()
        return _run_alone(sandlock, settings, program)
    sandbox_root.enter_all(*scratch(settings), settings.get("private", []))
    die_with_worker(settings, signal.SIGKILL)
    read_end, write_end = os.pipe()  # the parent holds the write end: EOF means that it has ended
    child = os.fork()
    if child:
        os.close(read_end)
        _, status = os.waitpid(child, 0)
        return _shell_code(os.waitstatus_to_exitcode(status))
    os.close(write_end)
    kernel.die_with_parent(signal.SIGKILL)
    if select.select([read_end], [], [], 0)[0]:
        os._exit(NOT_MADE)  # the parent ended before die_with_parent
    sandbox_root.enter_root()
    return _supervise(sandlock, settings, program)


def _run_alone(sandlock: Any, settings: Settings, program: list[str]) -> int:
    """Supervise the program in a child, and kill what the child leaves behind if it is killed."""
    kernel.adopt_orphans()
    die_with_worker(settings, signal.SIGKILL)
    settings["parent"] = [str(os.getpid())]
    _handle_signals()
    child = os.fork()
    if not child:
        return _supervise(sandlock, settings, program)
    _, status = os.waitpid(child, 0)
    _end_orphans()
    return _shell_code(os.waitstatus_to_exitcode(status))


def _handle_signals() -> None:
    """Let this process outlive the signals for the program, which ends by them or not."""
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, PARENT_ENDED):
        # a handler and not SIG_IGN, which the program would inherit
        signal.signal(number, lambda *_: None)


def _supervise(sandlock: Any, settings: Settings, program: list[str]) -> int:
    """Run the program as a child and return its exit code."""
    own_namespaces = settings["own_namespaces"] == ["1"]
    wakeups, wakeup_fd = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(wakeup_fd, warn_on_full_buffer=False)
    _handle_signals()
    if not own_namespaces:
        kernel.adopt_orphans()
        die_with_worker(settings, PARENT_ENDED)
    box = sandlock.Sandbox(**_policy(sandlock, settings))
    kernel.drop_capabilities()
    code = syscall_filter.make(sockets=False, attributes=own_namespaces, supervised=True)
    if code is not None:
        kernel.filter_system_calls(code)
    if not os.access(program[0], os.X_OK):
        # sandlock would exit with a shell's code, which a program may use too
        raise FileNotFoundError(errno.ENOENT, "it cannot be started", program[0])
    errors = os.dup(2)
    notes = os.memfd_create("notes")
    os.dup2(notes, 2)  # for sandlock's own messages, kept apart from the program's stderr
    try:
        # through a pipe: the program would inherit `notes` as its stderr
        process = box.popen(program, stderr=sandlock.StdioMode.PIPED)
    except RuntimeError as error:
        os.dup2(errors, 2)
        messages = os.pread(notes, 4096, 0).decode("utf-8", "replace").strip()
        raise OSError(messages or str(error)) from error
    report(settings["status"][0], STARTED)
    try:
        _wait(process.pid, wakeups, process.stderr.fileno(), errors)
    finally:
        if not own_namespaces:  # else orphans die with the namespace, whose pid 1 this process is
            _end_orphans()
    _pass_on(process.stderr.fileno(), errors)
    result = process.wait()
    match result.reason:
        case sandlock.ExitReason.EXITED:
            return int(result.exit_code)
        case sandlock.ExitReason.SIGNALED:
            return 128 + int(result.signal)
    return 128 + signal.SIGKILL


def _policy(sandlock: Any, settings: Settings) -> dict[str, Any]:
    devices = [f"/dev/{device}" for device in sandbox_root.DEVICES]
    if settings["own_namespaces"] == ["1"]:
        # the namespaces make up for protections that an older Landlock lacks
        return {
            "fs_readable": ["/"],
            "fs_writable": ["/work", "/tmp", *devices],
            "allow_degraded": list(sandlock.Protection),
            "max_processes": int(settings["processes"][0]),
            "cwd": "/work",
        }
    return {
        "fs_readable": [*settings["readable"], *devices],
        "fs_writable": ["/dev/null"],
        "max_processes": int(settings["processes"][0]),
        "cwd": "/",
    }


def _wait(pid: int, wakeups: int, errors: int, out: int) -> None:
    """Wait for the process to end; meanwhile copy its stderr to `out` and reap adopted orphans."""
    os.set_blocking(errors, False)
    try:
        pin = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    poll = select.poll()
    for fd in (pin, wakeups, errors):
        poll.register(fd, select.POLLIN)
    while pin not in (ready := [fd for fd, _ in poll.poll()]):
        if errors in ready and not _pass_on(errors, out):
            poll.unregister(errors)
        if wakeups in ready and PARENT_ENDED in os.read(wakeups, 4096):
            signal.pidfd_send_signal(pin, signal.SIGKILL)
        with suppress(ChildProcessError):
            # WNOWAIT: sandlock itself must reap the process
            flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
            while (ended := os.waitid(os.P_ALL, 0, flags)) and ended.si_pid != pid:
                os.waitpid(ended.si_pid, 0)
    os.close(pin)


def _pass_on(source: int, target: int) -> bool:
    """Copy the available data. False at EOF."""
    with suppress(BlockingIOError):
        while chunk := os.read(source, 65536):
            while chunk:
                chunk = chunk[os.write(target, chunk) :]
        return False
    return True


def _end_orphans() -> None:
    """Kill all descendants: each becomes a child of this process when its parent ends."""
    own = os.getpid()
    while children := [pid for pid, parent in _processes() if parent == own]:
        for pid in children:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def _processes() -> list[tuple[int, int]]:
    """Return the pid and the parent pid of each process, without zombies."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError), open(f"/proc/{name}/stat", "rb") as stat:
            state, parent = stat.read().rpartition(b")")[2].split()[:2]
            if state != b"Z":
                found.append((int(name), int(parent)))
    return found


def _shell_code(code: int) -> int:
    return code if code >= 0 else 128 - code
