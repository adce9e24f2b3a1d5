"""One table of probes that every sandbox passes: what a command must not reach, tried by system calls.

Each engine that works here runs `probes.pl` once; each probe is a test. A difference between engines is
listed in `DIFFERENCES`, and the worker must say so.
"""

from __future__ import annotations

import ctypes
import os
import platform
import pty
import resource
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fdstore_workers.pipeline.bubblewrap import Bubblewrap
from fdstore_workers.pipeline.launch import NOT_MADE
from fdstore_workers.pipeline.process_tree import ProcessSnapshot
from fdstore_workers.pipeline.sandlock_engine import Sandlock
from tests.children import Child
from tests.unit.workers.engines import ALONE, ENGINES, TIGHT, run_in, working

NOBODY = 65534
PERL = Path(__file__).with_name("probes.pl").read_text()

REFUSED = {"EPERM", "EACCES", "ENOENT", "ENOSYS", "ESRCH", "EROFS", "EXDEV", "ENOTDIR", "EBADF", "EMPTY"}
REFUSED |= {"ECONNREFUSED", "ENETUNREACH", "EAFNOSUPPORT", "EPROTONOSUPPORT", "ENODEV", "ENXIO", "EIO"}

PROBES = (
    "inherit descriptors",
    "read a file that all may read",
    "write a file that all may write",
    "create a file in a directory that all may write",
    "list a directory that all may list",
    "ask for a file's size",
    "truncate",
    "remove",
    "rename into scratch",
    "hard link into scratch",
    "follow a symbolic link out of scratch",
    "change the mode of a file of this user",
    "change the times of a file of this user",
    "set an attribute of a file of this user",
    "read /etc/passwd",
    "read /etc/shadow",
    "read the worker's configuration",
    "list /root",
    "list /home",
    "list /var",
    "list /run",
    "list /sys",
    "list the worker's directory",
    "write below /usr",
    "write to /dev/shm",
    "write to the root",
    "read /proc/kcore",
    "read /dev/kmsg",
    "read /dev/mem",
    "write /proc/sys",
    "write /proc/sysrq-trigger",
    "make a device",
    "use a disk by its number",
    "open the terminal",
    "read the environment of the worker",
    "read the environment of a process of this user",
    "read the arguments of a process of this user",
    "read the memory of a process of this user",
    "see the root of a process of this user",
    "see the files of a process of this user",
    "read the environment of the first process",
    "signal the worker",
    "signal a process of this user",
    "signal it by a descriptor",
    "take a descriptor of it",
    "trace a process of this user",
    "read memory by a call",
    "write memory by a call",
    "compare with a process of this user",
    "change limits of a process of this user",
    "slow down a process of this user",
    "move a process of this user",
    "connect by TCP",
    "connect by multipath TCP",
    "connect to a unix socket",
    "connect to an abstract unix socket",
    "send by UDP",
    "send to a unix socket",
    "send from one of a pair",
    "raw socket",
    "packet socket",
    "vsock",
    "kernel crypto socket",
    "see the host's network interfaces",
    "user namespace by unshare",
    "user namespace by clone",
    "user namespace by clone3",
    "mount",
    "unmount",
    "open a file system",
    "change the root by pivot_root",
    "change the root by chroot",
    "become root",
    "choose groups",
    "load a module",
    "load a kernel",
    "restart the machine",
    "read the kernel's log",
    "set the time",
    "set the hostname",
    "read the session keyring",
    "add a key",
    "find the worker's key",
    "io_uring",
    "bpf",
    "performance events",
    "page faults",
    "watch a file system",
    "name a file by a handle",
    "a message queue of the host",
    "shared memory of the host",
    "the x32 interface",
    "another personality",
    "memory of the machine by ports",
    "inherit the environment",
    "gain by a setuid program",
    "have capabilities",
)

NEEDED = (
    "read /dev/zero",
    "read /dev/urandom",
    "read /dev/random",
    "write /dev/null",
    "read /usr",
    "pipe to a child",
    "use a pair",
)
"""What filters of text need, so no sandbox may refuse it."""

REACHED = (
    "read a file that all may read",
    "write a file that all may write",
    "create a file in a directory that all may write",
    "list a directory that all may list",
    "ask for a file's size",
    "truncate",
    "remove",
    "change the mode of a file of this user",
    "change the times of a file of this user",
    "set an attribute of a file of this user",
    "read /etc/passwd",
    "list /sys",
    "read the environment of a process of this user",
    "read the arguments of a process of this user",
    "signal a process of this user",
    "signal it by a descriptor",
    "change limits of a process of this user",
    "slow down a process of this user",
    "move a process of this user",
    "connect by TCP",
    "connect to a unix socket",
    "connect to an abstract unix socket",
    "send by UDP",
    "send to a unix socket",
    "send from one of a pair",
    "shared memory of the host",
    "another personality",
    "inherit descriptors",
    "inherit the environment",
    "gain by a setuid program",
)
"""What succeeds without a sandbox on any machine, in a container too."""

DIFFERENCES = {
    # engine: probe: the engine's description of the gap
    ALONE: {
        "ask for a file's size": "can learn that a file exists and how large it is by its path",
        "write to scratch": "there is no scratch, nothing can be written",
        "start threads": "threads are not counted",
    },
}

NUMBERS = {
    # x86_64, aarch64
    "add_key": (248, 217),
    "bpf": (321, 280),
    "capget": (125, 90),
    "chroot": (161, 51),
    "clock_settime": (227, 112),
    "clone": (56, 220),
    "clone3": (435, 435),
    "fanotify_init": (300, 262),
    "fsopen": (430, 430),
    "init_module": (175, 105),
    "io_uring_setup": (425, 425),
    "ioperm": (173, None),
    "kcmp": (312, 272),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "mknod_null": (133, None),
    "mount": (165, 40),
    "mq_open": (240, 180),
    "name_to_handle_at": (303, 264),
    "perf_event_open": (298, 241),
    "personality": (135, 92),
    "pidfd_getfd": (438, 438),
    "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424),
    "pivot_root": (155, 41),
    "prctl": (157, 167),
    "prlimit64": (302, 261),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "sched_setaffinity": (203, 122),
    "setgroups": (116, 159),
    "sethostname": (170, 161),
    "setpriority": (141, 140),
    "setuid": (105, 146),
    "setxattr": (188, 5),
    "shmget": (29, 194),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
    "x32_getpid": (0x40000000 + 39, None),
}


AS_NOBODY: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}


@contextmanager
def host() -> Iterator[dict[str, object]]:
    """Targets that commands must not reach, accessible to all users or to the user of the commands."""
    user = NOBODY if os.geteuid() == 0 else os.geteuid()
    with ExitStack() as stack, tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o777)
        open_dir = folder / "open"
        open_dir.mkdir()
        open_dir.chmod(0o777)
        at: dict[str, object] = {"open_dir": open_dir, "cwd": Path.cwd(), "cwd_file": "pyproject.toml"}
        at["cwd_file"] = Path.cwd() / "pyproject.toml"
        for key in ("file", "open_file", "own_file"):
            path = (open_dir if key == "open_file" else folder) / key
            path.write_text("secret")
            path.chmod(0o666)
            at[key] = path
        os.chown(folder / "own_file", user, -1)

        sleeper = Child(["sleep", "600"], env={"SECRET": "hidden"}, **AS_NOBODY)
        stack.callback(sleeper.wait)
        stack.callback(sleeper.kill)
        at |= {"pid": sleeper.pid, "worker": os.getpid()}

        for key, family, kind in (
            ("tcp", socket.AF_INET, socket.SOCK_STREAM),
            ("udp", socket.AF_INET, socket.SOCK_DGRAM),
        ):
            bound = stack.enter_context(socket.socket(family, kind))
            bound.bind(("127.0.0.1", 0))
            at[key] = bound.getsockname()[1]
            if kind == socket.SOCK_STREAM:
                bound.listen()
        for key, kind in (("unix", socket.SOCK_STREAM), ("unix_datagram", socket.SOCK_DGRAM)):
            bound = stack.enter_context(socket.socket(socket.AF_UNIX, kind))
            at[key] = folder / key
            bound.bind(str(at[key]))
            (folder / key).chmod(0o777)
            if kind == socket.SOCK_STREAM:
                bound.listen()
        abstract = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        at["abstract"] = f"fdstore-probe-{os.getpid()}"
        abstract.bind(f"\0{at['abstract']}")
        abstract.listen()
        at["interface"] = next((name for _, name in socket.if_nameindex() if name != "lo"), "lo0")

        libc = ctypes.CDLL(None, use_errno=True)
        segment = libc.shmget(0x5EC12E7 + os.getpid(), 4096, 0o1666)
        stack.callback(libc.shmctl, segment, 0, None)
        at["shm"] = 0x5EC12E7 + os.getpid()
        at["queue"] = f"fdstore-probe-{os.getpid()}"
        before = os.umask(0)
        libc.mq_open(f"/{at['queue']}".encode(), os.O_CREAT | os.O_RDWR, 0o666, None)
        os.umask(before)
        stack.callback(libc.mq_unlink, f"/{at['queue']}".encode())
        at["key"] = "fdstore-probe"
        inherited = stack.enter_context(open(folder / "file"))
        os.set_inheritable(inherited.fileno(), True)
        at["inherited"] = inherited.fileno()
        column = ("x86_64", "aarch64").index(platform.machine())
        at |= {f"nr_{name}": both[column] for name, both in NUMBERS.items() if both[column] is not None}
        yield at


@cache
def answers(engine: str) -> dict[str, str]:
    """Return the result of each probe."""
    with host() as at:
        told = "".join(f"{name} {value}\n" for name, value in at.items())
        os.environ["SECRET"] = "hidden"
        try:
            said = run_in(working()[engine], "perl", "-e", PERL, stdin=told.encode())
        finally:
            del os.environ["SECRET"]
    assert said.ended.codes == (0,), said
    pairs = (line.rsplit(" ", 1) for line in said.output.splitlines())
    return dict(pairs)


@pytest.fixture(params=[engine for engine in ENGINES if engine in working()])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def sandbox(engine: str) -> Bubblewrap | Sandlock:
    return working()[engine]


@pytest.mark.parametrize("probe", PROBES)
def test_a_command_cannot(engine: str, probe: str) -> None:
    answer = answers(engine)[probe]

    if (said := DIFFERENCES.get(engine, {}).get(probe)) is None:
        assert answer in REFUSED
    else:
        assert answer == "done"
        assert said in working()[engine].describe()


@pytest.mark.parametrize("probe", NEEDED)
def test_a_command_can(engine: str, probe: str) -> None:
    assert answers(engine)[probe] == "done"


def test_the_table_names_every_probe(engine: str) -> None:
    assert set(answers(engine)) == {*PROBES, *NEEDED}


def test_without_a_sandbox_the_probes_reach_the_host() -> None:
    """Else a probe that never works would pass everywhere."""
    with host() as at:
        told = "".join(f"{name} {value}\n" for name, value in at.items())
        ran = subprocess.run(
            ["perl", "-e", PERL],
            input=told,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=30,
            cwd="/",
            pass_fds=[int(str(at["inherited"]))],
            env={"SECRET": "hidden", "PATH": "/usr/bin:/bin"},
            **AS_NOBODY,
        )
    reached = {line.removesuffix(" done") for line in ran.stdout.splitlines() if line.endswith(" done")}

    assert {*NEEDED, *REACHED} <= reached


def test_at_least_one_sandbox_works_here_and_each_that_is_expected_does() -> None:
    expected = set(filter(None, os.environ.get("FDSTORE_TEST_SANDBOXES", "").split(",")))

    assert working(), "no commands can run here: install bubblewrap or sandlock"
    assert expected <= set(working())


def bash(script: str) -> tuple[str, str, str]:
    return "bash", "-c", script


def test_scratch_is_bounded_in_bytes_and_in_files(engine: str, sandbox: Bubblewrap | Sandlock) -> None:
    if "write to scratch" in DIFFERENCES.get(engine, {}):
        said = run_in(
            sandbox, *bash("for d in / /tmp /work /dev/shm $HOME; do echo x >$d/f && echo wrote; done")
        )

        assert said.output == ""
        assert DIFFERENCES[engine]["write to scratch"] in sandbox.describe()
        return
    said = run_in(sandbox, "perl", "-e", FILL)

    expected = (
        f"{TIGHT.scratch_bytes >> 20} MiB, {TIGHT.scratch_inodes - 1} directories, No space left on device\n"
    )
    assert said.output == expected * 2


FILL = """
for my $place ("/work", "/tmp") {
    my $written = 0;
    # none of them may be larger than 8 MiB
    for my $file (1 .. 4) {
        open(my $out, ">", "$place/$file") or last;
        for (1 .. 7) { syswrite($out, "x" x (1 << 20)) == 1 << 20 or last; $written++ }
    }
    unlink glob "$place/*";
    my $made = 0;
    for (1 .. 1000) { mkdir "$place/$_" or last; $made++ }
    print "$written MiB, $made directories, $!\n";
}
"""


def test_the_number_of_processes_is_bounded(engine: str, sandbox: Bubblewrap | Sandlock) -> None:
    # the calls themselves: a C library may use another one
    for call in ("fork", "syscall(57)") if platform.machine() == "x86_64" else ("fork",):
        child = "my $p = CALL; last if !defined $p || $p < 0; if (!$p) { sleep 5; exit } print 1"
        bomb = f"for (1 .. 400) {{ {child.replace('CALL', call)} }}"

        said = run_in(sandbox, "perl", "-e", f"$| = 1; {bomb}")

        assert said.ended.codes == (0,), said.errors
        assert TIGHT.processes - 4 <= len(said.output) < TIGHT.processes


def test_the_number_of_threads_is_bounded(engine: str, sandbox: Bubblewrap | Sandlock) -> None:
    here, _ = resource.getrlimit(resource.RLIMIT_NPROC)

    limit = run_in(sandbox, *bash("ulimit -u")).output.strip()

    if said := DIFFERENCES.get(engine, {}).get("start threads"):
        assert limit == ("unlimited" if here == resource.RLIM_INFINITY else str(here))
        assert said in sandbox.describe()
    else:
        assert f"{limit} {'processes' if engine == 'bubblewrap' else 'threads'}" in sandbox.describe()


def test_a_fork_bomb_ends_with_its_stage(sandbox: Bubblewrap | Sandlock) -> None:
    said = run_in(sandbox, *bash("b() { b | b & b; }; b"), kill_at_output=True, grace_s=0.2)

    assert said.ended.reason == "cancelled"
    assert "Resource temporarily unavailable" in said.errors
    assert ProcessSnapshot().below(os.getpid()) == []


def test_memory_time_files_and_cores_are_bounded(sandbox: Bubblewrap | Sandlock) -> None:
    limits = run_in(sandbox, *bash("ulimit -v; ulimit -t; ulimit -f; ulimit -n; ulimit -c; ulimit -n 1000"))
    memory = run_in(sandbox, "perl", "-e", "my $x = 'x' x (1 << 30); print 'got it'")
    time = run_in(sandbox, *bash("while :; do :; done"))

    expected = [TIGHT.memory_bytes // 1024, TIGHT.cpu_s, TIGHT.file_bytes // 1024, TIGHT.open_files, 0]
    assert [int(word) for word in limits.output.split()] == expected
    assert limits.ended.code != 0
    assert (memory.output, memory.ended.code != 0) == ("", True)
    assert time.ended.codes == (152,)  # XCPU


def test_input_cannot_be_injected_into_a_terminal(sandbox: Bubblewrap | Sandlock) -> None:
    master, slave = pty.openpty()
    ran = subprocess.run(
        sandbox.wrap(["perl", "-e", "my $c = 'x'; print ioctl(STDIN, 0x5412, $c) ? 'typed' : 'refused'"]),
        stdin=slave,
        stdout=subprocess.PIPE,
        env=sandbox.environment,
        start_new_session=True,
        timeout=30,
        check=False,
    )
    os.close(slave)
    os.close(master)

    assert ran.stdout == b"refused"


def test_a_command_has_a_session_keyring_of_its_own() -> None:
    """Independent of any later system call filter."""
    ids = [
        "import ctypes; from fdstore_workers.pipeline import kernel",
        "libc = ctypes.CDLL(None); number = kernel._NR_KEYCTL",
        "before = libc.syscall(number, 0, -3, 1); kernel.join_new_session_keyring()",
        "after = libc.syscall(number, 0, -3, 0); print(before > 0, after > 0, before != after)",
    ]

    ran = subprocess.run(
        [sys.executable, "-c", "; ".join(ids)], stdout=subprocess.PIPE, text=True, timeout=30
    )

    assert ran.stdout == "True True True\n"


def test_a_sandbox_that_cannot_be_made_has_a_code_of_its_own(sandbox: Bubblewrap | Sandlock) -> None:
    unfit = {"scratch_bytes": "none", "readable": "/no/such/place"}

    def spoilt(word: str) -> str:
        name = word.split("=")[0]
        return f"{name}={unfit[name]}" if name in unfit else word

    command = [spoilt(word) for word in sandbox.wrap(["true"])]

    ran = subprocess.run(
        command, env=sandbox.environment, stderr=subprocess.PIPE, text=True, timeout=30, check=False
    )

    assert (ran.returncode, "fdstore: no sandbox: " in ran.stderr) == (NOT_MADE, True)
