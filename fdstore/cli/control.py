"""The verbs on running agents: kill, attach, resume; and running one in this program."""

from __future__ import annotations

import math
import os
import sys
import time
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fdstore.cli import output
from fdstore.cli.interrupts import as_interrupts
from fdstore.cli.session import Session, verb
from fdstore.loading import frozen_imports, require
from fdstore.text.numbers import MAX_INTEGER

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from fdstore.agent.program import Bundle
    from fdstore.client import Store
    from fdstore.permissions import Permissions
    from fdstore.store.inspection import Answer

F = TypeVar("F", bound="Callable[..., Any]")

LOOK_EVERY_S = 0.25
"""Losses that are not too many: who resumes an agent has decided that it may go on."""

quiet_option = click.option("-q", "--quiet", is_flag=True, help="Do not tell on standard error what happens.")


def interrupt_option(default: str) -> Callable[[F], F]:
    return click.option(
        "--on-interrupt",
        type=click.Choice(["cancel", "leave"]),
        default=default,
        show_default=True,
        help="What Ctrl-C, TERM and HUP do with it: cancel it with all below it, or leave it to the workers.",
    )


@verb
@click.argument("process", metavar="PROC")
def kill(session: Session, process: str) -> None:
    """Cancel a process and all below it. Killing one that has ended changes nothing; one that is damaged is
    ended all the same, if its record can be written at all."""
    from fdstore.errors import InvalidArgument, MissingExtra
    from fdstore.runtime.waker import waker
    from fdstore.store import processes

    with session.store(use="remove") as store:
        done = store.run(processes.cancel(store.prefix, process))
        if done.woken:
            # without a queue to wake them by, the workers' sweep finds the ancestors that waited
            with suppress(InvalidArgument, MissingExtra):
                wake = waker(store.url, store.prefix)
                for ancestor in done.woken:
                    wake(ancestor)
    if session.as_json:
        said = {"process": process, "state": done.state, "cancelled": done.cancelled}
        output.document({**said, "unreadable": done.unreadable} if done.unreadable else said)
        return
    output.passed_over(done.unreadable, as_json=False)
    if done.cancelled:
        output.line("\n".join(f"cancelled {each}" for each in done.cancelled))
    else:
        output.line(f"{process} has ended already: {done.state}")


@verb
@click.argument("process", metavar="PROC")
@interrupt_option("leave")
@quiet_option
def attach(session: Session, process: str, quiet: bool, on_interrupt: str) -> None:
    """Watch a process until it ends and print its answer. Ctrl-C leaves it running, unless told else."""
    from fdstore.store import inspection, processes

    with session.store(use="look") as store:
        store.run(inspection.record(store.prefix, process))
        try:
            with as_interrupts(), _watched(store, process, quiet=quiet):
                _wait_for(store, process)
        except KeyboardInterrupt:
            if on_interrupt == "cancel":
                store.run(processes.cancel(store.prefix, process, "interrupted"))
            raise
        _exit_as(session, store, process)


@verb
@click.argument("process", metavar="PROC")
@click.option("--allow-python", multiple=True, metavar="PATTERN", help="As of `fdstore worker`; repeatable.")
@click.option("--export-root", metavar="DIR", help="As of `fdstore worker`.")
@click.option("--preload-root", metavar="DIR", help="As of `fdstore worker`.")
@interrupt_option("cancel")
@quiet_option
def resume(
    session: Session,
    process: str,
    allow_python: tuple[str, ...],
    export_root: str | None,
    preload_root: str | None,
    quiet: bool,
    on_interrupt: str,
) -> None:
    """Run an agent here whose program or worker died, from where it was; print its answer.

    One that somebody still runs is left to them. With a worker up there is no need for this: a
    worker takes an agent over that nobody runs any more. Its program is what the store says it is: from a
    store by URL it may call, write and read only what the options allow.
    """
    from fdstore.local.redis_server import is_embedded
    from fdstore.permissions import parse_permissions
    from fdstore.store import inspection

    require()
    with session.store() as store:
        permissions = parse_permissions(
            embedded=is_embedded(store.url),
            python=allow_python,
            export_root=export_root,
            preload_root=preload_root,
        )
        if store.run(inspection.record(store.prefix, process)).ended_at is None:
            _take_back(store, process)
            run_here(session, store, process, permissions=permissions, quiet=quiet, on_interrupt=on_interrupt)
        else:
            output.say(f"fdstore: {process} has ended already")
            _exit_as(session, store, process)


def _take_back(store: Store, process: str) -> None:
    """Makes a process ready whose lease runs out. Raises `Fenced`, naming who runs it."""
    from fdstore.errors import Fenced
    from fdstore.store import inspection, leases
    from fdstore.store.keys import process_keys

    lease = None
    while True:
        record = store.run(inspection.record(store.prefix, process))
        match record.state:
            case "ready":
                return
            case "running":
                if lease not in (None, record.lease_until):
                    raise Fenced(process, f"{record.worker} runs it; watch it with: fdstore attach {process}")
            case "waiting":
                on = ", ".join(record.waiting_for)
                raise Fenced(process, f"it waits for {on}; watch it with: fdstore attach {process}")
            case _:
                raise Fenced(process, f"it is {record.state}, and no agent that could go on")
        lease = record.lease_until
        lapsed = store.run(leases.look_after(process_keys(store.prefix, process), MAX_INTEGER))
        if lapsed.decision == "wake":
            return
        time.sleep(LOOK_EVERY_S)


def load_runner() -> None:
    """Loads what runs an agent in this program. That takes a second or two, so `run` does it before there is
    a root: a worker takes one that waits too long."""
    with frozen_imports():
        import fdstore.runtime.runner  # noqa: F401


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
    """Runs an agent in this program until it ends, and prints its answer: the agent of `own`, the bundle
    that was launched here, else what the store says. If a worker has taken it over, as after this machine
    slept, its end is waited for."""
    load_runner()
    from fdstore.agent.models.anthropic import Model
    from fdstore.runtime.runner import run_process
    from fdstore.runtime.waker import waker
    from fdstore.store import inspection, processes

    leave = on_interrupt == "leave"
    try:
        with as_interrupts(), _watched(store, process, quiet=quiet):
            ending = run_process(
                store,
                process,
                worker=f"run:{os.getpid()}",
                model=Model,
                wake=waker(store.url, store.prefix),
                permissions=permissions,
                own=own,
                wait_here=True,
                leave_on_interrupt=leave,
            )
            if ending != "ended" and store.run(inspection.record(store.prefix, process)).ended_at is None:
                output.say(f"fdstore: a worker goes on with {process}; waiting for its end")
                _wait_for(store, process)
    except KeyboardInterrupt:
        if leave:
            with suppress(OSError):  # the terminal may be gone
                output.say(f"fdstore: {process} is left to the workers; fdstore attach {process}")
        else:
            # it is cancelled already, if it ran here
            store.run(processes.cancel(store.prefix, process, "interrupted"))
        raise
    _exit_as(session, store, process)


def _watched(store: Store, process: str, *, quiet: bool) -> AbstractContextManager[object]:
    from fdstore.cli.watch import Watch

    return nullcontext() if quiet else Watch(store, process.partition(".")[0], output.say).kept()


def _wait_for(store: Store, process: str) -> None:
    from fdstore.store import inspection

    store.run(inspection.wait_ended(store.prefix, [process], math.inf))


def _exit_as(session: Session, store: Store, process: str) -> None:
    """Prints how an agent ended; ends this program with the exit code that says so too."""
    from fdstore.store import inspection

    code = report_end(session, store.run(inspection.answer_of(store.prefix, process)))
    if code:
        output.finish()
        sys.exit(code)


def report_end(session: Session, ended: Answer) -> int:
    """Prints how an agent ended, its answer on standard output; the exit code of the command."""
    record = ended.record
    if session.as_json:
        output.document({"process": record, "answer": ended.text, "answer_fd": ended.fd})
    else:
        if ended.text:
            output.line(ended.text)
        if ended.fd:
            holder = record.parent or record.id
            output.say(f"fdstore: the answer is long: fdstore cat {holder} {ended.fd}")
        if record.reason:
            output.say(f"fdstore: {record.id} {record.state}: {record.reason}")
    return 0 if record.state == "exited" and record.exit_code == 0 else 1
