"""Store one file: as text or as bytes, which its content decides unless an option does.

A regular file is read as text, and begun again as bytes if it proves not to be UTF-8. Other input cannot be
rewound, so its first 64 KB decide.
"""

from __future__ import annotations

import os
import shlex
import stat as file_stat
from contextlib import nullcontext
from typing import TYPE_CHECKING, BinaryIO, Literal, NamedTuple, cast

from fdstore.cli import output
from fdstore.cli.progress import progress
from fdstore.cli.session import CliSession, run_on
from fdstore.errors import Conflict, InvalidArgument, NotEncoded
from fdstore.text.quantities import format_count, format_size

if TYPE_CHECKING:
    from collections.abc import Callable

    from fdstore.client import Process
    from fdstore.model.records import ContentKind, Descriptor
    from fdstore.store.contents.contents import IngestErrors

    Explain = Callable[[NotEncoded, str, str, bytes, str | None], InvalidArgument]

Errors = Literal["strict", "backslashreplace"]

DECIDING_BYTES = 65_536
"""The first bytes of an input that cannot be rewound, which decide whether it is text."""


class PutOptions(NamedTuple):
    """Options for storing a file. Without a `kind` its content decides; without a `key` it gets the next
    number."""

    kind: ContentKind | None
    encoding: str | None
    errors: Errors
    page_size: int | None
    source: str | None
    media_type: str | None
    key: str | None
    if_absent: bool


def put_file(
    session: CliSession, opened: Process, file: str, binary: BinaryIO | None, options: PutOptions
) -> None:
    """Store a file, opened here if `binary` is None, and print its descriptor. Say on stderr if it is stored
    as bytes because it is not UTF-8."""
    # before a long file is read; storing it checks again
    if options.if_absent and (found := opened.find(str(options.key))) is not None:
        raise Conflict(found.fd, "taken")
    made, head = store_file(opened, file, binary, options)
    is_unexpected = made.kind == "bytes" and options.kind is None
    _print_made(session, made, quietly=is_unexpected)
    if is_unexpected:
        report_bytes(made, opened.id, file, head, options.key)
    elif made.kind == "text" and options.encoding is None:
        _warn_of_other_encodings(file, head, options.errors)


def store_file(
    opened: Process,
    file: str,
    binary: BinaryIO | None,
    options: PutOptions,
    explain: Explain | None = None,
) -> tuple[Descriptor, bytes]:
    """Store a file, opened here if `binary` is None. Return its descriptor and its first bytes. `explain`
    makes the error for a file that is not the text that it must be."""
    from fdstore.files.source import ReadAhead, TextFile, open_source
    from fdstore.store.contents import contents, naming
    from fdstore.text.names import name_id
    from fdstore.text.utf8 import is_utf8

    source = source_of(file, options.source)
    with (
        nullcontext(binary) if binary else open_source(file) as found,
        progress(f"put {source}", _size_of(found)) as tell,
    ):

        def ingest(data: object, errors: IngestErrors) -> Descriptor:
            operation = contents.ingest(
                opened.handle,
                cast("BinaryIO", data),
                source,
                options.page_size,
                errors,
                tell,
                media_type=options.media_type,
                name="" if options.key is None else name_id(options.key),
                expected=naming.expectation(naming.ABSENT if options.if_absent else None),
            )
            return run_on(opened, operation)

        if options.kind == "bytes":
            return ingest(found, "bytes"), b""
        start = found.tell() if _size_of(found) is not None else None
        data: BinaryIO | ReadAhead = found
        if options.kind is None and start is None:
            data = ReadAhead(found, DECIDING_BYTES)
            if not is_utf8(data.head, complete=data.ended):
                return ingest(data, "bytes"), data.head
        text = TextFile(cast("BinaryIO", data), options.encoding, options.errors)
        try:
            return ingest(text, options.errors), text.head
        except NotEncoded as error:
            if options.kind is not None or start is None:
                explained = (explain or explain_options)(error, opened.id, file, text.head, options.key)
                raise explained from error
        found.seek(start)
        return ingest(found, "bytes"), text.head


def source_of(file: str, source: str | None) -> str:
    """Return the name of the source of a file's content."""
    from fdstore.files.source import source_name

    return source or ("stdin" if file == "-" else source_name(file))


def _size_of(binary: BinaryIO) -> int | None:
    """Return the size of a regular file; None for a pipe."""
    found = os.fstat(binary.fileno())
    return found.st_size if file_stat.S_ISREG(found.st_mode) else None


def _print_made(session: CliSession, made: Descriptor, *, quietly: bool) -> None:
    if session.as_json:
        output.document(made)
        return
    output.line(made.fd)
    if quietly:
        return
    sizes = [format_size(made.bytes)]
    if made.kind == "bytes":
        sizes.append(made.media_type)
    else:
        sizes += [format_count(made.lines, "line"), format_count(made.pages, "page")]
    output.note(f"{made.source}: {', '.join(sizes)}")


def file_name(file: str) -> str:
    """Return the name of a file in messages; - is standard input."""
    return "standard input" if file == "-" else file


def _unpacking(command: str, process: str, file: str, key: str | None) -> str:
    """Return the shell command that stores the text in a compressed file."""
    words = ["fdstore", "put", process, "-", *([] if key is None else ["--name", key])]
    way = f"... | {command}" if file == "-" else f"{command} {shlex.quote(file)}"
    return f"{way} | {shlex.join(words)}"


def explain_options(
    error: NotEncoded, process: str, file: str, head: bytes, key: str | None = None
) -> InvalidArgument:
    """Return an error that names the likely format of the bytes, and the way to store them. `head` is the
    beginning of the file."""
    from fdstore.text.encodings import packed_as, wide_encoding_of

    if packed := packed_as(head):
        way = _unpacking(packed.command, process, file, key)
        return InvalidArgument(file_name(file), f"this is {packed.name}; store the text in it: {way}")
    if error.encoding == "utf-8" and (wide := wide_encoding_of(head)):
        problem = f"this is {wide.upper()}, not UTF-8; put it with --encoding {wide}"
        return InvalidArgument(file_name(file), problem)
    return InvalidArgument(
        file_name(file),
        f"{error.problem}; name its encoding, as --encoding latin-1, keep such bytes as \\xNN with "
        "--errors backslashreplace, or store it as it is with --bytes",
    )


def report_bytes(made: Descriptor, process: str, file: str, head: bytes, key: str | None = None) -> None:
    """Say that a file is stored as bytes, and how to store its text if it has one."""
    from fdstore.text.encodings import packed_as, wide_encoding_of
    from fdstore.text.media_types import BYTES_TYPE

    what, advice = "not UTF-8", ""
    if packed := packed_as(head):
        what = packed.name
        advice = f"; to store the text in it: {_unpacking(packed.command, process, file, key)}"
    elif wide := wide_encoding_of(head):
        what, advice = wide.upper(), f"; to store it as text: --encoding {wide}"
    elif made.media_type == BYTES_TYPE and b"\0" not in head:
        advice = "; if it is text: --encoding latin-1, or --text to see what is not UTF-8"
    size = f"{made.media_type}, {format_size(made.bytes)}"
    output.say(f"fdstore: {file_name(file)} is {what}, stored as bytes ({size}){advice}")


def _warn_of_other_encodings(file: str, head: bytes, errors: str) -> None:
    """Warn if the stored text looks like another encoding or a compressed file."""
    from fdstore.text.encodings import packed_as, wide_encoding_of

    name = file_name(file)
    if wide := wide_encoding_of(head):
        output.say(
            f"fdstore: warning: {name} looks like {wide.upper()}; if it is, put it with --encoding {wide}"
        )
    elif errors != "strict" and (packed := packed_as(head)):
        output.say(
            f"fdstore: warning: {name} is {packed.name}, stored as it is; `{packed.command}` unpacks it"
        )
