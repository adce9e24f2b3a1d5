"""The verbs ls, stat and holders: show descriptors, and who holds them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fdstore.cli import output
from fdstore.cli.session import CliSession, verb
from fdstore.cli.tables import Column, Table, key, number
from fdstore.inspector.reading.other_fields import other_fields
from fdstore.text.quantities import ago, format_count, format_number, format_size, moment

if TYPE_CHECKING:
    from fdstore.model.records import Descriptor

TABLE = Table(
    (
        key("FD", least=10),
        Column("STATE", least=10),
        number("CHARS", drop=3),
        number("SIZE"),
        number("LINES", drop=6),
        number("PAGES", drop=2),
        Column("CREATED", drop=4),
        Column("PRODUCER", least=10, drop=1),
        Column("TYPE", least=10, drop=5),
        Column("SOURCE", least=12),
    ),
    whole="fdstore stat PROC FD",
)
HOLDERS = Table((key("PROCESS"), Column("STATE"), key("FD")))


@verb
@click.argument("process", metavar="PROC")
@click.option(
    *("--names", "names"),
    is_flag=False,
    flag_value="",
    metavar="[PREFIX]",
    help="Only names, in order: all, or those that begin with PREFIX.",
)
@click.option("-a", "--all", "everything", is_flag=True, hidden=True, help="Not of ls: of `fdstore ps`.")
def ls(session: CliSession, process: str, names: str | None, everything: bool) -> None:
    """List the descriptors of a process: by number, then the named ones by creation.

    \b
    fdstore ls triage
    fdstore ls triage --names notes/

    On a narrow terminal some columns are left out, long names stand on lines of their own, and other texts
    end in `...`: `fdstore stat` shows them whole. Damaged records are skipped, with a line on standard error;
    with --json the last document lists them in `unreadable`.
    """
    from fdstore.store.clock import redis_now
    from fdstore.store.contents.descriptors import listing

    if everything:
        raise click.UsageError(
            "ls lists all descriptors of one process; `fdstore ps --all` lists all processes"
        )

    with session.process(process) as opened:
        if names is None:
            held = opened.store.run(listing(opened.handle))
            found, damaged = held.descriptors, held.unreadable
        else:
            found, damaged = opened.list(names.removeprefix("name:")), []
        now = opened.store.run(redis_now())
    if session.as_json:
        output.documents(found)
    elif not found:
        if not damaged:
            output.note(f"{process} holds no {'descriptors' if names is None else 'such names'}")
    else:
        output.table(TABLE, [_row(descriptor, now) for descriptor in found])
    output.report_unreadable(damaged, as_json=session.as_json)


def _row(descriptor: Descriptor, now_s: float) -> list[str]:
    is_text = descriptor.kind == "text"
    return [
        descriptor.fd,
        _state(descriptor),
        format_number(descriptor.chars) if is_text else "-",
        format_size(descriptor.bytes),
        format_number(descriptor.lines) if is_text else "-",
        format_number(descriptor.pages),
        ago(descriptor.created_at, now_s),
        descriptor.producer,
        descriptor.media_type,
        descriptor.source,
    ]


@verb
@click.argument("process", metavar="PROC")
@click.argument("fd", metavar="FD")
def stat(session: CliSession, process: str, fd: str) -> None:
    """Show the state, kind, media type, sizes, source, origin and holders of a descriptor.

    A content is deleted when the last process that holds it drops it. One that nobody reads may be in an
    object store; then it says where.
    """
    import msgspec

    from fdstore.store.clock import redis_now
    from fdstore.store.views import usage

    with session.process(process) as opened:
        found = opened.stat(fd)
        held = opened.store.run(usage.holders(opened.handle, found.fd))
        cold_place = opened.store.run(usage.cold_place(opened.handle, found.fd))
        now = opened.store.run(redis_now())
    if session.as_json:
        cold = {} if cold_place is None else {"tier": "cold", "where": cold_place}
        output.document({**msgspec.to_builtins(found), **cold, "holders": held})
    else:
        by = ", ".join(f"{each.process} ({each.state})" for each in held)
        cold_facts = [] if cold_place is None else [("cold, in", cold_place)]
        output.facts([*_described(found, now), *cold_facts, ("held by", by)])


def _described(found: Descriptor, now_s: float) -> list[tuple[str, str]]:
    is_text, size = found.kind == "text", format_count(found.bytes, "byte")
    described = [
        ("fd", found.fd),
        ("state", _state(found)),
        ("kind", found.kind),
        ("type", found.media_type),
        ("size", f"{format_size(found.bytes)} ({size}{' of UTF-8' if is_text else ''})"),
    ]
    if is_text:
        described += [("chars", format_number(found.chars)), ("lines", format_number(found.lines))]
    unit = format_count(found.page_size, "character" if is_text else "byte")
    described += [
        ("pages", f"{format_number(found.pages)} of at most {unit}"),
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
    return described + other_fields(found)


def _state(found: Descriptor) -> str:
    return found.state if found.reason is None else f"{found.state} ({found.reason})"


@verb
@click.argument("process", metavar="PROC")
@click.argument("fd", metavar="FD")
def holders(session: CliSession, process: str, fd: str) -> None:
    """Show which processes hold the content of a descriptor; `fdstore stat` shows them too."""
    from fdstore.store.views import usage
    from fdstore.text.selection import fd_id

    with session.process(process) as opened:
        found = opened.store.run(usage.holders(opened.handle, fd_id(fd)))
    if session.as_json:
        output.documents(found)
    else:
        output.table(HOLDERS, [[each.process, each.state, each.fd or "-"] for each in found])
