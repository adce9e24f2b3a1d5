"""Refusals of the sandbox to a program that breaks out of the interpreter; a shell is in its place here."""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fdstore.programs.interpreter import confinement, pool
from fdstore.programs.interpreter.confinement import Engine
from fdstore.programs.interpreter.events import Finished
from fdstore.programs.interpreter.session import Session
from tests.waiting import wait_until

SANDBOXES: tuple[Engine, ...] = ("bubblewrap", "landlock")
MEMORY = 256 << 20


def run(engine: Engine, script: str) -> str:
    """Return what a script of the shell's own commands prints in the interpreter's place, errors included."""
    shell = shutil.which("bash") or "/bin/sh"
    path = confinement.binary_path(engine, MEMORY, program=shell)
    assert path is not None
    try:
        done = subprocess.run([path, "-c", script], capture_output=True, text=True, timeout=30, check=False)
    finally:
        os.close(int(path.rpartition("/")[2]))
    return done.stdout + done.stderr


@pytest.fixture
def engines() -> list[Engine]:
    """The engines of this machine."""
    return [engine for engine in (*SANDBOXES, "limits") if confinement.works(engine)]


@pytest.fixture
def sandboxes(engines: list[Engine]) -> list[Engine]:
    return [engine for engine in engines if engine in SANDBOXES]


@pytest.fixture
def listener() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_the_first_engine_that_works_is_described(engines: list[Engine]):
    assert confinement.find_engine() == engines[0]
    assert confinement.describe() == confinement.DESCRIPTIONS[engines[0]]
    assert "\n" not in confinement.describe()


def test_an_interpreter_runs_under_each_engine(engines: list[Engine], monkeypatch: pytest.MonkeyPatch):
    for engine in engines:
        monkeypatch.setattr(confinement, "find_engine", lambda engine=engine: engine)
        monkeypatch.setattr(pool, "_pools", pool.Pools())
        with Session() as session:
            assert session.feed("import re, json, datetime, decimal\nlen('x' * 10 ** 8)") == Finished(
                "100000000"
            )
            assert len(session.dump()) > 0


def test_files_are_not_read(sandboxes: list[Engine], tmp_path: Path):
    secret = tmp_path / "secret"
    secret.write_text("the secret")
    secret.chmod(0o644)

    for engine in sandboxes:
        for path in (secret, "/etc/passwd", "/proc/self/environ", "/proc/1/cmdline", "/dev/kmsg"):
            assert "got:\n" in run(engine, f"read -r x < {path}; echo got:$x"), (engine, path)
        assert "secret" not in run(engine, f"echo {tmp_path}/* /home/* /proc/*/exe").replace(
            str(tmp_path), ""
        )


def test_files_are_not_written(sandboxes: list[Engine], tmp_path: Path):
    for engine in sandboxes:
        target, system = tmp_path / engine, Path("/usr/lib", f"{tmp_path.name}-{engine}")
        run(engine, f"echo text > {target}; echo text > {system}")

        assert not target.exists() or target.read_text() == ""
        assert not system.exists()


def test_no_program_is_started(sandboxes: list[Engine]):
    for engine in sandboxes:
        assert "uid=" not in run(engine, "exec /usr/bin/id")
        assert "uid=" not in run(engine, "exec /bin/busybox id")


def test_the_network_is_not_reached(engines: list[Engine], listener: int):
    script = f"exec 3<>/dev/tcp/127.0.0.1/{listener} && echo reached"

    for engine in engines:
        reached = "reached" in run(engine, script)
        assert reached == (engine == "limits" and shutil.which("bash") is not None)


def test_the_environment_is_empty(engines: list[Engine], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "the key")

    for engine in engines:
        assert "the key" not in run(engine, "set; export")


def test_no_descriptor_is_inherited(engines: list[Engine]):
    low, high = os.pipe()
    os.set_inheritable(high, True)
    far = fcntl.fcntl(low, fcntl.F_DUPFD, 77)  # a number that nothing else of this process has
    try:
        for engine in engines:
            path = confinement.binary_path(engine, MEMORY, program=shutil.which("bash") or "/bin/sh")
            assert path is not None
            script = f"for n in {high} {far}; do if : <&$n; then echo open:$n; fi; done"
            done = subprocess.run(
                [path, "-c", script], capture_output=True, text=True, close_fds=False, timeout=30, check=False
            )
            os.close(int(path.rpartition("/")[2]))
            assert "open:" not in done.stdout, engine
    finally:
        for number in (low, high, far):
            os.close(number)


def test_other_processes_are_not_signalled(sandboxes: list[Engine]):
    with subprocess.Popen(["sleep", "100"]) as other:
        try:
            for engine in sandboxes:
                run(engine, f"kill -9 {other.pid}; kill -9 $PPID")
            assert other.poll() is None
        finally:
            other.kill()


def test_limits_are_set(engines: list[Engine]):
    for engine in engines:
        words = run(engine, "ulimit -c; ulimit -f; ulimit -n; ulimit -d").split()
        assert words == ["0", "0", "64", str((4 * MEMORY + (1 << 30)) // 1024)], engine


def test_privileges_cannot_be_gained(sandboxes: list[Engine]):
    with Session() as session:
        status = Path(f"/proc/{session._process.session.worker_pid}/status").read_text()

    if sandboxes:
        assert "NoNewPrivs:\t1" in status


def test_an_interpreter_ends_with_its_host():
    code = (
        "import os, signal\nfrom fdstore.programs.interpreter.session import Session\nsession = Session()\n"
        "print(session._process.session.worker_pid, flush=True)\nos.kill(os.getpid(), signal.SIGKILL)"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )

    wait_until(lambda: not Path(f"/proc/{int(done.stdout)}").exists())


def test_the_filter_of_system_calls_is_whole():
    for machine in ("x86_64", "aarch64"):
        filter = confinement.system_call_filter(machine)
        assert filter is not None
        assert len(filter) // 8 < 4096
    assert confinement.system_call_filter("riscv64") is None
