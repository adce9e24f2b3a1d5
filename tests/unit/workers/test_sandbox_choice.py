"""The sandbox that is used, and the messages if there is none."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fdstore_workers.pipeline.bubblewrap import Bubblewrap
from fdstore_workers.pipeline.choose_sandbox import find_sandbox
from fdstore_workers.pipeline.command_limits import CommandsOff
from fdstore_workers.pipeline.poll_loop import PipelineRun
from fdstore_workers.pipeline.process_tree import ProcessSnapshot
from fdstore_workers.pipeline.sandlock_engine import Sandlock
from fdstore_workers.pipeline.unsandboxed import CommandsDisabled, Unsandboxed
from tests.children import Child
from tests.unit.workers.engines import ALONE, TIGHT, program, run_in, working
from tests.waiting import PATIENCE_S, wait_until


def test_without_bubblewrap_commands_are_off_and_say_why(tmp_path: Path) -> None:
    refused = find_sandbox(engine="bubblewrap", search_path=str(tmp_path))

    assert isinstance(refused, CommandsDisabled)
    with pytest.raises(CommandsOff, match=r"bwrap \(bubblewrap\) is not installed.*--unsandboxed-commands"):
        refused.wrap(["true"])
    assert "not installed" in refused.describe()


def test_a_refused_pipeline_starts_nothing(tmp_path: Path) -> None:
    refused = find_sandbox(engine="bubblewrap", search_path=str(tmp_path))

    with pytest.raises(CommandsOff):
        PipelineRun(
            [["touch", str(tmp_path / "started")]],
            output=lambda piece: None,
            error=lambda number, piece: None,
            command=refused.wrap,
            environment=refused.environment,
        )

    assert not list(tmp_path.iterdir())


def test_an_old_bubblewrap_is_refused_by_what_it_lacks(tmp_path: Path) -> None:
    program(tmp_path, "bwrap", "[ $1 = --version ] && echo bubblewrap 0.4.1; echo '--unshare-all --tmpfs'")

    assert "bubblewrap 0.4.1" in find_sandbox(engine="bubblewrap", search_path=str(tmp_path)).describe()
    assert "0.8 or later" in find_sandbox(engine="bubblewrap", search_path=str(tmp_path)).describe()


def test_a_bubblewrap_that_may_not_make_namespaces_is_refused_in_its_own_words(
    world_readable_dir: Path,
) -> None:
    program(
        world_readable_dir,
        "bwrap",
        "case $1 in --version) echo bubblewrap 0.9.0;;\n"
        "--help) echo --clearenv --size --disable-userns --seccomp;;\n"
        "*) echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1;; esac",
    )

    told = find_sandbox(
        engine="bubblewrap", search_path=f"{world_readable_dir}:{os.environ['PATH']}"
    ).describe()

    assert (
        "bubblewrap 0.9.0 cannot create a sandbox here (bwrap: setting up uid map: Permission denied)" in told
    )


def test_if_only_bubblewrap_may_create_namespaces_it_is_used_and_the_gaps_are_described(
    world_readable_dir: Path,
) -> None:
    real = shutil.which("bwrap") or "no-bwrap"
    program(world_readable_dir, "bwrap", f'case "$*" in *\'--bind /sys/\'*) exit 1;; esac; exec {real} "$@"')

    alone = find_sandbox(
        engine="bubblewrap", limits=TIGHT, search_path=f"{world_readable_dir}:{os.environ['PATH']}"
    )

    if "bubblewrap" not in working():
        assert isinstance(alone, CommandsDisabled)
        return
    assert isinstance(alone, Bubblewrap)
    assert run_in(alone, "echo", "hello").output == "hello\n"
    assert "files there are not counted" in alone.describe()
    assert "a command can write to what is mounted below /usr while it runs" in alone.describe()
    assert "mounted below /usr" not in working()["bubblewrap"].describe()


def test_the_operator_names_the_sandbox(tmp_path: Path) -> None:
    for engine in ("bubblewrap", "sandlock"):
        if engine in working():
            assert f"run in {engine}" in find_sandbox(engine=engine).describe()

    assert (
        find_sandbox(engine="off").describe()
        == "commands are off on this worker: it was started with --sandbox off"
    )


def test_without_bubblewrap_commands_run_in_sandlock(tmp_path: Path) -> None:
    instead = find_sandbox(search_path=str(tmp_path))

    if {"sandlock", ALONE} & set(working()):
        assert isinstance(instead, Sandlock)
        assert run_in(instead, "echo", "hello").output == "hello\n"
    else:
        assert "sandlock" in instead.describe()


CONTAINER = """
import ctypes
from fdstore_workers.pipeline import kernel, syscall_filter
from fdstore_workers.pipeline.choose_sandbox import find_sandbox
from tests.unit.workers.engines import run_in
ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS, which a filter wants
kernel.filter_system_calls(syscall_filter.make(sockets=True, attributes=True, supervised=True))
sandbox = find_sandbox()
print(sandbox.describe())
print(run_in(sandbox, "echo", "hello").output)
"""


@pytest.mark.parametrize("engine", [engine for engine in working() if engine == ALONE])
def test_without_namespaces_as_in_a_container_commands_run_in_sandlock_alone(
    engine: str,
) -> None:
    command = [sys.executable, "-c", CONTAINER]

    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=True).stdout

    assert "this system allows no namespaces: there is no scratch" in said
    assert said.endswith("hello\n\n")


def test_without_a_sandbox_the_operator_may_allow_commands_and_is_warned(
    tmp_path: Path,
) -> None:
    allowed = find_sandbox(engine="bubblewrap", search_path=str(tmp_path), allow_unsandboxed=True)

    assert isinstance(allowed, Unsandboxed)
    assert "WITHOUT a sandbox" in allowed.describe()
    assert "bwrap (bubblewrap) is not installed" in allowed.describe()
    assert "prlimit (util-linux) is missing" in allowed.describe()
    assert run_in(allowed, "sh", "-c", "echo $HOME").output == "/nonexistent\n"


WORKER_WITHOUT = """
import sys
from fdstore_workers.pipeline.choose_sandbox import Engine, Sandbox, find_sandbox
from fdstore_workers.pipeline.sandlock_engine import Sandlock, find_sandlock
from fdstore_workers.pipeline.poll_loop import PipelineRun
without = find_sandbox(engine="bubblewrap", allow_unsandboxed=True, search_path=sys.argv[1])
PipelineRun(
    [["sh", "-c", "echo begun; exec sleep 987"]],
    output=lambda piece: print(piece.decode(), flush=True),
    error=lambda number, piece: None,
    command=without.wrap,
    environment=without.environment,
).run()
"""


def test_commands_without_a_sandbox_end_with_a_worker_that_is_killed(tmp_path: Path) -> None:
    setpriv = shutil.which("setpriv")
    assert setpriv, "setpriv (util-linux, which every Debian has) is needed"
    (tmp_path / "setpriv").symlink_to(setpriv)
    arguments = [sys.executable, "-c", WORKER_WITHOUT, str(tmp_path)]
    with Child(arguments, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout
        assert worker.stdout.readline() == "begun\n"
        below = ProcessSnapshot().below(worker.pid)

        worker.kill()

    assert len(below) == 1
    wait_until(lambda: not any(Path(f"/proc/{process.pid}").exists() for process in below))


def test_commands_without_a_sandbox_have_limits_where_they_can_be_set() -> None:
    unsandboxed = Unsandboxed("so", TIGHT, "/usr/bin/prlimit" if Path("/usr/bin/prlimit").exists() else None)

    said = run_in(unsandboxed, "sh", "-c", "ulimit -n")

    assert said.output == "64\n" or "no limits" in unsandboxed.describe()


def test_allowing_unsandboxed_commands_does_not_turn_a_sandbox_off() -> None:
    assert isinstance(find_sandbox(allow_unsandboxed=True), type(find_sandbox()))
