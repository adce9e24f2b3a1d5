"""The verbs kill, attach and resume, and running an agent in this program until it ends."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fdstore.cli import output
from fdstore.cli.interrupts import as_interrupts
from fdstore.cli.person_prompt import asking_here
from fdstore.cli.session import CliSession, verb
from fdstore.setup.optional_packages import frozen_imports, require
from fdstore.text.numbers import MAX_INTEGER

if TYPE_CHECKING:
    from fdstore.agents.loop.program_loader import Bundle
    from fdstore.client import Store
    from fdstore.files.permissions import Permissions
    from fdstore.model.model_servers import ModelServer
    from fdstore.model.records import TreeRecord
    from fdstore.store.processes.process_records import ProcessAnswer
    from fdstore.store.processes.processes import Cancellation

F = TypeVar("F", bound=Callable[..., Any])

LOOK_EVERY_S = 0.25

quiet_option = click.option("-q", "--quiet", is_flag=True, help="Print no events to standard error.")


def interrupt_option(default: str) -> Callable[[F], F]:
    return click.option(
        "--on-interrupt",
        type=click.Choice(["cancel", "leave"]),
        default=default,
        show_default=True,
        help="On Ctrl-C, SIGTERM and SIGHUP: cancel it with its descendants, or leave it to the workers.",
    )


@verb
@click.argument("process", metavar="PROC")
def kill(session: CliSession, process: str) -> None:
    """Cancel a process and its descendants. On a process that has ended it changes nothing. A damaged one
    ends too, if its record can be written at all."""
    with session.store(use="remove") as store:
        done = cancel_and_wake(store, process)
    if session.as_json:
        result = {"process": process, "state": done.state, "cancelled": done.cancelled}
        output.document({**result, "unreadable": done.unreadable} if done.unreadable else result)
        return
    output.report_unreadable(done.unreadable, as_json=False)
    if done.cancelled:
        output.line("\n".join(f"cancelled {each}" for each in done.cancelled))
    else:
        output.line(f"{process} has already ended: {done.state}")


def cancel_and_wake(store: Store, process: str) -> Cancellation:
    """Cancel a process and its descendants, and wake the ancestors that waited for it."""
    from fdstore.agents.runtime.waker import wake_all
    from fdstore.store.processes import processes

    done = store.run(processes.cancel(store.prefix, process))
    wake_all(store, done.woken)
    return done


@verb
@click.argument("process", metavar="PROC")
@interrupt_option("leave")
@quiet_option
def attach(session: CliSession, process: str, quiet: bool, on_interrupt: str) -> None:
    """Watch a process until it ends and print its answer. By default Ctrl-C leaves it running.

    To look at a process there are `attach` (what happens from now on, in short, then the answer), `log -f`
    (the whole conversation, then what is added) and `top` (all processes). None of them runs it:
    `resume` runs an agent on whose program or worker died, where no worker does.
    """
    from fdstore.model.ends import INTERRUPTED
    from fdstore.store.processes import process_records, processes

    with session.store(use="look") as store:
        record = store.run(process_records.record(store.prefix, process))
        if record.state == "open" and not quiet:
            output.say(f"fdstore: {process} is open: no agent runs in it, and it goes on until it is ended")
        try:
            with as_interrupts(), watched(store, process, quiet=quiet), asking_here(store, process):
                wait_for(store, process)
        except KeyboardInterrupt:
            if on_interrupt == "cancel":
                store.run(processes.cancel(store.prefix, process, INTERRUPTED.name))
            raise
        exit_as(session, store, process, quiet=quiet)


@verb
@click.argument("process", metavar="PROC")
@click.option("--allow-python", multiple=True, metavar="PATTERN", help="As for `fdstore worker`; repeatable.")
@click.option("--export-root", metavar="DIR", help="As for `fdstore worker`.")
@click.option("--preload-root", metavar="DIR", help="As for `fdstore worker`.")
@click.option(
    "--allow-model-server",
    "model_servers",
    multiple=True,
    metavar="URL[=VARIABLE]",
    help="As for `fdstore worker`; repeatable.",
)
@interrupt_option("cancel")
@quiet_option
def resume(
    session: CliSession,
    process: str,
    allow_python: tuple[str, ...],
    export_root: str | None,
    preload_root: str | None,
    model_servers: tuple[str, ...],
    quiet: bool,
    on_interrupt: str,
) -> None:
    """Continue an agent here after its program or worker died, and print its answer.

    With a running worker you do not need this verb: the worker takes over lost agents by itself. An agent
    that still runs elsewhere is left alone; to look at it, use `attach` or `log -f`. The agent's program
    comes from the store: on a store given by URL it may use only what the options allow.
    """
    from fdstore.agents.runtime.eligibility import read_needs
    from fdstore.files.permissions import parse_permissions
    from fdstore.local.redis_server import is_embedded
    from fdstore.store.keys import process_keys
    from fdstore.store.processes import process_records

    require()
    with session.store() as store:
        permissions = parse_permissions(
            embedded=is_embedded(store.url),
            python=allow_python,
            export_root=export_root,
            preload_root=preload_root,
            model_servers=model_servers,
        )
        if store.run(process_records.record(store.prefix, process)).ended_at is None:
            [needs] = store.run(read_needs([process_keys(store.prefix, process)]))
            needs.check(permissions)  # before it is taken from the workers, which may be allowed to run it
            _take_back(store, process)
            run_here(session, store, process, permissions=permissions, quiet=quiet, on_interrupt=on_interrupt)
        else:
            output.say(f"fdstore: {process} has already ended")
            exit_as(session, store, process, quiet=quiet)


def _take_back(store: Store, process: str) -> None:
    """Make a lost process ready when its lease has expired. Raises `Fenced` if it still runs elsewhere."""
    from fdstore.errors import Fenced
    from fdstore.model.lifecycle import waited_for
    from fdstore.store.keys import process_keys
    from fdstore.store.processes import leases, process_records

    lease = None
    while True:
        record = store.run(process_records.record(store.prefix, process))
        match record.state:
            case "ready":
                return
            case "running":
                if lease not in (None, record.lease_until):
                    raise Fenced(process, f"{record.worker} runs it; watch it with: fdstore attach {process}")
            case "waiting":
                on = ", ".join(waited_for(record.waiting_for))
                raise Fenced(process, f"it waits for {on}; watch it with: fdstore attach {process}")
            case _:
                raise Fenced(process, f"it is {record.state} and cannot be resumed")
        lease = record.lease_until
        lapsed = store.run(leases.check_overdue(process_keys(store.prefix, process), MAX_INTEGER))
        if lapsed.decision == "wake":
            return
        time.sleep(LOOK_EVERY_S)


def load_runner(*servers: ModelServer) -> None:
    """Import the modules that run an agent in this program, with the SDKs of these servers. That takes a
    second or two, so callers do it before they create a root: a worker would take over a root that waits too
    long. Raises `OutputFailed` if the answer could not be printed."""
    output.check_open()
    with frozen_imports():
        from fdstore.agents.loop.models.providers import import_client

        for provider in sorted({each.provider for each in servers}):
            import_client(provider)


def run_here(
    session: CliSession,
    store: Store,
    process: str,
    *,
    permissions: Permissions,
    own: Bundle | None = None,
    quiet: bool,
    on_interrupt: str,
) -> None:
    """Run an agent in this program until it ends, and print its answer, see `run_until_ended`."""
    with watched(store, process, quiet=quiet), asking_here(store, process):
        run_until_ended(store, process, permissions=permissions, own=own, on_interrupt=on_interrupt)
    exit_as(session, store, process, quiet=quiet)


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
    from fdstore.agents.loop.models.providers import ModelClients
    from fdstore.agents.runtime.run_process import run_process
    from fdstore.agents.runtime.waker import waker
    from fdstore.model.ends import INTERRUPTED
    from fdstore.store.processes import leases, process_records, processes

    leave = on_interrupt == "leave"
    try:
        with as_interrupts(), output.for_the_answer_alone():
            ending = run_process(
                store,
                process,
                worker=leases.holder_name("run"),
                model=ModelClients(),
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
                wait_for(store, process)
    except KeyboardInterrupt:
        if leave:
            with suppress(OSError):  # the terminal may be gone
                output.say(f"fdstore: {process} is left to the workers; fdstore attach {process} watches it")
        else:
            # already cancelled if it ran here
            store.run(processes.cancel(store.prefix, process, INTERRUPTED.name))
        raise


def watched(store: Store, process: str, *, quiet: bool) -> AbstractContextManager[object]:
    from fdstore.cli.watch import TreeWatcher

    if quiet:
        return nullcontext()
    say = partial(output.happening, to_stderr=True)
    return TreeWatcher(store, process.partition(".")[0], say).kept()


def wait_for(store: Store, process: str) -> None:
    from fdstore.store.processes import waiting

    store.run(waiting.wait_until_ended(store.prefix, [process], math.inf))


def exit_as(session: CliSession, store: Store, process: str, *, quiet: bool) -> None:
    """Print the end of an agent, and exit with 1 if it failed."""
    from fdstore.store.processes import process_records

    ended = store.run(process_records.answer_of(store.prefix, process))
    _report_end(session, ended, store.tree(process.partition(".")[0]), quiet=quiet)
    exit_by(ended)


def exit_by(ended: ProcessAnswer) -> None:
    """Exit with 1 if an agent failed."""
    if ended.record.state != "exited" or ended.record.exit_code != 0:
        output.finish()
        sys.exit(1)


def _report_end(session: CliSession, ended: ProcessAnswer, tree: TreeRecord, *, quiet: bool) -> None:
    """Print the end of an agent, its answer on standard output, and unless `quiet` its tokens and its tree's
    with the events on standard error."""
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
            from fdstore.model.ends import in_words

            output.say(f"fdstore: {record.id} {record.state}: {in_words(record.reason)}")
        if record.tokens and not quiet:
            from fdstore.text.quantities import format_costs, format_tokens

            cost = format_costs([record])
            whole = (
                f"; of the whole tree {format_tokens(tree.usage)}" if tree.all_tokens > record.tokens else ""
            )
            output.say(f"fdstore: tokens: {format_tokens(record)}{cost and f', cost: {cost}'}{whole}")
