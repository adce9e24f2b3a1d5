"""The verbs that make and show descriptors: put, ls, stat."""

from __future__ import annotations

import os
import stat as file_stat
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, BinaryIO, Literal

import click

from fdstore.cli import output
from fdstore.cli.progress import progress
from fdstore.cli.session import Session, verb
from fdstore.cli.tables import ago, counted, facts, moment, size, table
from fdstore.errors import InvalidArgument

if TYPE_CHECKING:
    from fdstore.records import Descriptor


@verb
@click.argument("process", metavar="PROC")
@click.argument("file", metavar="FILE|-", type=click.Path(allow_dash=True))
@click.option("--source", metavar="TEXT", help="Where it came from [default: the file's name, or stdin]")
@click.option("--page-size", type=int, metavar="N", help="Characters of a page [default: 4000]")
@click.option(
    "--errors",
    type=click.Choice(["strict", "backslashreplace"]),
    default="strict",
    show_default=True,
    help="Bytes that are not UTF-8: refuse them, or keep them as \\xNN.",
)
def put(
    session: Session,
    process: str,
    file: str,
    source: str | None,
    page_size: int | None,
    errors: Literal["strict", "backslashreplace"],
) -> None:
    """Store FILE, or standard input for -, and print its descriptor.

    The process is made if there is none of that name. Any size will do: it is read in pieces.
    """
    from fdstore.inputs import source_name

    # opened before the process is: a wrong file name must not leave an empty process behind
    with _to_store(file) as binary, session.process_or_new(process) as opened:
        source = source or ("stdin" if file == "-" else source_name(file))
        with progress(f"put {source}", _size_of(binary)) as tell:
            made = opened.ingest(binary, source, page_size, errors, tell)
    if session.as_json:
        output.document(made)
    else:
        output.line(made.fd)
        output.note(f"{size(made.bytes)}, {counted(made.lines, 'line')}, {counted(made.pages, 'page')}")


def _to_store(file: str) -> AbstractContextManager[BinaryIO]:
    from fdstore.inputs import opened

    if file != "-":
        return opened(file)
    if sys.stdin is None:
        raise InvalidArgument("file", "standard input is closed; give a file, or pipe something in")
    if sys.stdin.isatty():
        output.note("reading from the terminal; Ctrl-D on an empty line ends it")
        # without a buffer, which would ask on after the Ctrl-D that gave it a short read
        return open(sys.stdin.fileno(), "rb", buffering=0, closefd=False)
    return nullcontext(sys.stdin.buffer)


def _size_of(binary: BinaryIO) -> int | None:
    """The bytes of a regular file; None for a pipe, which may go on for ever."""
    found = os.fstat(binary.fileno())
    return found.st_size if file_stat.S_ISREG(found.st_mode) else None


@verb
@click.argument("process", metavar="PROC")
def ls(session: Session, process: str) -> None:
    """List the descriptors of a process, in number order.

    What is damaged is left out, with a line on standard error; with --json the last document has it in a
    list, `unreadable`.
    """
    from fdstore.store.clock import redis_now
    from fdstore.store.contents import listing

    with session.process(process) as opened:
        held = opened.store.run(listing(opened.space))
        found, damaged = held.descriptors, held.unreadable
        now = opened.store.run(redis_now())
    if session.as_json:
        for descriptor in found:
            output.document(descriptor)
    elif not found:
        if not damaged:
            output.note(f"{process} holds no descriptors")
    else:
        output.line(
            table(
                ["FD", "STATE", "CHARS", "SIZE", "LINES", "PAGES", "CREATED", "PRODUCER", "SOURCE"],
                [_row(descriptor, now) for descriptor in found],
                right=["CHARS", "SIZE", "LINES", "PAGES"],
                cut="SOURCE",
                columns=output.columns(),
            )
        )
    output.passed_over(damaged, as_json=session.as_json)


def _row(descriptor: Descriptor, now_s: float) -> list[str]:
    return [
        descriptor.fd,
        _state(descriptor),
        str(descriptor.chars),
        size(descriptor.bytes),
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
    """Show what a descriptor is: its state, sizes, source and origin."""
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
        ("size", f"{size(found.bytes)} ({found.bytes} bytes of UTF-8)"),
        ("chars", str(found.chars)),
        ("lines", str(found.lines)),
        ("pages", f"{found.pages} of at most {counted(found.page_size, 'character')}"),
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
