"""One table of probes that every sandbox passes: what a command must not reach, tried by system calls.

Each engine that works here runs `probes.pl` once; each probe is a test. A difference between engines is
listed in `DIFFERENCES`, and the worker must say so.
"""

from __future__ import annotations

import ctypes
import os
import platform
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.children import Child
from tests.unit.workers.engines import run_in, working
from tests.unit.workers.probes import DIFFERENCES, NEEDED, NUMBERS, PROBES, REACHED, REFUSED
from tests.waiting import PATIENCE_S

NOBODY = 65534
PERL = Path(__file__).with_name("probes.pl").read_text()

AS_NOBODY: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}


@contextmanager
def host() -> Iterator[dict[str, object]]:
    """Targets that commands must not reach, accessible to all users or to the user of the commands."""
    user = NOBODY if os.geteuid() == 0 else os.geteuid()
    with ExitStack() as stack, tempfile.TemporaryDirectory() as name:
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
        stack.callback(
            os.close, libc.mq_open(f"/{at['queue']}".encode(), os.O_CREAT | os.O_RDWR, 0o666, None)
        )
        os.umask(before)
        stack.callback(libc.mq_unlink, f"/{at['queue']}".encode())
        shared_file = Path(f"/dev/shm/{at['queue']}")
        stack.callback(shared_file.unlink, missing_ok=True)  # without a sandbox the probe makes it
        at["shared_file"] = shared_file
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


@pytest.mark.parametrize("what", ["", "the disk of "])
def test_slowing_down_all_processes_of_a_user_is_refused_by_the_filter(engine: str, what: str) -> None:
    """Not only for want of it in this kernel."""
    assert answers(engine)[f"slow down {what}all processes of this user"] == "EPERM"


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
            timeout=PATIENCE_S,
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
