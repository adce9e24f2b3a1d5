"""The engines without a sandbox: plain commands, if the operator allows them, and no commands."""

from __future__ import annotations

import os
from collections.abc import Mapping

from fdstore.files.permissions import CommandsOff
from fdstore_workers.pipeline.command_limits import PATH, CommandLimits


class Unsandboxed:
    """The engine that runs commands as the worker's user, on explicit permission of the operator."""

    reports = False

    def __init__(
        self, why: str, limits: CommandLimits, prlimit: str | None, setpriv: str | None = None
    ) -> None:
        self._why = why
        self._limits = limits
        self._limited = prlimit is not None
        # commands die with a killed worker; their own children do not
        self._prefix = [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []
        # no limit of processes: without a user namespace it counts all of this user's
        self._prefix += limits.prlimit(prlimit) if prlimit else []
        self.environment: Mapping[str, str] = {"PATH": PATH, "LANG": "C.UTF-8", "HOME": "/nonexistent"}

    def wrap(self, argv: list[str]) -> list[str]:
        """Return the command to spawn for `argv`."""
        return [*self._prefix, *argv]

    def describe(self) -> str:
        limits = str(self._limits) if self._limited else "no limits, because prlimit (util-linux) is missing"
        return (
            f"commands run WITHOUT a sandbox, as user {os.geteuid()}: they can read, write and reach "
            f"everything that the worker can; {limits}. No sandbox because {self._why}"
        )


class CommandsDisabled:
    """The engine of a worker without commands. Every use raises `CommandsOff` with the reason."""

    reports = False
    environment: Mapping[str, str] = {}

    def __init__(self, why: str) -> None:
        self.why = why

    def wrap(self, argv: list[str]) -> list[str]:
        """Raise `CommandsOff`."""
        raise CommandsOff(self.why)

    def describe(self) -> str:
        return str(CommandsOff(self.why))
