"""What `put` and `ask` share: the options that say what is taken of folders and packed files, finding it, its
progress, and what is said about the rest."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

import click

from fdstore.cli import output
from fdstore.cli.progress import PAUSE_S, draw, progress, progress_line
from fdstore.cli.session import as_usage_errors, run_on
from fdstore.errors import InvalidArgument
from fdstore.files.unpacking import UnpackLimits
from fdstore.text.numbers import BYTE_UNITS, COUNT_UNITS, parse_number
from fdstore.text.quantities import format_bound, format_count, format_size

if TYPE_CHECKING:
    from fdstore.cli.put_file import PutOptions
    from fdstore.client import Process
    from fdstore.files.members import Choice, Member, Members
    from fdstore.text.remedies import Remedy

F = TypeVar("F", bound=Callable[..., Any])

MAX_ODD_LINES = 20
"""The most lines about what was left out; the others are counted."""

DEFAULTS = UnpackLimits()


class Amount(click.ParamType[int]):
    """A number, in bytes with a unit: 4GiB, 500MB; else 20000 or 20k."""

    name = "amount"

    def __init__(self, units: Any, example: str) -> None:
        self._units, self._example = units, example

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        found = value if isinstance(value, int) else parse_number(str(value), self._units)
        if found is None or found < 1:
            self.fail(f"{value!r} is not an amount; write it as {self._example}", param, ctx)
        return found


def member_options(body: F) -> F:
    """Add the options that `choice_of` reads."""
    options = (
        click.option(
            *("--include", "include"),
            metavar="GLOB",
            multiple=True,
            help="Take these of a folder, whatever else leaves them out. As in .gitignore.",
        ),
        click.option(
            *("--exclude", "exclude"),
            metavar="GLOB",
            multiple=True,
            help="Leave these out of folders and archives. As in .gitignore.",
        ),
        click.option(
            *("--max-members", "max_members"),
            type=Amount(COUNT_UNITS, "20000 or 20k"),
            metavar="N",
            help=f"The most members of packed files. [default: {DEFAULTS.members}]",
        ),
        click.option(
            *("--max-bytes", "max_bytes"),
            type=Amount(BYTE_UNITS, "4GiB or 500MB"),
            metavar="SIZE",
            help=f"The most that packed files may unpack to. [default: {format_bound(DEFAULTS.bytes)}]",
        ),
        click.option(
            *("--max-ratio", "max_ratio"),
            type=click.IntRange(1),
            metavar="N",
            help=f"How many times its own size a packed file may unpack to. [default: {DEFAULTS.ratio}]",
        ),
    )
    for option in reversed(options):
        body = option(body)
    return body


def choice_of(
    include: Sequence[str],
    exclude: Sequence[str],
    max_members: int | None,
    max_bytes: int | None,
    max_ratio: int | None,
    *,
    prefix: str = "",
    unpack: bool = True,
    needs_texts: bool = False,
    otherwise: str = "",
    apart: str = "",
) -> Choice:
    """Return what is taken of the paths that were named. Raises `UsageError`."""
    from fdstore.files.folders import Patterns
    from fdstore.files.members import Choice

    limits = UnpackLimits(
        max_members or DEFAULTS.members,
        max_bytes or DEFAULTS.bytes,
        max_ratio or DEFAULTS.ratio,
        "if you trust it, raise --max-{name}",
    )
    with as_usage_errors("--include"):
        included = Patterns(include)
    with as_usage_errors("--exclude"):
        excluded = Patterns(exclude)
    return Choice(included, excluded, prefix, unpack, limits, needs_texts, otherwise, apart)


def find(paths: Sequence[str], choice: Choice) -> Members:
    """Find what is to be stored, with the number found so far on a terminal. Raises as `find_members`."""
    from fdstore.files.members import find_members

    with progress("looking for files", None, "file") as seen:
        return find_members(paths, choice, open_stdin, seen)


def check_members(opened: Process, found: Members, options: PutOptions) -> None:
    """Raise `QuotaExceeded` if several contents would pass a limit of the tree; a single one is refused when
    it is stored. The size of a text in another encoding is not known beforehand."""
    from fdstore.store.contents.room import check_room
    from fdstore.text.names import name_id

    if len(found.members) < 2:
        return
    names = [name_id(each.key) for each in found.members if each.key is not None]
    size = found.bytes if options.encoding is None else 0
    run_on(opened, check_room(opened.handle, names, len(found.members), size))


def open_stdin() -> AbstractContextManager[BinaryIO]:
    """Open standard input."""
    if sys.stdin is None:
        raise InvalidArgument("-", "standard input is closed; name a file, or pipe something in")
    if sys.stdin.isatty():
        output.note("reading from the terminal; Ctrl-D on an empty line ends it")
        # unbuffered: a buffered file would read again after the Ctrl-D that ended a short read
        return open(sys.stdin.fileno(), "rb", buffering=0, closefd=False)
    return nullcontext(sys.stdin.buffer)


class StoringProgress:
    """The progress of storing contents, one after the other: a line on a terminal, with how many and how
    much."""

    def __init__(self, verb: str, members: Sequence[Member]) -> None:
        self._verb, self._count = verb, len(members)
        sizes = [each.size for each in members]
        self._total = None if None in sizes else sum(size or 0 for size in sizes)
        self._done = self._before = 0
        self._began = self._shown = time.monotonic()

    @contextmanager
    def of(self, member: Member) -> Iterator[Callable[[int], None] | None]:
        """Yield a function to call with the bytes of this member so far; None where nothing is to be
        shown."""
        if self._count == 1:
            with progress(f"{self._verb} {member.source}", member.size) as tell:
                yield tell
            return
        self._done += 1
        if not output.stderr_is_terminal():
            yield None
            return
        self._tell(0)
        try:
            yield self._tell
        finally:
            self._before += member.size or 0
            draw("")

    def _tell(self, done: int) -> None:
        now = time.monotonic()
        if now - self._shown < PAUSE_S:
            return
        self._shown = now
        label = f"{self._verb} {self._done} of {self._count} files"
        columns = output.stderr_columns() - 1
        draw(progress_line(label, self._before + done, self._total, now - self._began, columns=columns))


class Stored:
    """Counts what was stored of folders and archives, and says what is not text, and what was left out."""

    def __init__(self) -> None:
        self.count = self.bytes = 0
        self._no_text: list[str] = []
        self._maybe_text = 0
        self._remedied: dict[Remedy, list[str]] = {}

    def add(self, shown: str, size: int) -> None:
        """Count one content."""
        self.count += 1
        self.bytes += size

    def add_bytes(self, shown: str, size: int, *, may_be_text: bool, remedy: Remedy | None) -> None:
        """Count one content that is not text, with what makes text of it."""
        self.add(shown, size)
        self._no_text.append(shown)
        self._maybe_text += may_be_text
        if remedy is not None and remedy.command:
            self._remedied.setdefault(remedy, []).append(shown)

    def report(self, found: Members, *, as_json: bool = False) -> None:
        """Say what is not text and what was left out: on standard error, or as a last document."""
        from fdstore.files.members import said_of_left_out

        if as_json:
            if found.left_out or found.odd:
                odd = [{"path": output.path_text(each.path), "problem": each.problem} for each in found.odd]
                output.document({"left_out": dict(found.left_out), "odd": odd})
            self._say_unread(found)
            return
        if self.count > 1:
            output.note(f"{format_count(self.count, 'content')}: {format_size(self.bytes)}")
        if self._no_text:
            shown = ", ".join(self._no_text[:5]) + (", ..." if len(self._no_text) > 5 else "")
            advice = (
                "; if they are text: --encoding latin-1, or --errors backslashreplace"
                if self._maybe_text
                else ""
            )
            said = f"{len(self._no_text)} of {self.count} are not UTF-8, stored as bytes"
            output.say(f"fdstore: {said}: {shown}{advice}")
            for remedy, names in self._remedied.items():
                shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
                output.say(f"fdstore: {shown}: {remedy.what}; this makes text of it: {remedy.on('-')}")
        self._say_unread(found)
        if said := said_of_left_out(found.left_out):
            output.say(f"fdstore: {said}")
        for each in found.odd[:MAX_ODD_LINES]:
            output.say(f"fdstore: left out: {output.path_text(each.path)}: {each.problem}")
        if len(found.odd) > MAX_ODD_LINES:
            output.say(f"fdstore: left out: {len(found.odd) - MAX_ODD_LINES} more")

    def _say_unread(self, found: Members) -> None:
        """Name the extra for documents that are stored without their text."""
        if found.unread:
            from fdstore.files.documents.convert import missing_packages

            shown = ", ".join(found.unread[:5]) + (", ..." if len(found.unread) > 5 else "")
            said = f"the text of {format_count(len(found.unread), 'document')} is not stored"
            output.say(f"fdstore: {said}: {shown}; it needs {missing_packages().how}")
