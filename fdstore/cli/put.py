"""The verb put: store files, folders and packed files, or stream from a pipe."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, suppress
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from fdstore.cli import output
from fdstore.cli.interrupts import Interrupted, as_interrupts
from fdstore.cli.members import (
    Stored,
    StoringProgress,
    check_members,
    choice_of,
    find,
    member_options,
    open_stdin,
)
from fdstore.cli.names import KEY
from fdstore.cli.put_file import Errors, PutOptions, explain_options, put_member, report_bytes, source_of
from fdstore.cli.session import CliSession, as_usage_errors, verb
from fdstore.errors import REFUSALS, FDStoreError, InvalidArgument, NotEncoded, PathRefused, TargetMissing
from fdstore.text.byte_pages import DEFAULT_BYTE_PAGE_SIZE
from fdstore.text.paging import DEFAULT_PAGE_SIZE

if TYPE_CHECKING:
    from fdstore.client import Process
    from fdstore.files.members import Members

LIVE_BYTES = 65_536
"""The maximum size of one read from a stream."""

FILE_ERRORS = (InvalidArgument, PathRefused, TargetMissing)
"""Errors that concern one file and not the others."""


@verb
@click.argument("process", metavar="PROC")
@click.argument("paths", metavar="PATH|-...", nargs=-1, required=True, type=click.Path(allow_dash=True))
@click.option("--name", "key", metavar="KEY", type=KEY, help="Store as name:KEY; replaces what it meant.")
@click.option("--if-absent", is_flag=True, help="With --name: fail if the name exists.")
@click.option(
    *("--name-prefix", "name_prefix"),
    metavar="P",
    default="",
    help="Put P before all names, as runs/monday/.",
)
@click.option("--text", "as_text", is_flag=True, help="Store text, or fail if the file is not text.")
@click.option("--bytes", "as_bytes", is_flag=True, help="Store bytes, whatever they are; unpack nothing.")
@click.option("--encoding", metavar="NAME", help="Encoding of the text, as utf-16. [default: utf-8]")
@click.option(
    "--errors",
    type=click.Choice(["strict", "backslashreplace"]),
    help="Invalid bytes in text: refuse the file, or store them as \\xNN.",
)
@member_options
@click.option("--media-type", metavar="TYPE", help="As image/png. [default: by the file's name]")
@click.option(
    *("--page-size", "page_size"),
    type=click.IntRange(1),
    metavar="N",
    help=f"Characters per page; of bytes, bytes. [default: {DEFAULT_PAGE_SIZE}; {DEFAULT_BYTE_PAGE_SIZE}]",
)
@click.option("--source", metavar="TEXT", help="Name of the source. [default: the file's name, or stdin]")
@click.option("--stream", is_flag=True, help="Store as it arrives; others can read it meanwhile.")
def put(
    session: CliSession,
    process: str,
    paths: tuple[str, ...],
    key: str | None,
    if_absent: bool,
    name_prefix: str,
    as_text: bool,
    as_bytes: bool,
    encoding: str | None,
    errors: Errors | None,
    media_type: str | None,
    page_size: int | None,
    source: str | None,
    stream: bool,
    **taken: Any,
) -> None:
    """Store files, folders and packed files, or standard input for -, and print their descriptors.

    The process is created if it does not exist. A file gets the next number. What is in a folder or an
    archive gets names: `logs` gives name:logs/a/b.log, `logs/` and `.` give name:a/b.log, logs.tar.gz gives
    name:logs.tar.gz/a/b.log, and app.log.gz is name:app.log. Files may have any size; they are read in
    chunks. A path that does not exist is an error before anything is stored. If a file that is there cannot
    be stored, the others still are; the exit code is then 1.

    Of folders, hidden names, what .gitignore files say, links and special files are left out, and counted.
    Packed are gzip, bzip2, xz, Zstandard, zip and tar, by their content. They are read to their ends before
    anything is stored; what would unpack to too much is refused, and members with an absolute name, `..`,
    links and devices are left out: then the exit code is 1. An archive in an archive is stored as bytes.

    A document (PDF, DOCX, XLSX, ODS, PPTX, EPUB) becomes two contents: report.pdf gives name:report.pdf, its
    bytes, and name:report.pdf.txt, its text. Without the extra `documents` its bytes are stored.

    What is not UTF-8 is stored as bytes, with a line on standard error, unless --text, --encoding or --errors
    is given. The first 64 KB of a pipe decide; with --stream, what arrives first.

    With --stream the descriptor is printed immediately, and readers get input some ten milliseconds after it
    arrives. The end of the input ends the stream; if this command ends before, the stream is broken. A Redis
    that refuses writes for a while is waited for.

    \b
    fdstore put triage build.log photo.png
    fdstore put triage src --exclude '*.min.js'
    fdstore put triage logs.tar.gz --name-prefix monday/
    fdstore put triage report.pdf figures.xlsx
    fdstore put triage notes.txt --encoding utf-16
    fdstore put triage plan.md --name notes/plan.md
    make 2>&1 | fdstore put triage - --stream --source make
    """
    from fdstore.text.encodings import make_decoder
    from fdstore.text.media_types import check_media_type

    for option, value in (("--stream", stream), ("--source", source), ("--name", key)):
        if value and len(paths) > 1:
            raise click.UsageError(f"{option} needs a single file")
    if paths.count("-") > 1:
        raise click.UsageError("standard input can be stored only once")
    if if_absent and key is None:
        raise click.UsageError("--if-absent needs --name")
    _refuse_both("--name", key is not None, {"--name-prefix": name_prefix})
    _refuse_both("--bytes", as_bytes, {"--text": as_text, "--encoding": encoding, "--errors": errors})
    _refuse_both(
        "--stream", stream, {"--name": key, "--name-prefix": name_prefix, "--media-type": media_type}
    )
    if encoding is not None:
        with as_usage_errors("--encoding"):
            make_decoder(encoding, "strict")
    if media_type is not None:
        with as_usage_errors("--media-type"):
            media_type = check_media_type(media_type)
    is_text = as_text or encoding is not None or errors is not None
    options = PutOptions(
        kind="bytes" if as_bytes else "text" if is_text else None,
        is_forced=as_text,
        encoding=encoding,
        errors=errors or "strict",
        page_size=page_size,
        source=source,
        media_type=media_type,
        key=key,
        if_absent=if_absent,
    )
    choice = choice_of(
        **taken,
        prefix=name_prefix,
        unpack=not as_bytes,
        otherwise="--bytes stores it as it is",
        apart="; or store it by a command of its own with another --name-prefix",
    )
    with ExitStack() as held, as_interrupts():
        if stream:
            binary = held.enter_context(_open_live(paths[0]))
            opened = held.enter_context(session.process_or_new(process))
            _put_live(session, opened, paths[0], binary, options)
            return
        # look at the files first: a wrong file name must not leave an empty process behind
        found = held.enter_context(find(paths, choice))
        _check_one(paths[0], found, {"--name": key, "--media-type": media_type, "--source": source})
        _put_all(session, held.enter_context(session.process_or_new(process)), found, options)


def _check_one(path: str, found: Members, options: Mapping[str, str | None]) -> None:
    """Refuse options that are for one content where there are several."""
    for option, value in options.items():
        count = sum(member.of_document != "text" for member in found.members)
        if value is not None and count != 1:
            problem = f"{path} has {count} contents, and it is for one"
            raise InvalidArgument(option, f"{problem}; --name-prefix stands before all names")


def _put_all(session: CliSession, opened: Process, found: Members, options: PutOptions) -> None:
    """Store what was found, and say what was not."""
    check_members(opened, found, options)
    stored, progress = Stored(), StoringProgress("put", found.members)
    failed: FDStoreError | None = None
    for member in found.members:
        try:
            put_member(
                *(session, opened, member, options),
                stored=stored,
                progress=progress,
                is_alone=len(found.members) == 1,
            )
        except FILE_ERRORS as error:
            if failed is not None:
                output.report(failed, as_json=session.as_json)
            failed = error
    stored.report(found, as_json=session.as_json)
    if failed is not None:
        raise failed
    if found.odd:
        click.get_current_context().exit(1)


def _refuse_both(option: str, given: bool, others: Mapping[str, object]) -> None:
    for other, value in others.items():
        if given and value:
            raise click.UsageError(f"{option} and {other} exclude each other")


def _open_live(file: str) -> AbstractContextManager[BinaryIO]:
    from fdstore.files.source import open_source

    return open_stdin() if file == "-" else open_source(file)


def _put_live(session: CliSession, opened: Process, file: str, binary: BinaryIO, options: PutOptions) -> None:
    """Store input as it arrives, until its end. Any error or signal before that breaks the stream. A Redis
    that refuses is waited for."""
    from fdstore.agents.runtime.store_wait import WaitLog, until_taken
    from fdstore.client.write_buffer import check_reason, reason_of
    from fdstore.files.source import TextFile
    from fdstore.model.ends import INTERRUPTED, SIGNAL
    from fdstore.text.encodings import HEAD_BYTES
    from fdstore.text.utf8 import is_utf8

    waiting = WaitLog(logging.getLogger("fdstore.streams"), "the input waits for the store")

    def kept(step: Callable[[], None]) -> None:
        """Have what was read stored: Redis may refuse for longer than a call waits."""
        until_taken(step, threading.Event(), waiting, REFUSALS)

    def write(piece: str | bytes) -> None:
        try:
            out.write(piece)
        except REFUSALS:
            kept(out.flush)  # the writer has buffered the piece

    head, shown = b"", "standard input" if file == "-" else file
    out = opened.open_stream(source_of(file, options.source), options.page_size)
    try:
        if session.as_json:
            output.document(opened.stat(out.fd))
        else:
            output.line(out.fd)
        chunk = os.read(binary.fileno(), LIVE_BYTES)
        is_bytes = options.kind == "bytes" or (options.kind is None and not is_utf8(chunk, complete=False))
        head = chunk[:HEAD_BYTES]
        if is_bytes:
            while chunk:
                write(chunk)
                chunk = os.read(binary.fileno(), LIVE_BYTES)
        elif chunk:
            text = TextFile(binary, options.encoding or "utf-8", options.errors, unread=chunk)
            while chunk := text.read_now(LIVE_BYTES):
                write(chunk.decode("utf-8"))
        kept(out.end)
    except BaseException as error:
        if isinstance(error, NotEncoded):
            error = explain_options(error, opened.id, shown, head)
        match error:
            case Interrupted(number=number):
                reason = SIGNAL.text(number)
            case KeyboardInterrupt():
                reason = INTERRUPTED.name
            case _:
                reason = reason_of(error)
        with suppress(FDStoreError):
            out.fail(check_reason(reason))
        raise error
    made = opened.stat(out.fd)
    if session.as_json:
        output.document(made)
    if is_bytes and options.kind is None:
        report_bytes(made, opened.id, shown, head)
