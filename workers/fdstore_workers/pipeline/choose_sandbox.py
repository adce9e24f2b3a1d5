"""Choose the sandbox for the commands of pipelines: the first engine that works on this machine, or none.

    bubblewrap   the program `bwrap`, 0.8 or later: namespaces
    sandlock     a package for Python: Landlock and seccomp, in namespaces where the system allows them
    off          every command is refused, with the reason

Both engines pass the same probes (tests/unit/test_sandbox_probes.py); `describe` names the guarantees that an
engine cannot give on this machine. Neither limits the total memory of a command's processes: that needs a
cgroup around the worker.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal

from fdstore.files.permissions import CommandsOff
from fdstore_workers.pipeline.bubblewrap import Bubblewrap, find_bubblewrap
from fdstore_workers.pipeline.command_limits import CommandLimits
from fdstore_workers.pipeline.sandlock_engine import Sandlock, find_sandlock
from fdstore_workers.pipeline.unsandboxed import CommandsDisabled, Unsandboxed

Engine = Literal["auto", "bubblewrap", "sandlock", "off"]
Sandbox = Bubblewrap | Sandlock | Unsandboxed | CommandsDisabled

HIDDEN = ("/usr/src", "/usr/local/src", "/usr/local/etc")
"""Directories below /usr that may hold private files."""


def find_sandbox(
    *,
    engine: Engine = "auto",
    allow_unsandboxed: bool = False,
    private: Iterable[Path] = (),
    limits: CommandLimits | None = None,
    search_path: str | None = None,
) -> Sandbox:
    """Return the sandbox for the commands of this worker. Each candidate runs `true` once, some 100 ms.

    `allow_unsandboxed` permits commands without a sandbox, if no engine works. `private` are directories
    (the worker's own) that commands must not see even below /usr, except those that contain programs of
    PATH. bubblewrap is searched in `search_path` (default: PATH).
    """
    bounds = limits or CommandLimits()
    if not hasattr(os, "pidfd_open"):
        return CommandsDisabled("they need Linux")
    if engine == "off":
        return CommandsDisabled("it was started with --sandbox off")
    hidden = [*map(Path, HIDDEN), *private]
    problems = []
    searches: dict[str, Callable[[], Sandbox]] = {
        "bubblewrap": lambda: find_bubblewrap(bounds, hidden, search_path),
        "sandlock": lambda: find_sandlock(bounds, hidden),
    }
    for name, search in searches.items():
        if engine in ("auto", name):
            try:
                return search()
            except CommandsOff as problem:
                problems.append(problem.why)
    why = "; ".join(problems)
    if allow_unsandboxed:
        tools = (shutil.which(name, path=search_path) for name in ("prlimit", "setpriv"))
        return Unsandboxed(why, bounds, *tools)
    return CommandsDisabled(f"{why}, and the worker was not started with --unsandboxed-commands")
