"""Run a pipeline as one attempt at its process."""

from __future__ import annotations

import threading
from collections.abc import Callable

import msgspec

from fdstore.client import Store
from fdstore.lifecycle import ProcessEnd
from fdstore.runtime.attempt import Attempt, AttemptOutcome
from fdstore.runtime.claim import Flag
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes import processes
from fdstore.store.record_format import decoding
from fdstore.tools.process_task import PipeTask

RunCommands = Callable[[Store, ProcessHandle, PipeTask, threading.Event, Flag], ProcessEnd]
"""Run the commands of a pipeline and store their output. The event is set when the lease is lost, the flag
when the worker stops."""


def run_pipeline(attempt: Attempt, run_commands: RunCommands) -> AttemptOutcome:
    """Run the commands and end the process as they ended. Commands that have begun are never run again."""
    if attempt.stopping.is_set():
        attempt.lease.give_back(has_begun=False)
        attempt.log.left("is given back")
        return "given back"
    with decoding(f"the journal of process {attempt.process}"):
        task = msgspec.json.decode(attempt.claim.journal[0], type=PipeTask)
    end = run_commands(attempt.store, attempt.handle, task, attempt.lease.lost, attempt.stopping)
    ending = processes.end(
        attempt.handle, end.state, exit_code=end.exit_code, reason=end.reason, release=True
    )
    return attempt.ended(end, attempt.store.run(ending))
