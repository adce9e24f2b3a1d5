"""What a command that waits for the output of a process says while that process does not go on."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from fdstore.cli import output
from fdstore.errors import FDStoreError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from fdstore.client import Store


def report_standstill(store: Store, process: str) -> AbstractContextManager[None]:
    """Report during a block why a process does not go on, each reason once: no worker claims it, or it was
    lost and no worker lives that would notice."""
    from fdstore.agents.runtime.eligibility import why_not_going_on
    from fdstore.agents.runtime.periodic import run_periodically
    from fdstore.store.views import worker_check

    said = {""}

    def look() -> bool:
        with suppress(FDStoreError):  # the block itself reports the error
            if (why := store.run(why_not_going_on(store.prefix, process))) not in said:
                said.add(why)
                output.say(f"fdstore: {why}")
        return True

    return run_periodically(worker_check.PATIENCE_S, look, "standstill")
