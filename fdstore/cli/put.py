"""The verb put: store files, or stream from a pipe."""

from __future__ import annotations

import os
import shlex
import stat as file_stat
import sys
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from typing import TYPE_CHECKING, BinaryIO, Literal, cast

import click

from fdstore.cli import output
from fdstore.cli.interrupts import Interrupted, as_interrupts
from fdstore.cli.progress import progress
from fdstore.cli.session import Session, verb
from fdstore.cli.tables import format_count, format_size
from fdstore.errors import FDStoreError, InvalidArgument, NotEncoded, PathRefused, TargetMissing

if TYPE_CHECKING:
    from fdstore.client import Process
    from fdstore.files.source import TextFile
    from fdstore.records import Descriptor

    Errors = Literal["strict", "backslashreplace"]

LIVE_BYTES = 65_536
"""The maximum size of one read from a stream."""

FILE_ERRORS = (InvalidArgument, PathRefused, TargetMissing)
"""Errors that concern one file and not the others."""


@verb
@click.argument("process", metavar="PROC")
@click.argument("files", metavar="FILE|-...", nargs=-1, required=True, type=click.Path(allow_dash=True))
@click.option("--encoding", metavar="NAME", help="Encoding of the files, as utf-16. [default: utf-8]")
@click.option(
    "--errors",
    type=click.Choice(["strict", "backslashreplace"]),
    default="strict",
    show_default=True,
    help="Invalid bytes: refuse the file, or store them as \\xNN.",
)
@click.option("--page-size", type=click.IntRange(1), metavar="N", help="Characters per page. [default: 4000]")
@click.option("--source", metavar="TEXT", help="Name of the source. [default: the file's name, or stdin]")
@click.option("--stream", is_flag=True, help="Store the input as it arrives; others can read it meanwhile.")
def put(
    session: Session,
    process: str,
    files: tuple[str, ...],
    encoding: str | None,
    errors: Errors,
    page_size: int | None,
    source: str | None,
    stream: bool,
) -> None:
    """Store each FILE, or standard input for -, and print its descriptor.

    The process is created if it does not exist. Files may have any size; they are read in chunks. If a file
    cannot be stored, the others still are; the exit code is then 1.

    With --stream the descriptor is printed immediately, and readers get input some ten milliseconds after it
    arrives. The end of the input ends the stream; if this command ends before, the stream is broken.

    \b
    fdstore put triage build.log test.log
    fdstore put triage notes.txt --encoding utf-16
    make 2>&1 | fdstore put triage - --stream --source make
    """
    if len(files) > 1 and (stream or source is not None):
        raise click.UsageError(f"{'--stream' if stream else '--source'} needs a single file")
    if files.count("-") > 1:
        raise click.UsageError("standard input can be stored only once")
    with ExitStack() as held, as_interrupts():
        if encoding is not None:
            _check_encoding(encoding)
        # open the files first: a wrong file name must not leave an empty process behind
        sources = [(file, held.enter_context(_to_store(file, last=len(files) == 1))) for file in files]
        open_source = held.enter_context(session.process_or_new(process))
        if stream:
            _put_live(session, open_source, files[0], sources[0][1], encoding, errors, page_size, source)
            return
        failed: FDStoreError | None = None
        for file, binary in sources:
            try:
                _put_file(session, open_source, file, binary, encoding, errors, page_size, source)
            except FILE_ERRORS as error:
                if failed is not None:
                    output.report(failed, as_json=session.as_json)
                failed = error
        if failed is not None:
            raise failed


def _check_encoding(name: str) -> None:
    from fdstore.text.encodings import make_decoder

    try:
        make_decoder(name, "strict")
    except InvalidArgument as error:
        raise click.BadParameter(error.problem, param_hint="--encoding") from error


def _to_store(file: str, *, last: bool) -> AbstractContextManager[BinaryIO | None]:
    """Open a file; None for a regular one among several, which is only opened as a check: there may be more
    files than descriptors."""
    from fdstore.files.source import open_source

    if file != "-":
        if not last and os.path.isfile(file):
            with open_source(file):
                return nullcontext(None)
        return open_source(file)
    if sys.stdin is None:
        raise InvalidArgument("-", "standard input is closed; name a file, or pipe something in")
    if sys.stdin.isatty():
        output.note("reading from the terminal; Ctrl-D on an empty line ends it")
        # unbuffered: a buffered file would read again after the Ctrl-D that ended a short read
        return open(sys.stdin.fileno(), "rb", buffering=0, closefd=False)
    return nullcontext(sys.stdin.buffer)


def _put_file(
    session: Session,
    open_source: Process,
    file: str,
    binary: BinaryIO | None,
    encoding: str | None,
    errors: Errors,
    page_size: int | None,
    source: str | None,
) -> None:
    from fdstore.files.source import TextFile
    from fdstore.files.source import open_source as open_file

    source = _source(file, source)
    with (
        nullcontext(binary) if binary else open_file(file) as found,
        progress(f"put {source}", _size_of(found)) as tell,
    ):
        text = TextFile(found, encoding, errors)
        try:
            made = open_source.ingest(cast("BinaryIO", text), source, page_size, errors, tell)
        except NotEncoded as error:
            raise _explained(error, open_source.id, file, text) from error
    _print_made(session, file, made)
    if encoding is None:
        _warn_of_other_encodings(file, text.head, errors)


def _source(file: str, source: str | None) -> str:
    from fdstore.files.source import source_name

    return source or ("stdin" if file == "-" else source_name(file))


def _size_of(binary: BinaryIO) -> int | None:
    """Return the size of a regular file; None for a pipe."""
    found = os.fstat(binary.fileno())
    return found.st_size if file_stat.S_ISREG(found.st_mode) else None


def _print_made(session: Session, file: str, made: Descriptor) -> None:
    if session.as_json:
        output.document(made)
        return
    output.line(made.fd)
    sizes = (
        f"{format_size(made.bytes)}, {format_count(made.lines, 'line')}, {format_count(made.pages, 'page')}"
    )
    output.note(f"{made.source}: {sizes}")


def _explained(error: NotEncoded, process: str, file: str, text: TextFile) -> InvalidArgument:
    """Return an error that names the likely format of the bytes, and the way to store them."""
    from fdstore.text.encodings import packed_as, wide_encoding_of

    name = "standard input" if file == "-" else file
    if packed := packed_as(text.head):
        words = f"fdstore put {shlex.quote(process)} -"
        way = f"... | {packed.command}" if file == "-" else f"{packed.command} {shlex.quote(file)}"
        return InvalidArgument(name, f"this is {packed.name}; store the text in it: {way} | {words}")
    if error.encoding == "utf-8" and (wide := wide_encoding_of(text.head)):
        return InvalidArgument(name, f"this is {wide.upper()}, not UTF-8; put it with --encoding {wide}")
    return InvalidArgument(
        name,
        f"{error.problem}; name its encoding, as --encoding latin-1, or keep such bytes as \\xNN with "
        "--errors backslashreplace",
    )


def _warn_of_other_encodings(file: str, head: bytes, errors: str) -> None:
    """Warn if the stored text looks like another encoding or a compressed file."""
    from fdstore.text.encodings import packed_as, wide_encoding_of

    name = "standard input" if file == "-" else file
    if wide := wide_encoding_of(head):
        output.say(
            f"fdstore: warning: {name} looks like {wide.upper()}; if it is, put it with --encoding {wide}"
        )
    elif errors != "strict" and (packed := packed_as(head)):
        output.say(
            f"fdstore: warning: {name} is {packed.name}, stored as it is; `{packed.command}` unpacks it"
        )


def _put_live(
    session: Session,
    open_source: Process,
    file: str,
    binary: BinaryIO | None,
    encoding: str | None,
    errors: Errors,
    page_size: int | None,
    source: str | None,
) -> None:
    """Store input as it arrives, until its end. Any error or signal before that breaks the stream."""
    from fdstore.client.write_buffer import check_reason, reason_of
    from fdstore.files.source import TextFile

    assert binary is not None
    text = TextFile(binary, encoding or "utf-8", errors)
    out = open_source.open_stream(_source(file, source), page_size)
    try:
        if session.as_json:
            output.document(open_source.stat(out.fd))
        else:
            output.line(out.fd)
        while chunk := text.read_now(LIVE_BYTES):
            out.write(chunk.decode("utf-8"))
        out.end()
    except BaseException as error:
        if isinstance(error, NotEncoded):
            error = _explained(error, open_source.id, file, text)
        match error:
            case Interrupted(number=number):
                reason = f"signal {number}"
            case KeyboardInterrupt():
                reason = "interrupted"
            case _:
                reason = reason_of(error)
        with suppress(FDStoreError):
            out.fail(check_reason(reason))
        raise error
    if session.as_json:
        output.document(open_source.stat(out.fd))
