"""Commands without a sandbox, because the operator said so; and no commands at all."""

from __future__ import annotations

import os
from collections.abc import Mapping

from fdstore_workers.pipeline.command_limits import PATH, CommandLimits, CommandsOff


class Unsandboxed:
    """Commands run as the worker's user, because the operator said so."""

    reports = False

    def __init__(
        self, why: str, limits: CommandLimits, prlimit: str | None, setpriv: str | None = None
    ) -> None:
        self._why = why
        self._limits = limits
        self._limited = prlimit is not None
        # a worker that is killed takes its commands along, though not what they started
        self._prefix = [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []
        # not the number of processes: without a namespace that counts all of this user's
        self._prefix += limits.prlimit(prlimit) if prlimit else []
        self.environment: Mapping[str, str] = {"PATH": PATH, "LANG": "C.UTF-8", "HOME": "/nonexistent"}

    def wrap(self, argv: list[str]) -> list[str]:
        """What to start for `argv`."""
        return [*self._prefix, *argv]

    def describe(self) -> str:
        limits = str(self._limits) if self._limited else "no limits, because prlimit (util-linux) is missing"
        return (
            f"commands run WITHOUT a sandbox, as user {os.geteuid()}: they may read, write and reach what "
            f"the worker may; {limits}. No sandbox because {self._why}"
        )


class Refused:
    """Commands are off; every use says why."""

    reports = False
    environment: Mapping[str, str] = {}

    def __init__(self, why: str) -> None:
        self.why = why

    def wrap(self, argv: list[str]) -> list[str]:
        """Raises `CommandsOff`."""
        raise CommandsOff(self.why)

    def describe(self) -> str:
        return str(CommandsOff(self.why))
