"""Run an agent in this process until it ends, for the verbs run and resume."""

from __future__ import annotations

import math
import os
import sys
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING

from fdstore.cli import output
from fdstore.cli.interrupts import as_interrupts
from fdstore.cli.session import Session
from fdstore.optional_packages import frozen_imports

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from fdstore.agent.program_loader import Bundle
    from fdstore.client import Store
    from fdstore.permissions import Permissions
    from fdstore.records import TreeRecord
    from fdstore.store.processes.process_records import ProcessAnswer


def load_runner() -> None:
    """Import the modules that run an agent in this program, with the model's SDK. That takes a second or two,
    so `run` calls this before it creates a root: a worker would take over a root that waits too long."""
    with frozen_imports():
        import fdstore.agent.models.anthropic
        import fdstore.runtime.run_process  # noqa: F401


def run_here(
    session: Session,
    store: Store,
    process: str,
    *,
    permissions: Permissions,
    own: Bundle | None = None,
    quiet: bool,
    on_interrupt: str,
) -> None:
    """Run an agent in this program until it ends, and print its answer, see `run_until_ended`."""
    with _watched(store, process, quiet=quiet):
        run_until_ended(store, process, permissions=permissions, own=own, on_interrupt=on_interrupt)
    _exit_as(session, store, process, quiet=quiet)


def run_until_ended(
    store: Store,
    process: str,
    *,
    permissions: Permissions,
    own: Bundle | None = None,
    on_interrupt: str = "cancel",
) -> None:
    """Run an agent in this program until it ends.

    `own` is the bundle of a process that was launched here; by default the program comes from the store. If a
    worker has taken the agent over, for example because this machine slept, wait for its end.
    """
    load_runner()
    from fdstore.agent.models.anthropic import AnthropicModel
    from fdstore.runtime.run_process import run_process
    from fdstore.runtime.waker import waker
    from fdstore.store.processes import process_records, processes

    leave = on_interrupt == "leave"
    try:
        with as_interrupts():
            ending = run_process(
                store,
                process,
                worker=f"run:{os.getpid()}",
                model=AnthropicModel,
                wake=waker(store.url, store.prefix),
                permissions=permissions,
                own=own,
                wait_here=True,
                leave_on_interrupt=leave,
            )
            if (
                ending != "ended"
                and store.run(process_records.record(store.prefix, process)).ended_at is None
            ):
                output.say(f"fdstore: a worker has taken over {process}; waiting for its end")
                _wait_for(store, process)
    except KeyboardInterrupt:
        if leave:
            with suppress(OSError):  # the terminal may be gone
                output.say(f"fdstore: {process} is left to the workers; fdstore attach {process} watches it")
        else:
            # already cancelled if it ran here
            store.run(processes.cancel(store.prefix, process, "interrupted"))
        raise


def _watched(store: Store, process: str, *, quiet: bool) -> AbstractContextManager[object]:
    from fdstore.cli.watch import Watch

    return nullcontext() if quiet else Watch(store, process.partition(".")[0], output.say).kept()


def _wait_for(store: Store, process: str) -> None:
    from fdstore.store.processes import waiting

    store.run(waiting.wait_until_ended(store.prefix, [process], math.inf))


def _exit_as(session: Session, store: Store, process: str, *, quiet: bool) -> None:
    """Print the end of an agent, and exit with 1 if it failed."""
    from fdstore.store.processes import process_records

    ended = store.run(process_records.answer_of(store.prefix, process))
    code = report_end(session, ended, store.tree(process.partition(".")[0]), quiet=quiet)
    if code:
        output.finish()
        sys.exit(code)


def report_end(session: Session, ended: ProcessAnswer, tree: TreeRecord, *, quiet: bool) -> int:
    """Print the end of an agent, its answer on standard output, and unless `quiet` its tokens and its tree's
    with the events on standard error; return the exit code of the command."""
    record = ended.record
    if session.as_json:
        from fdstore.cli.processes import usage_fields

        document = {"process": record, "answer": ended.text, "answer_fd": ended.fd, **usage_fields(tree)}
        output.document(document)
    else:
        if ended.text:
            output.line(ended.text)
        if ended.fd:
            holder = record.parent or record.id
            output.say(f"fdstore: the answer is long: fdstore cat {holder} {ended.fd}")
        if record.reason:
            output.say(f"fdstore: {record.id} {record.state}: {record.reason}")
        if record.tokens and not quiet:
            from fdstore.text.quantities import format_costs, format_tokens

            cost = format_costs([record])
            whole = f"; of the whole tree {tree.all_tokens:,}" if tree.all_tokens > record.tokens else ""
            output.say(f"fdstore: tokens: {format_tokens(record)}{cost and f', cost: {cost}'}{whole}")
    return 0 if record.state == "exited" and record.exit_code == 0 else 1
