"""Log lines of one attempt at a process: its program, duration, number of turns and end.

    triage.1 exited: program expert, exit code 0, 12.3 s, 4 turns
    triage.2 failed: program expert, 0.4 s, 1 turn: the model answered 401 authentication_error: ...
    triage.3 waits for triage.3.1: program boss, 2.0 s, 1 turn

The duration counts from the creation of the process, over all its attempts.
"""

from __future__ import annotations

import logging
import time

from fdstore.model.lifecycle import EndState
from fdstore.setup.logs import facts

log = logging.getLogger("fdstore.agent")


class AttemptLog:
    """Logger of one attempt. `age_s` is the age of the process at the claim."""

    def __init__(self, process: str, program: str, age_s: float, attempt: int | None = None) -> None:
        self._process = process
        self._program = program
        self._attempt = attempt
        self._born = time.monotonic() - age_s
        self.turns: int | None = None
        """Number of model answers so far; None for a pipeline."""

    def ended(self, state: EndState, exit_code: int | None, reason: str) -> None:
        """Log the end of the process."""
        code = "" if exit_code is None else f"exit code {exit_code}"
        self._log(state, code, reason, state=state, exit_code=exit_code)

    def left(self, how: str) -> None:
        """Log that this attempt ends and the process continues elsewhere or later."""
        self._log(how)

    def _log(self, how: str, code: str = "", reason: str = "", **more: str | int | None) -> None:
        age_s = time.monotonic() - self._born
        parts = [f"program {self._program}", code, f"{age_s:.1f} s"]
        if self.turns is not None:
            parts.append("1 turn" if self.turns == 1 else f"{self.turns} turns")
        fields = facts(
            process=self._process,
            program=self._program,
            attempt=self._attempt,
            duration_s=round(age_s, 3),
            turns=self.turns,
            reason=reason or None,
            **more,
        )
        details = ", ".join(filter(None, parts))
        log.info("%s %s: %s%s", self._process, how, details, f": {reason}" if reason else "", extra=fields)
