"""The demo's second act: a program asks a model about 40 parts of a text on a worker, whose working process
is killed meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fdstore.cli import output
from fdstore.errors import FDStoreError
from fdstore.runtime.periodic import run_periodically
from fdstore.text.quantities import format_count

if TYPE_CHECKING:
    from fdstore.client import Store
    from fdstore.records import AskCounts
    from fdstore.testing import Request

KILL_AFTER = 10
"""The working process is killed when this many questions are answered."""

LOOK_EVERY_S = 0.02


def killing(store: Store, process: str, worker_pid: int) -> AbstractContextManager[None]:
    """Kill a child of the worker while the block runs, when some questions of a process are answered."""

    def look() -> bool:
        with suppress(FDStoreError):
            done = counts_in(store, process).done
            if done < KILL_AFTER:
                return True
            for child in children_of(worker_pid)[:1]:
                os.kill(child, signal.SIGKILL)
                output.line(f"\n  The worker's process {child} is killed, after {done} answers.\n")
        return False

    return run_periodically(LOOK_EVERY_S, look, "demo kill")


def counts_in(store: Store, process: str) -> AskCounts:
    """Return how many questions the code of a process has asked, and how many are answered."""
    from fdstore.records import AskCounts
    from fdstore.store.processes.asks import fold_lanes

    members = store.run(fold_lanes(store.prefix, store.tree(process).members))
    return next((each.asks for each in members if each.asks is not None), AskCounts())


def children_of(pid: int) -> list[int]:
    """Return the ids of the child processes of a process, oldest first; empty if they cannot be found out."""
    with suppress(OSError):
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    with suppress(OSError, subprocess.SubprocessError, ValueError):
        listed = subprocess.run(["ps", "-A", "-o", "ppid=,pid="], capture_output=True, text=True, check=True)
        pairs = [tuple(map(int, line.split())) for line in listed.stdout.splitlines()]
        return sorted(child for parent, child in pairs if parent == pid)
    return []


def play(
    store: Store,
    run: Callable[[str, str, Callable[[str], AbstractContextManager[object]]], str],
    requests: Callable[[], Sequence[Request]],
    worker_pid: int,
    query: str,
) -> None:
    """Play the second act: `run` launches a program of the demo with a query and returns its process when
    that has ended; while it runs, it is in the context that its last argument makes. `requests` returns those
    to the model so far."""
    from fdstore.demo.scripted_answers import ASKS
    from fdstore.store.processes.process_records import answer_of

    output.line(f"\nAct 2: a program asks a model about {ASKS} parts of the text, and a process is killed.\n")
    before = len(requests())
    process = run("counter.toml", query, lambda process: killing(store, process, worker_pid))
    ended = store.run(answer_of(store.prefix, process))
    counts = counts_in(store, process)
    sent = sum(not request.tools for request in requests()[before:])
    output.line(f"\n{process} {ended.record.state} with code {ended.record.exit_code}: {ended.text}")
    if ended.record.state != "exited" or not counts.total:
        output.line(f"reason: {ended.record.reason or 'its program asked nothing'}")
        sys.exit(1)
    again = sent - counts.total
    repeated = (
        f"{format_count(again, 'request')} had no answer yet and {'was' if again == 1 else 'were'} sent again"
    )
    output.line(
        f"\nAsked                  {counts.total} questions, each answered once: {counts.done} answers"
        f"\nSent to the model      {format_count(sent, 'request')}" + (f"; {repeated}" if again else "")
    )
