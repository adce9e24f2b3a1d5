"""The sandboxes that work on this machine, and a run of one command in one of them.

bubblewrap            namespaces
sandlock              namespaces, and Landlock in them
sandlock, no namespaces   Landlock alone, as in most containers
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from fdstore.model.pipeline_limits import PipelineLimits
from fdstore.model.records import Record
from fdstore_workers.pipeline.bubblewrap import Bubblewrap
from fdstore_workers.pipeline.choose_sandbox import HIDDEN, find_sandbox
from fdstore_workers.pipeline.command_limits import CommandLimits, CommandsOff
from fdstore_workers.pipeline.poll_loop import PipelineResult, PipelineRun
from fdstore_workers.pipeline.sandlock_engine import Sandlock, find_sandlock
from fdstore_workers.pipeline.unsandboxed import Unsandboxed
from tests.thorough import thorough

MiB = 1 << 20
TIGHT = CommandLimits(
    cpu_s=1,
    memory_bytes=512 * MiB,
    file_bytes=8 * MiB,
    scratch_bytes=16 * MiB,
    scratch_inodes=300,
    open_files=64,
    processes=16,
)

ALONE = "sandlock, no namespaces"
ENGINES = ("bubblewrap", "sandlock", ALONE)


class CommandOutput(Record, frozen=True, kw_only=True):
    """The output and the end of a command."""

    ended: PipelineResult
    output: str
    errors: str


@cache
def working() -> dict[str, Bubblewrap | Sandlock]:
    """Return each engine that works on this machine by its name. An engine may fall back to weaker isolation;
    the name of the stronger one never stands for a fallback."""
    found: dict[str, Bubblewrap | Sandlock] = {}
    bubblewrap = find_sandbox(engine="bubblewrap", limits=TIGHT)
    if isinstance(bubblewrap, Bubblewrap):
        found["bubblewrap"] = bubblewrap
    sandlock = find_sandbox(engine="sandlock", limits=TIGHT)
    if isinstance(sandlock, Sandlock) and sandlock.own_namespaces:
        found["sandlock"] = sandlock
    with suppress(CommandsOff):
        found[ALONE] = find_sandlock(TIGHT, [*map(Path, HIDDEN)], namespaces=False)
    return found


def engines() -> list[Any]:
    """Return the engines that work here. Of three, the one that joins the ways of the other two can wait."""
    found = [engine for engine in ENGINES if engine in working()]
    rest = thorough("Landlock and namespaces, each held by another engine", "sandlock")
    return [rest[0] if engine == "sandlock" and len(found) == len(ENGINES) else engine for engine in found]


def run_in(
    sandbox: Bubblewrap | Sandlock | Unsandboxed,
    *argv: str,
    kill_at_output: bool = False,
    grace_s: float = 15.0,
    stdin: bytes = b"",
) -> CommandOutput:
    """Run a command; with `kill_at_output`, kill it at its first output."""
    output, errors = bytearray(), bytearray()

    def receive(piece: bytes, into: bytearray = output) -> None:
        into.extend(piece)
        if kill_at_output:
            pipeline.kill(grace_s)

    pipeline = PipelineRun(
        [argv],
        output=receive,
        error=lambda number, piece: receive(piece, errors),
        feed=iter([stdin]) if stdin else None,
        command=sandbox.wrap,
        reports=sandbox.reports,
        environment=sandbox.environment,
        limits=PipelineLimits(wall_seconds=60.0),
    )
    ended = pipeline.run()
    return CommandOutput(ended=ended, output=output.decode(), errors=errors.decode())


def bash(script: str) -> tuple[str, str, str]:
    return "bash", "-c", script


def program(directory: Path, name: str, script: str) -> None:
    path = directory / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)  # whatever the umask: sandboxes run it as another user
