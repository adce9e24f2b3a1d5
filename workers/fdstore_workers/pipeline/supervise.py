"""One command under sandlock, whose supervisor is a thread of this process; it ends as the program does.

    in namespaces   launcher -> its child, the first process of a namespace of pids -> the program
    alone           launcher -> the program; the launcher kills what the program left behind

The exit code is the program's, 128+n for signal n.
"""

from __future__ import annotations

import errno
import os
import select
import signal
from contextlib import suppress
from typing import Any

from fdstore_workers.pipeline import kernel, namespaces, syscall_filter
from fdstore_workers.pipeline.launch import NOT_MADE, STARTED, Settings, end_with, report, scratch

WORKER_ENDED = signal.SIGHUP
"""What the system is asked to send when the worker ends and this process has to end its command first."""


def run(settings: Settings, program: list[str]) -> int:
    """Run the program to its end and return its exit code."""
    apart = settings["apart"] == ["1"]
    # sandlock does not load without a home; it may lie where only root reads, so it is loaded first
    os.environ["HOME"] = "/work" if apart else "/nonexistent"
    import sandlock

    if not apart:
        namespaces.become_nobody()
        return _supervise(sandlock, settings, program)
    namespaces.enter_all(*scratch(settings), settings.get("private", []))
    end_with(settings, signal.SIGKILL)
    alive, held = os.pipe()
    first = os.fork()
    if first:
        os.close(alive)
        _, status = os.waitpid(first, 0)
        return _shell_code(os.waitstatus_to_exitcode(status))
    os.close(held)
    kernel.die_with_parent(signal.SIGKILL)
    if select.select([alive], [], [], 0)[0]:
        os._exit(NOT_MADE)  # the parent ended before it could be asked for
    namespaces.enter_root()
    return _supervise(sandlock, settings, program)


def _supervise(sandlock: Any, settings: Settings, program: list[str]) -> int:
    """Run the program below this process; how it ended."""
    apart = settings["apart"] == ["1"]
    hear, tell = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(tell, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, WORKER_ENDED):
        # a handler and not SIG_IGN, which the program would inherit
        signal.signal(number, lambda *_: None)
    if not apart:
        kernel.adopt_orphans()
        end_with(settings, WORKER_ENDED)
    box = sandlock.Sandbox(**_policy(sandlock, settings))
    kernel.drop_capabilities()
    code = syscall_filter.make(sockets=False, attributes=apart, supervised=True)
    if code is not None:
        kernel.filter_system_calls(code)
    if not os.access(program[0], os.X_OK):
        # sandlock would give the code of a shell, as the program might
        raise FileNotFoundError(errno.ENOENT, "it cannot be started", program[0])
    errors = os.dup(2)
    notes = os.memfd_create("notes")
    os.dup2(notes, 2)  # sandlock tells its own troubles there, which are none of the program's
    try:
        # through a pipe, since what is inherited would be `notes`
        process = box.popen(program, stderr=sandlock.StdioMode.PIPED)
    except RuntimeError as error:
        os.dup2(errors, 2)
        said = os.pread(notes, 4096, 0).decode("utf-8", "replace").strip()
        raise OSError(said or str(error)) from error
    report(settings["status"][0], STARTED)
    try:
        _wait(process.pid, hear, process.stderr.fileno(), errors)
    finally:
        if not apart:  # else they end with the namespace, whose first process this is
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
    devices = [f"/dev/{device}" for device in namespaces.DEVICES]
    if settings["apart"] == ["1"]:
        # the namespaces do what Landlock of an older system does not
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


def _wait(pid: int, hear: int, errors: int, out: int) -> None:
    """Return when the process has ended. Pass on its errors and reap what it left behind meanwhile."""
    os.set_blocking(errors, False)
    try:
        pin = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    poll = select.poll()
    for fd in (pin, hear, errors):
        poll.register(fd, select.POLLIN)
    while pin not in (ready := [fd for fd, _ in poll.poll()]):
        if errors in ready and not _pass_on(errors, out):
            poll.unregister(errors)
        if hear in ready and WORKER_ENDED in os.read(hear, 4096):
            signal.pidfd_send_signal(pin, signal.SIGKILL)
        with suppress(ChildProcessError):
            # WNOWAIT: the end of the process itself is for sandlock to fetch
            flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
            while (ended := os.waitid(os.P_ALL, 0, flags)) and ended.si_pid != pid:
                os.waitpid(ended.si_pid, 0)
    os.close(pin)


def _pass_on(source: int, target: int) -> bool:
    """Write what there is to be read; False at the end."""
    with suppress(BlockingIOError):
        while piece := os.read(source, 65536):
            while piece:
                piece = piece[os.write(target, piece) :]
        return False
    return True


def _end_orphans() -> None:
    """Kill every descendant: each becomes a child of this process when its parent ends."""
    own = os.getpid()
    while children := [pid for pid, parent in _processes() if parent == own]:
        for pid in children:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def _processes() -> list[tuple[int, int]]:
    """Each process that is no zombie, and its parent."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError), open(f"/proc/{name}/stat", "rb") as stat:
            state, parent = stat.read().rpartition(b")")[2].split()[:2]
            if state != b"Z":
                found.append((int(name), int(parent)))
    return found


def _shell_code(code: int) -> int:
    return code if code >= 0 else 128 - code
