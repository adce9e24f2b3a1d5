"""Sandboxes that can no longer be made are never programs that failed."""

from __future__ import annotations

import os
import shutil
import signal
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from fdstore.model import ends
from fdstore.model.pipeline_limits import PipelineLimits
from fdstore_workers.pipeline.bubblewrap import Bubblewrap
from fdstore_workers.pipeline.choose_sandbox import find_sandbox
from fdstore_workers.pipeline.launch_settings import NOT_MADE
from fdstore_workers.pipeline.poll_loop import PipelineResult, PipelineRun
from fdstore_workers.pipeline.process_tree import ProcessSnapshot
from fdstore_workers.pipeline.sandlock_engine import Sandlock
from fdstore_workers.pipeline.unsandboxed import CommandsDisabled
from tests.children import Child
from tests.unit.workers.engines import ALONE, TIGHT, program, run_in, working
from tests.unit.workers.running import pids_of
from tests.waiting import wait_until


def search_in(sandbox: Bubblewrap | Sandlock) -> tuple[PipelineResult, str]:
    """Run a search without matches and return its end and its stderr."""
    run = run_in(sandbox, "grep", "wanted")
    return run.ended, run.errors


def test_a_sandbox_that_bubblewrap_cannot_make_is_not_a_search_that_found_nothing(
    world_readable_dir: Path,
) -> None:
    if "bubblewrap" not in working():
        assert isinstance(find_sandbox(engine="bubblewrap"), CommandsDisabled)
        return
    refusing = f"[ -e {world_readable_dir}/refuse ] && echo 'bwrap: No space left on device' >&2 && exit 1"
    program(world_readable_dir, "bwrap", f'{refusing}\nexec {shutil.which("bwrap")} "$@"')
    sandbox = find_sandbox(
        engine="bubblewrap", limits=TIGHT, search_path=f"{world_readable_dir}:{os.environ['PATH']}"
    )
    assert isinstance(sandbox, Bubblewrap)
    assert search_in(sandbox)[0] == PipelineResult(codes=(1,))

    (world_readable_dir / "refuse").touch()
    ended, errors = search_in(sandbox)

    assert ended == PipelineResult(codes=(NOT_MADE,), reason=ends.SANDBOX)
    assert errors == "bwrap: No space left on device\n"
    (world_readable_dir / "bwrap").unlink()
    assert search_in(sandbox)[0] == ended


@pytest.mark.parametrize("engine", ["bubblewrap", "sandlock", ALONE])
def test_a_sandbox_that_cannot_start_its_program_is_not_a_program_that_failed(engine: str) -> None:
    lost = ["/no/such/prlimit", "--"]
    if engine == "bubblewrap":
        walls = [shutil.which("bwrap") or "/no/such/bwrap", "--unshare-all", "--ro-bind", "/", "/"]
        sandbox: Bubblewrap | Sandlock = Bubblewrap(walls, lost, TIGHT, engine, own_namespaces=False)
    else:
        sandbox = Sandlock(lost, TIGHT, engine, [], own_namespaces=engine != ALONE)

    ended, errors = search_in(sandbox)

    assert ended == PipelineResult(codes=(NOT_MADE,), reason=ends.SANDBOX)
    assert errors


def test_sandlock_without_room_for_scratch_is_not_a_program_that_failed() -> None:
    tight = msgspec.structs.replace(TIGHT, scratch_inodes=-1)
    sandbox = Sandlock([], tight, "sandlock", [], own_namespaces=True)

    ended, errors = search_in(sandbox)

    assert ended == PipelineResult(codes=(NOT_MADE,), reason=ends.SANDBOX)
    assert "no sandbox" in errors


def test_a_launcher_that_is_gone_is_not_a_program_that_was_not_found() -> None:
    ended = PipelineRun(
        [["true"], ["sleep", "600"]],
        output=lambda piece: None,
        error=lambda number, piece: None,
        command=lambda argv: ["/no/such/python", *argv],
        reports=True,
        environment={},
        limits=PipelineLimits(wall_seconds=60.0),
    ).run()

    assert ended == PipelineResult(codes=(NOT_MADE, NOT_MADE), reason=ends.SANDBOX)


@pytest.mark.parametrize("engine", working())
def test_a_stage_without_a_sandbox_ends_the_others(engine: str) -> None:
    sandbox = working()[engine]
    commands = iter([sandbox.wrap, lambda argv: ["/bin/sh", "-c", "exit 1"]])

    ended = PipelineRun(
        [["sleep", "600"], ["cat"]],
        output=lambda piece: None,
        error=lambda number, piece: None,
        command=lambda argv: next(commands)(argv),
        reports=True,
        environment=sandbox.environment,
        limits=PipelineLimits(wall_seconds=60.0),
    ).run()

    assert (ended.codes[1], ended.reason) == (NOT_MADE, ends.SANDBOX)


@pytest.mark.parametrize("engine", working())
def test_a_command_in_the_background_ends_with_any_process_of_its_sandbox(engine: str) -> None:
    seconds = f"600.{os.getpid()}"
    command = ["bash", "-c", f"(setsid sleep {seconds} &); exec sleep {seconds}"]
    killed = 0
    while True:
        sandbox = Child(working()[engine].wrap(command), env=working()[engine].environment)
        try:
            wait_until(lambda: len(pids_of("sleep", seconds)) == 2)
            makers = processes_of(sandbox.pid) - pids_of("sleep", seconds)
            if killed == len(makers):
                break

            os.kill(sorted(makers)[killed], signal.SIGKILL)

            wait_until(lambda: not pids_of("sleep", seconds))
            killed += 1
        finally:
            for pid in {*processes_of(sandbox.pid), *pids_of("sleep", seconds)}:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            sandbox.wait()
    assert killed


def processes_of(pid: int) -> set[int]:
    """Return a process and its descendants."""
    return {pid, *(process.pid for process in ProcessSnapshot().below(pid))}
