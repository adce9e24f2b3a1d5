"""The verbs ls and stat: show descriptors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fdstore.cli import output
from fdstore.cli.session import Session, verb
from fdstore.cli.tables import ago, facts, format_count, format_size, moment, table

if TYPE_CHECKING:
    from fdstore.records import Descriptor


@verb
@click.argument("process", metavar="PROC")
def ls(session: Session, process: str) -> None:
    """List the descriptors of a process, in number order.

    Damaged records are left out, with a line on standard error; with --json the last document lists them in
    `unreadable`.
    """
    from fdstore.store.clock import redis_now
    from fdstore.store.descriptors import listing

    with session.process(process) as opened:
        held = opened.store.run(listing(opened.handle))
        found, damaged = held.descriptors, held.unreadable
        now = opened.store.run(redis_now())
    if session.as_json:
        for descriptor in found:
            output.document(descriptor)
    elif not found:
        if not damaged:
            output.note(f"{process} holds no descriptors")
    else:
        output.print_painted(
            table(
                ["FD", "STATE", "CHARS", "SIZE", "LINES", "PAGES", "CREATED", "PRODUCER", "SOURCE"],
                [_row(descriptor, now) for descriptor in found],
                right=["CHARS", "SIZE", "LINES", "PAGES"],
                cut="SOURCE",
                columns=output.columns(),
                coloured=output.use_colours(),
            )
        )
    output.report_unreadable(damaged, as_json=session.as_json)


def _row(descriptor: Descriptor, now_s: float) -> list[str]:
    return [
        descriptor.fd,
        _state(descriptor),
        str(descriptor.chars),
        format_size(descriptor.bytes),
        str(descriptor.lines),
        str(descriptor.pages),
        ago(descriptor.created_at, now_s),
        descriptor.producer,
        descriptor.source,
    ]


@verb
@click.argument("process", metavar="PROC")
@click.argument("fd", metavar="FD")
def stat(session: Session, process: str, fd: str) -> None:
    """Show the state, sizes, source and origin of a descriptor."""
    from fdstore.store.clock import redis_now

    with session.process(process) as opened:
        found = opened.stat(fd)
        now = opened.store.run(redis_now())
    if session.as_json:
        output.document(found)
    else:
        output.line(facts(_described(found, now)))


def _described(found: Descriptor, now_s: float) -> list[tuple[str, str]]:
    described = [
        ("fd", found.fd),
        ("state", _state(found)),
        ("size", f"{format_size(found.bytes)} ({found.bytes} bytes of UTF-8)"),
        ("chars", str(found.chars)),
        ("lines", str(found.lines)),
        ("pages", f"{found.pages} of at most {format_count(found.page_size, 'character')}"),
        ("source", found.source),
        ("producer", found.producer),
        ("created", f"{moment(found.created_at)} ({ago(found.created_at, now_s)})"),
    ]
    if found.exit_code is not None:
        described.append(("exit code", str(found.exit_code)))
    if found.chain is not None:
        described.append(("exit codes", found.chain))
    if found.origin is not None:
        origin = found.origin
        where = f"lines {origin.lines}, characters {origin.chars} of {origin.fd} ({origin.content})"
        described.append(("cut from", where))
    return described


def _state(found: Descriptor) -> str:
    return found.state if found.reason is None else f"{found.state} ({found.reason})"
