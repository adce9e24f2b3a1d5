"""What the paths that a person names have in them: files, folders, packed files, standard input.

`find_members` looks at all of it, stores nothing, and returns the contents that are to be stored, each with
the name that it gets, its size and a function that opens it. So whatever is wrong with one of them is known
before any is stored.

    app.log            the next number           logs/         a/b.log: the names in it
    app.log.gz         app.log                   logs          logs/a/b.log
    logs.tar.gz        logs.tar.gz/a/b.log       ../logs       logs/a/b.log
    report.pdf         report.pdf, and report.pdf.txt, which is its text

Of a document the text is made here too, into a temporary file.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from functools import partial
from itertools import count
from tempfile import TemporaryDirectory, TemporaryFile
from typing import BinaryIO, Literal, NamedTuple, cast

from fdstore.errors import InvalidArgument, PathRefused, TargetMissing, TimedOut, TooLarge, joined, quoted
from fdstore.files.archive_members import Contents, Entry, Odd
from fdstore.files.documents.convert import (
    can_convert,
    convert,
    document_type,
    may_be_document,
    missing_packages,
)
from fdstore.files.documents.kinds import DOCUMENTS
from fdstore.files.folders import EXCLUDED, NOUNS, Found, LeftOut, Patterns, open_inside, pattern_of, walk
from fdstore.files.packed import OpenPacked, examine, is_packed, without_suffix
from fdstore.files.source import ReadAhead, open_source, source_name
from fdstore.files.unpacking import CHUNK_BYTES, Meter, UnpackLimits, blocks_of
from fdstore.files.unwrapping import TEXT_SUFFIX
from fdstore.model.records import ContentKind
from fdstore.text.names import MAX_KEY_BYTES, escape_key
from fdstore.text.quantities import format_count

STANDARD_INPUT = "-"
HEAD_BYTES = 65_536
"""The first bytes of an input that cannot be read again, which decide whether it is text."""

MAX_FOUND = 100_000
"""More files than these are not looked for: what is found is held in memory until it is stored."""

MAX_SOURCE_CHARS = 200


class Choice(NamedTuple):
    """What is taken of the paths. `prefix` stands before all names; with `unpack` packed files are unpacked,
    and texts of documents taken. `needs_texts`: a document that is named must have one. `otherwise`: what to
    do about a document that has none, the end of a sentence. `apart`: how else two contents that would have
    one name can be stored, the end of a sentence."""

    include: Patterns
    exclude: Patterns
    prefix: str = ""
    unpack: bool = True
    limits: UnpackLimits = UnpackLimits()
    needs_texts: bool = False
    otherwise: str = ""
    apart: str = ""


DocumentPart = Literal["document", "text"]


class Member(NamedTuple):
    """One content to store.

    key       its name; None for the next number
    source    the source of its descriptor
    shown     what it is called in messages
    size      its bytes; None for a pipe
    open      opens it from its beginning; a pipe (a `ReadAhead`) once only
    kind      what it is, if its bytes were all read; else None
    head      the first bytes of what a packed file holds
    is_named  a file that was named itself: it must be what it is asked to be
    of_document  it is a document, or its text
    pattern   what leaves it out with --exclude; "" of a path that was named itself
    """

    key: str | None
    source: str
    shown: str
    size: int | None
    open: Callable[[], AbstractContextManager[BinaryIO | ReadAhead]]
    kind: ContentKind | None = None
    head: bytes = b""
    is_named: bool = False
    media_type: str | None = None
    of_document: DocumentPart | None = None
    pattern: str = ""


class Members:
    """What was found: `members` in the order in which they are to be read, how many names were left out by
    reason, and what is odd. `unread`: documents whose text cannot be read here, for lack of the packages. A
    context manager that closes what is held open, and removes temporary files."""

    def __init__(self) -> None:
        self.members: list[Member] = []
        self.left_out: Counter[str] = Counter()
        self.odd: list[Odd] = []
        self.unread: list[str] = []
        self._held = ExitStack()
        self._folder = ""
        self._numbers = count()

    def __enter__(self) -> Members:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def hold(self, context: AbstractContextManager[BinaryIO]) -> BinaryIO:
        """Open a file, and keep it open to the end."""
        return self._held.enter_context(context)

    def close_with(self, close: Callable[[], None]) -> None:
        """Call this at the end."""
        self._held.callback(close)

    def temporary_path(self) -> str:
        """Return the path of a new file, which is removed at the end."""
        self._folder = self._folder or self._held.enter_context(TemporaryDirectory(prefix="fdstore-put-"))
        return os.path.join(self._folder, str(next(self._numbers)))

    @property
    def bytes(self) -> int:
        """The bytes of all whose size is known."""
        return sum(each.size or 0 for each in self.members)


def find_members(
    paths: Sequence[str],
    choice: Choice,
    open_stdin: Callable[[], AbstractContextManager[BinaryIO]],
    seen: Callable[[int], None] | None = None,
) -> Members:
    """Find what is to be stored; `seen` is called with how many contents were found so far.

    Raises `TargetMissing`, `PathRefused`, `InvalidArgument` (damaged, or two contents for one name),
    `TooLarge`.
    """
    found = Members()
    try:
        finder = _Finder(found, choice, seen)
        for path in paths:
            before = len(found.members) + len(found.odd)
            finder.add(path, open_stdin)
            if len(found.members) + len(found.odd) == before:
                said = said_of_left_out(found.left_out)
                raise InvalidArgument(path, f"there is nothing to store in it{f'; {said}' if said else ''}")
        _refuse_doubles(found.members, choice.apart)
    except BaseException:
        found.__exit__()
        raise
    return found


def below(path: str) -> str:
    """Return what stands before the names of what is in a folder.

    >>> [below(path) for path in ("logs", "/var/logs", "logs/", ".", "../logs", "..", "/")]
    ['logs/', 'logs/', '', '', 'logs/', '', '']
    """
    name = path.rpartition("/")[2]
    return "" if name in ("", ".", "..") else f"{name}/"


class _Finder:
    """Adds to `found` what is at each path."""

    def __init__(self, found: Members, choice: Choice, seen: Callable[[int], None] | None) -> None:
        self._found, self._choice, self._seen = found, choice, seen
        self._meter = Meter(choice.limits)

    def add(self, path: str, open_stdin: Callable[[], AbstractContextManager[BinaryIO]]) -> None:
        if path == STANDARD_INPUT:
            self._add_pipe(self._found.hold(open_stdin()), "stdin", "standard input")
            return
        if os.path.isdir(path):
            self._add_folder(path)
            return
        binary = self._found.hold(open_source(path)) if not os.path.isfile(path) else None
        name = os.path.basename(path)
        if binary is not None:
            self._add_pipe(binary, source_name(path), path)
            return
        key = self._key(name) if self._choice.prefix else None
        again = partial(open_source, path)
        with open_source(path) as file:
            contents, size = self._examine(file, path)
            if contents is None:
                file_member = Member(key, source_name(path), path, size, again, is_named=True)
                self._add_file(file, file_member, name)
                return
        self._add_packed(contents, again, name, path, without_suffix(name))

    def _add_pipe(self, binary: BinaryIO, source: str, shown: str) -> None:
        """Add an input that is open. One that is packed goes to a temporary file first: it is read twice."""
        size = _size_of(binary)
        key = self._key(source) if self._choice.prefix else None
        if not self._choice.unpack:
            self._append(Member(key, source, shown, size, partial(_again, binary, None), is_named=True))
            return
        start = None if size is None else binary.tell()
        ahead = ReadAhead(binary, HEAD_BYTES)
        if not is_packed(ahead.head) and not may_be_document(ahead.head, source):
            if start is None:
                opened: Callable[[], AbstractContextManager[BinaryIO | ReadAhead]] = partial(_once, ahead)
            else:
                opened = partial(_again, binary, start)
            size = None if size is None or start is None else size - start
            self._append(Member(key, source, shown, size, opened, is_named=True))
            return
        spooled = self._found.hold(cast("BinaryIO", TemporaryFile()))  # noqa: SIM115
        limit = self._choice.limits.bytes
        while block := ahead.read(CHUNK_BYTES):
            if spooled.tell() + len(block) > limit:
                advice = self._choice.limits.advice("bytes")
                raise TooLarge(shown, spooled.tell() + len(block), limit, advice, "bytes")
            spooled.write(block)
        packed_bytes = spooled.tell()
        spooled.seek(0)
        contents = examine(spooled, shown, packed_bytes, self._meter)
        again = partial(_again, spooled, 0)
        if contents is None:
            self._add_file(spooled, Member(key, source, shown, packed_bytes, again, is_named=True), source)
        else:
            self._add_packed(contents, again, source, shown, None if key is None else source)

    def _add_folder(self, path: str) -> None:
        for each in walk(path, self._choice.include, self._choice.exclude):
            match each:
                case Found():
                    shown = os.path.join(path, each.below)
                    try:
                        self._add_found(each, shown, below(path))
                    except (InvalidArgument, PathRefused, TargetMissing) as error:
                        self._found.odd.append(Odd(shown, getattr(error, "problem", str(error))))
                case LeftOut():
                    self._found.left_out[each.reason] += each.names
                case _:
                    self._found.odd.append(Odd(os.path.join(path, each.below), each.problem))

    def _add_found(self, found: Found, shown: str, base: str) -> None:
        again = partial(open_inside, found.path)
        key = base + found.below
        with open_inside(found.path) as file:
            contents, size = self._examine(file, shown)
            if contents is None:
                source, pattern = source_name(found.path), pattern_of(found.below)
                file_member = Member(self._key(key), source, shown, size, again, pattern=pattern)
                self._add_file(file, file_member, key)
                return
        self._add_packed(contents, again, key, shown, without_suffix(key), pattern_of(found.below))

    def _add_file(self, file: BinaryIO, member: Member, name: str) -> None:
        """Add a file that is not packed, and if it is a document, its text, under names below this one."""
        media_type = document_type(file, member.shown) if self._choice.unpack else None
        if media_type is None:
            self._append(member)
            return
        if not can_convert():
            if member.is_named and self._choice.needs_texts:
                raise missing_packages()
            self._found.unread.append(member.shown)
            self._append(member)
            return
        key, text_key = self._key(name), self._key(name + TEXT_SUFFIX)
        shown, path = member.shown + TEXT_SUFFIX, self._found.temporary_path()
        size: int | None = None
        try:
            with open(path, "w+b") as target:
                left = max(0, self._choice.limits.bytes - self._meter.bytes)
                size = convert(
                    file, media_type, member.shown, target, self._choice.limits._replace(bytes=left)
                )
            self._meter.bytes += size
        except (InvalidArgument, TooLarge, TimedOut) as error:
            os.unlink(path)
            if member.is_named:
                if self._choice.otherwise and isinstance(error, InvalidArgument):
                    raise InvalidArgument(
                        error.argument, joined(error.problem, self._choice.otherwise)
                    ) from error
                raise
            self._found.odd.append(Odd(shown, getattr(error, "problem", str(error))))
        self._append(
            member._replace(
                key=key, kind="bytes", is_named=False, media_type=media_type, of_document="document"
            )
        )
        if size is not None:
            text = Member(
                *(text_key, member.source + TEXT_SUFFIX, shown, size, partial(open_inside, path), "text"),
                is_named=member.is_named,
                media_type=DOCUMENTS[media_type].text_type,
                of_document="text",
                pattern=member.pattern,
            )
            self._append(text)

    def _examine(self, file: BinaryIO, shown: str) -> tuple[Contents | None, int]:
        """Return what a packed file holds, and the size of any file."""
        size = os.fstat(file.fileno()).st_size
        return examine(file, shown, size, self._meter) if self._choice.unpack else None, size

    def _add_packed(
        self,
        contents: Contents,
        again: Callable[[], AbstractContextManager[BinaryIO]],
        name: str,
        shown: str,
        key: str | None,
        pattern: str = "",
    ) -> None:
        """Add what a packed file of this name holds; `key` is that of a compressed file, and `pattern` leaves
        it out."""
        self._found.odd += [
            Odd(os.path.join(shown, each.path) if each.path else shown, each.problem) for each in contents.odd
        ]
        holder, looking = _Holder(again, contents, shown), _Holder(again, contents, shown)
        self._found.close_with(holder.close)
        with closing(looking):
            if contents.is_archive:
                self._add_entries(contents, holder, looking, name, shown)
                return
            [entry], source = contents.entries, source_name(name)
            whole = None if key is None else self._key(key)
            self._add_entry(entry, holder, looking, (whole, source, shown), key or source, pattern)

    def _add_entries(
        self, contents: Contents, holder: _Holder, looking: _Holder, name: str, shown: str
    ) -> None:
        """Add the members of an archive of this name."""
        source = source_name(name)
        for entry in contents.entries:
            if self._choice.exclude.takes(entry.path) and not self._choice.include.takes(entry.path):
                self._found.left_out[EXCLUDED] += 1
                continue
            path = f"{name}/{entry.path}"
            inside = f"{shown}/{entry.path}"
            try:
                key = self._key(path)
            except InvalidArgument as error:
                self._found.odd.append(Odd(inside, error.problem))
                continue
            self._add_entry(entry, holder, looking, (key, source, inside), path, pattern_of(entry.path))

    def _add_entry(
        self,
        entry: Entry,
        holder: _Holder,
        looking: _Holder,
        named: tuple[str | None, str, str],
        name: str,
        pattern: str,
    ) -> None:
        """Add what a packed file holds; a document as one that is not packed. `looking` reads it now,
        `holder` when it is stored. `pattern` leaves it out."""
        opened = partial(holder.open, entry)
        member = Member(*named, entry.size, opened, entry.kind, entry.head, pattern=pattern)
        if not may_be_document(entry.head, member.shown):
            holder.last = entry
            self._append(member)
            return
        path = self._found.temporary_path()
        with looking.open(entry) as packed, open(path, "w+b") as file:
            for block in blocks_of(packed):
                file.write(block)
            file.flush()
            self._add_file(file, member._replace(open=partial(open_inside, path)), name)

    def _key(self, key: str) -> str:
        """Return the name for a path."""
        whole = escape_key(self._choice.prefix + key)
        size = len(whole.encode())
        if size > MAX_KEY_BYTES:
            raise InvalidArgument(key, f"its name has {size} bytes; 1-{MAX_KEY_BYTES} are allowed")
        return whole

    def _append(self, member: Member) -> None:
        self._found.members.append(member)
        if len(self._found.members) > MAX_FOUND:
            advice = "leave some out with --exclude, or name them in several commands"
            raise TooLarge("what was named", len(self._found.members), MAX_FOUND, advice, "files")
        if self._seen is not None:
            self._seen(len(self._found.members))


class _Holder:
    """A packed file whose members are opened one after the other: it stays open from the first to the
    last."""

    def __init__(
        self, again: Callable[[], AbstractContextManager[BinaryIO]], contents: Contents, shown: str
    ) -> None:
        self._again, self._contents, self._shown = again, contents, shown
        self._held = ExitStack()
        self._opened: OpenPacked | None = None
        self.last: Entry | None = None

    @contextmanager
    def open(self, entry: Entry) -> Iterator[BinaryIO]:
        """Open a member."""
        if self._opened is None:
            file = self._held.enter_context(self._again())
            self._opened = OpenPacked(file, self._contents, self._shown)
        try:
            yield self._opened.read(entry)
        except BaseException:
            self.close()
            raise
        if entry is self.last:
            self.close()

    def close(self) -> None:
        """Close the packed file."""
        self._opened = None
        self._held.close()


@contextmanager
def _once(file: ReadAhead) -> Iterator[ReadAhead]:
    yield file


@contextmanager
def _again(file: BinaryIO, start: int | None) -> Iterator[BinaryIO]:
    if start is not None:
        file.seek(start)
    yield file


def _size_of(binary: BinaryIO) -> int | None:
    """Return the size of a regular file; None for a pipe, or an input without a file."""
    try:
        found = os.fstat(binary.fileno())
    except OSError:
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None


def _refuse_doubles(members: Sequence[Member], apart: str) -> None:
    """Raise `InvalidArgument` if two contents would have one name."""
    first: dict[str, Member] = {}
    for each in members:
        if each.key is None:
            continue
        if (before := first.get(each.key)) is not None:
            remedy = _left_out_by(before, each) + apart
            problem = f"{quoted(each.shown, 200)} would be name:{each.key} too; {remedy}"
            raise InvalidArgument(before.shown, problem)
        first[each.key] = each


def _left_out_by(one: Member, other: Member) -> str:
    """Return what leaves one of two contents out.

    >>> from io import BytesIO
    >>> made = [Member(None, "", name, 0, BytesIO, pattern=f"/{name}") for name in ("app.log", "app.log.gz")]
    >>> _left_out_by(*made)
    'leave one of them out: --exclude /app.log, or --exclude /app.log.gz'
    """
    if not (one.pattern and other.pattern):
        return "name one of them only"
    patterns = dict.fromkeys(f"--exclude {shlex.quote(each.pattern)}" for each in (one, other))
    which = "one of them" if len(patterns) > 1 else "both"
    return f"leave {which} out: {', or '.join(patterns)}"


def said_of_left_out(left_out: Counter[str]) -> str:
    """Return how many names were left out, and why.

    >>> said_of_left_out(Counter({"hidden": 3, "link": 1}))
    '4 names left out: 3 hidden, 1 link'
    """
    if not left_out:
        return ""
    reasons = (
        format_count(count, reason) if reason in NOUNS else f"{count} {reason}"
        for reason, count in left_out.items()
    )
    return f"{format_count(left_out.total(), 'name')} left out: {', '.join(reasons)}"
