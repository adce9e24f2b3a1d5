"""Have a document read by a child, with limits, into a file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, NamedTuple

from fdstore.errors import InvalidArgument, MissingExtra, TimedOut, TooLarge
from fdstore.files.documents.kinds import DOCUMENTS, EXTRA, OLD_OFFICE, PACKAGES, type_by_head
from fdstore.files.source import next_block
from fdstore.files.unpacking import RATIO_FROM_BYTES, Damaged, Meter, UnpackLimits
from fdstore.files.zip_archive import ZIP_TYPE, check_document, document_type_of, read_directory
from fdstore.setup.optional_packages import how_to_install, is_installed
from fdstore.text.media_types import type_of_file
from fdstore.text.quantities import format_bound

MEMORY_BYTES = 2 << 30
"""The memory of the child: calamine takes nine times the size of a workbook."""

CPU_S = 120
WALL_S = 4 * CPU_S
"""A machine may be busy; a child that waits for something never ends."""

MAX_REPORT_BYTES = 4096
HEAD_BYTES = 512
UNREADABLE = "its text cannot be read"

FOR_THE_OTHER = ("memory", "date", "damaged")
"""The problems with which a document is given to the other reader of its kind, if there is one."""

_START = (
    "import sys, json; sys.path[:], given = json.loads(sys.argv[1]); "
    "from fdstore.files.documents.child import main; main(*given)"
)


class ReadLimits(NamedTuple):
    """Limits of the child that reads a document."""

    memory_bytes: int = MEMORY_BYTES
    cpu_s: int = CPU_S
    wall_s: float = WALL_S


def can_convert() -> bool:
    """Return whether the packages that read documents are installed."""
    return all(map(is_installed, PACKAGES))


def missing_packages() -> MissingExtra:
    """Return the error that names the extra."""
    missing = next((each for each in PACKAGES if not is_installed(each)), PACKAGES[0])
    return MissingExtra(missing, how_to_install(EXTRA))


def may_be_document(head: bytes, name: str) -> bool:
    """Return whether a file of this name that begins so can be a document."""
    return type_of_file(head) == ZIP_TYPE or type_by_head(head, name) is not None


def document_type(file: BinaryIO, name: str) -> str | None:
    """Return the media type of a document that can be converted, None for any other file; `name` is its name.
    The file is then at its beginning."""
    file.seek(0)
    head = next_block(file, HEAD_BYTES)
    file.seek(0)
    if type_of_file(head) != ZIP_TYPE:
        return type_by_head(head, name)
    try:
        return document_type_of(file, read_directory(file, UnpackLimits())) or None
    except Damaged:
        return None
    finally:
        file.seek(0)


def convert(
    file: BinaryIO,
    media_type: str,
    shown: str,
    target: BinaryIO,
    unpack: UnpackLimits = UnpackLimits(),  # noqa: B008
    limits: ReadLimits = ReadLimits(),  # noqa: B008
) -> int:
    """Write the text of a document of this media type to `target`, a file of the system like `file`. Return
    its size in bytes. `unpack` limits the text.

    Raises `InvalidArgument` (encrypted, damaged, no text), `TooLarge`, `TimedOut`.
    """
    size = os.fstat(file.fileno()).st_size
    _check(file, size, shown, unpack)
    text_bytes = min(unpack.bytes, max(RATIO_FROM_BYTES, unpack.ratio * size))
    kind = DOCUMENTS[media_type]
    problems = []
    for reader in filter(None, (kind.reader, kind.other_reader)):
        target.seek(0)
        target.truncate()
        with _at_its_beginning(file):
            status, report = _run_child(reader, file, target, text_bytes, limits)
        problems.append(_problem_of(report, status))
        if problems[-1][0] not in FOR_THE_OTHER:
            break
    first, last = problems[0], problems[-1]
    _raise_problem(*(first if first[0] == last[0] else last), shown, text_bytes, unpack, limits)
    target.seek(0, os.SEEK_END)
    return target.tell()


@contextmanager
def _at_its_beginning(file: BinaryIO) -> Iterator[None]:
    """Set the position of an open file to 0, for a child that shares it; and back, since a buffer relies on
    it."""
    position = os.lseek(file.fileno(), 0, os.SEEK_CUR)
    os.lseek(file.fileno(), 0, os.SEEK_SET)
    try:
        yield
    finally:
        os.lseek(file.fileno(), position, os.SEEK_SET)


def _run_child(
    reader: str, file: BinaryIO, target: BinaryIO, text_bytes: int, limits: ReadLimits
) -> tuple[int, bytes]:
    """Return how the child has ended, and its report."""
    reading, writing = os.pipe()
    with open(reading, "rb", buffering=0) as reports:
        with open(writing, "wb", buffering=0):
            given = [reader, writing, limits.memory_bytes, limits.cpu_s, text_bytes, _filter()]
            path = [each for each in sys.path if os.path.isabs(each)]
            with subprocess.Popen(
                [sys.executable, "-I", "-c", _START, json.dumps([path, given])],
                stdin=file,
                stdout=target,
                stderr=subprocess.DEVNULL,
                pass_fds=(writing,),
                env={},
                cwd="/",
            ) as child:
                try:
                    status = child.wait(limits.wall_s)
                except subprocess.TimeoutExpired:
                    child.kill()
                    status = -signal.SIGXCPU
                except BaseException:
                    child.kill()
                    raise
        return status, reports.read(MAX_REPORT_BYTES)


def _check(file: BinaryIO, size: int, shown: str, unpack: UnpackLimits) -> None:
    """Look at a document before it is given to a reader."""
    file.seek(0)
    head = next_block(file, HEAD_BYTES)
    file.seek(0)
    if head.startswith(OLD_OFFICE):
        raise InvalidArgument(shown, f"{UNREADABLE}: it is encrypted, and has a password")
    if type_of_file(head) == ZIP_TYPE:
        try:
            check_document(file, Meter(unpack).of(shown, size))
        except Damaged as error:
            raise InvalidArgument(shown, f"{UNREADABLE}: it is damaged: {error}") from error


def _problem_of(report: bytes, status: int) -> tuple[str, str]:
    """Return the problem that a child reported, and what it said about it."""
    if status == -signal.SIGXCPU:
        return "time", ""
    try:
        found = json.loads(report)
        return str(found["problem"]), str(found["said"])
    except (ValueError, TypeError, KeyError):
        # without a report it died: libraries abort if they get no memory
        return ("memory", "") if status == -signal.SIGABRT else ("damaged", "its reader has crashed")


def _raise_problem(
    problem: str, said: str, shown: str, text_bytes: int, unpack: UnpackLimits, limits: ReadLimits
) -> None:
    match problem:
        case "":
            return
        case "time":
            raise TimedOut(f"the end of reading {shown}", limits.cpu_s)
        case "memory":
            bound = format_bound(limits.memory_bytes)
            raise InvalidArgument(shown, f"{UNREADABLE}: that takes more than {bound} of memory")
        case "text":
            raise TooLarge(
                f"the text of {shown}", text_bytes + 1, text_bytes, unpack.advice("ratio"), "bytes"
            )
        case _:
            raise InvalidArgument(shown, f"{UNREADABLE}: {said}")


def _filter() -> str:
    """Return the system calls that the child may not make, as a filter in hexadecimal digits."""
    from fdstore.setup.system_calls import system_call_filter

    if sys.platform != "linux":
        return ""
    return (system_call_filter() or b"").hex()
