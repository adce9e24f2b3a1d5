"""Store one of what was found: as text or as bytes, which its content decides unless an option does.

A regular file is read as text, and begun again as bytes if it proves not to be UTF-8. Other input cannot be
rewound, so its first 64 KB decide. Members of packed files were read before, so what they are is known.
"""

from __future__ import annotations

import shlex
from io import BufferedReader
from typing import TYPE_CHECKING, BinaryIO, Literal, NamedTuple, cast

from fdstore.cli import output
from fdstore.cli.session import CliSession, run_on
from fdstore.errors import Conflict, InvalidArgument, NotEncoded
from fdstore.text.quantities import format_count, format_size

if TYPE_CHECKING:
    from collections.abc import Callable

    from fdstore.cli.members import Stored, StoringProgress
    from fdstore.client import Process
    from fdstore.files.members import Member
    from fdstore.model.records import ContentKind, Descriptor
    from fdstore.store.contents.contents import IngestErrors
    from fdstore.text.remedies import Remedy

    Explain = Callable[[NotEncoded, str, str, bytes, str | None], InvalidArgument]

Errors = Literal["strict", "backslashreplace"]


class PutOptions(NamedTuple):
    """Options for storing a file. Without a `kind` its content decides; `is_forced` holds for members of
    folders and archives too. Without a `key` it gets its own name, or the next number."""

    kind: ContentKind | None
    is_forced: bool
    encoding: str | None
    errors: Errors
    page_size: int | None
    source: str | None
    media_type: str | None
    key: str | None
    if_absent: bool


def put_member(
    session: CliSession,
    opened: Process,
    member: Member,
    options: PutOptions,
    *,
    stored: Stored,
    progress: StoringProgress,
    is_alone: bool,
) -> None:
    """Store one of what was found, and print its descriptor. Say on stderr if it is stored as bytes because
    it is not UTF-8; of the members of folders and archives `stored` says it at the end."""
    key = key_of(member, options)
    # before a long file is read; storing it checks again
    if options.if_absent and (found := opened.find(str(key))) is not None:
        raise Conflict(found.fd, "taken")
    with progress.of(member) as tell:
        made, head = store_member(opened, member, options, tell)
    is_unexpected = made.kind == "bytes" and options.kind != "bytes" and member.of_document is None
    speaks = member.is_named or is_alone
    _print_made(session, made, quietly=is_unexpected or not speaks)
    if not speaks:
        count(stored, member, made, head)
    elif is_unexpected:
        report_bytes(made, opened.id, member.shown, head, options.key)
    elif made.kind == "text" and options.encoding is None:
        _warn_of_other_encodings(member.shown, head)


def count(stored: Stored, member: Member, made: Descriptor, head: bytes) -> None:
    """Count a member of a folder or an archive that was stored."""
    from fdstore.text.media_types import IMAGE_TYPES

    if made.kind == "text" or member.of_document is not None:
        stored.add(member.shown, made.bytes)
        return
    remedy = None if made.media_type in IMAGE_TYPES else remedy_for(member.shown, head)
    stored.add_bytes(member.shown, made.bytes, may_be_text=may_be_text(made, head), remedy=remedy)


def key_of(member: Member, options: PutOptions) -> str | None:
    """Return the name that a member gets."""
    from fdstore.files.unwrapping import TEXT_SUFFIX

    if options.key is not None and member.of_document == "text":
        return options.key + TEXT_SUFFIX
    return options.key or member.key


def kind_for(member: Member, options: PutOptions, head: bytes) -> ContentKind | None:
    """Return as what a member that begins so is to be stored; None if its content decides. What was named
    itself must be what the options say; of a folder or an archive, only what can be text is decoded."""
    from fdstore.text.media_types import is_binary, type_of_file

    if member.of_document is not None:
        return member.kind
    if options.kind == "bytes" or member.is_named or options.is_forced:
        return options.kind
    if options.encoding is not None:
        return "bytes" if type_of_file(head) else "text"
    if options.errors == "backslashreplace":
        return "bytes" if is_binary(head) or type_of_file(head) else "text"
    return member.kind


def store_member(
    opened: Process,
    member: Member,
    options: PutOptions,
    tell: Callable[[int], None] | None,
    explain: Explain | None = None,
) -> tuple[Descriptor, bytes]:
    """Store one of what was found, in bounded memory. Return its descriptor and its first bytes. `explain`
    makes the error for one that is not the text that it must be."""
    from fdstore.files.source import ReadAhead, TextFile
    from fdstore.store.contents import contents, naming
    from fdstore.text.media_types import BYTES_TYPE, media_type_of, type_of_file
    from fdstore.text.names import name_id
    from fdstore.text.utf8 import is_utf8

    key = key_of(member, options)

    def ingest(data: object, errors: IngestErrors) -> Descriptor:
        media_type = member.media_type if options.media_type is None else options.media_type
        if media_type is None and member.kind is not None:  # the name of an archive says nothing of a member
            media_type = media_type_of("bytes" if errors == "bytes" else "text", key or "", member.head)
            if media_type == BYTES_TYPE:
                media_type = type_of_file(member.head) or media_type
        operation = contents.ingest(
            opened.handle,
            cast("BinaryIO", data),
            options.source or member.source,
            options.page_size,
            errors,
            tell,
            media_type=media_type,
            name="" if key is None else name_id(key),
            expected=naming.expectation(naming.ABSENT if options.if_absent else None),
        )
        return run_on(opened, operation)

    with member.open() as data:
        head = data.peek() if isinstance(data, BufferedReader) and not member.is_named else member.head
        kind = kind_for(member, options, head)
        if kind == "bytes":
            return ingest(data, "bytes"), head
        encoding = None if member.of_document is not None else options.encoding
        is_read_once = isinstance(data, ReadAhead)
        if isinstance(data, ReadAhead) and kind is None and not is_utf8(data.head, complete=data.ended):
            return ingest(data, "bytes"), data.head
        text = TextFile(cast("BinaryIO", data), encoding, options.errors)
        try:
            return ingest(text, options.errors), text.head
        except NotEncoded as error:
            if kind is not None or is_read_once:
                raise (explain or explain_options)(error, opened.id, member.shown, text.head, key) from error
    with member.open() as data:
        return ingest(data, "bytes"), text.head


def may_be_text(made: Descriptor, head: bytes) -> bool:
    """Return whether bytes look like a text in another encoding, or with some bytes that are none."""
    from fdstore.text.media_types import BYTES_TYPE

    return made.media_type == BYTES_TYPE and b"\0" not in head


def source_of(file: str, source: str | None) -> str:
    """Return the name of the source of a file's content."""
    from fdstore.files.source import source_name

    return source or ("stdin" if file == "-" else source_name(file))


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


def _remedied(remedy: Remedy, process: str, file: str, key: str | None) -> str:
    """Return the shell command that stores the text that a command makes of a file."""
    words = ["fdstore", "put", process, "-", *([] if key is None else ["--name", key])]
    return f"{remedy.on(path_of(file))} | {shlex.join(words)}"


def path_of(shown: str) -> str:
    """Return the path of a file that is shown by this name; - is standard input."""
    return "-" if shown == "standard input" else shown


def remedy_for(file: str, head: bytes) -> Remedy | None:
    """Return what a file that begins so is, by its name and its first bytes, and the command that makes text
    of it; None for a kind that is not known."""
    from fdstore.text.encodings import wide_encoding_of
    from fdstore.text.remedies import remedy_of, wide_remedy

    if (known := remedy_of(file, head)) or not (wide := wide_encoding_of(head)):
        return known
    return wide_remedy(wide)


def explain_options(
    error: NotEncoded, process: str, file: str, head: bytes, key: str | None = None
) -> InvalidArgument:
    """Return an error that names the likely format of the bytes, and the way to store them. `head` is the
    beginning of the file."""
    from fdstore.text.encodings import wide_encoding_of

    if error.encoding == "utf-8" and (wide := wide_encoding_of(head)):
        problem = f"this is {wide.upper()}, not UTF-8; put it with --encoding {wide}"
        return InvalidArgument(file, problem)
    if remedy := remedy_for(file, head):
        way = f"; store the text in it: {_remedied(remedy, process, file, key)}" if remedy.command else ""
        return InvalidArgument(file, f"this is {remedy.what}{way}")
    return InvalidArgument(
        file,
        f"{error.problem}; name its encoding, as --encoding latin-1, keep such bytes as \\xNN with "
        "--errors backslashreplace, or store it as it is with --bytes",
    )


def report_bytes(made: Descriptor, process: str, file: str, head: bytes, key: str | None = None) -> None:
    """Say that a file is stored as bytes, and how to store its text if it has one."""
    from fdstore.text.encodings import wide_encoding_of
    from fdstore.text.media_types import IMAGE_TYPES

    what, advice = "not UTF-8", ""
    if wide := wide_encoding_of(head):
        what, advice = wide.upper(), f"; to store it as text: --encoding {wide}"
    elif made.media_type not in IMAGE_TYPES and (remedy := remedy_for(file, head)):  # models see images
        what = remedy.what
        if remedy.command:
            advice = f"; to store the text in it: {_remedied(remedy, process, file, key)}"
    elif may_be_text(made, head):
        advice = "; if it is text: --encoding latin-1, or --text to see what is not UTF-8; --errors "
        advice += "backslashreplace stores that as \\xNN"
    size = f"{made.media_type}, {format_size(made.bytes)}"
    output.say(f"fdstore: {file} is {what}, stored as bytes ({size}){advice}")


def _warn_of_other_encodings(file: str, head: bytes) -> None:
    """Warn if the stored text looks like another encoding."""
    from fdstore.text.encodings import wide_encoding_of

    if wide := wide_encoding_of(head):
        output.say(
            f"fdstore: warning: {file} looks like {wide.upper()}; if it is, put it with --encoding {wide}"
        )
