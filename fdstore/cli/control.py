"""The verbs on running agents: kill, attach."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING

import click

from fdstore.cli import output
from fdstore.cli.session import Session, verb

if TYPE_CHECKING:
    from fdstore.store.processes import Answer


@click.argument("process", metavar="PROC")
@verb
def kill(session: Session, process: str) -> None:
    """Cancel a process and all below it. Killing one that has ended changes nothing."""
    from fdstore.store import processes
    from fdstore.toolset import waker

    with session.store() as store:
        done = store.run(processes.cancel(store.prefix, process))
        if done.wake:
            waker(store.url, store.prefix)(done.wake)
    if session.as_json:
        output.document({"process": process, "state": done.state, "cancelled": done.cancelled})
    elif done.cancelled:
        output.line("\n".join(f"cancelled {each}" for each in done.cancelled))
    else:
        output.line(f"{process} has ended already: {done.state}")


@click.argument("process", metavar="PROC")
@click.option("-q", "--quiet", is_flag=True, help="Do not tell on standard error what happens.")
@verb
def attach(session: Session, process: str, quiet: bool) -> None:
    """Watch a process until it ends and print its answer. Ctrl-C leaves it running."""
    from fdstore.cli.watch import Watch
    from fdstore.store import processes

    def say(text: str) -> None:
        click.echo(text, err=True)

    with session.store() as store:
        store.run(processes.record(store.prefix, process))
        tree = process.partition(".")[0]
        with nullcontext() if quiet else Watch(store, tree, say):
            while not store.run(processes.wait_ended(store.prefix, [process], 3600.0)):
                continue
        code = report_end(session, store.run(processes.answer_of(store.prefix, process)))
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
            click.echo(f"fdstore: the answer is long: fdstore cat {holder} {ended.fd}", err=True)
        if record.reason:
            click.echo(f"fdstore: {record.id} {record.state}: {record.reason}", err=True)
    return 0 if record.state == "exited" and record.exit_code == 0 else 1
