"""The log lines of one attempt at a process: which program, how long, how many turns, and how it ended.

    triage.1 exited: program expert, exit code 0, 12.3 s, 4 turns
    triage.2 failed: program expert, 0.4 s, 1 turn: the model answered 401 authentication_error: ...
    triage.3 waits for triage.3.1: program boss, 2.0 s, 1 turn

Seconds count from the birth of the process, so an end says how long the whole of it took.
"""

from __future__ import annotations

import logging
import time
from typing import Literal

log = logging.getLogger("fdstore.agent")


class AttemptLog:
    """Logs what becomes of one attempt. `age_s` is the age of the process at the claim."""

    def __init__(self, process: str, program: str, age_s: float) -> None:
        self._process = process
        self._program = program
        self._born = time.monotonic() - age_s
        self.turns: int | None = None
        """Number of model answers so far; None for a pipeline."""

    def ended(self, state: Literal["exited", "failed"], exit_code: int | None, reason: str) -> None:
        """Log the end of the process."""
        code = "" if exit_code is None else f"exit code {exit_code}"
        self._say(state, code, reason)

    def left(self, how: str) -> None:
        """Log that this attempt is over and the process is not."""
        self._say(how)

    def _say(self, how: str, code: str = "", reason: str = "") -> None:
        facts = [f"program {self._program}", code, f"{time.monotonic() - self._born:.1f} s"]
        if self.turns is not None:
            facts.append("1 turn" if self.turns == 1 else f"{self.turns} turns")
        said = ", ".join(filter(None, facts))
        log.info("%s %s: %s%s", self._process, how, said, f": {reason}" if reason else "")
