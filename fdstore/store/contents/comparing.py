"""Compare two texts, or parts of them, line by line, as `diff -u` does.

Each text is read once and reduced to 16 bytes a line (`text.line_digests`); the lines that are shown are read
again while the diff is written. So memory depends on the numbers of lines alone, whatever their length: 32 MB
for each text of `MAX_LINES`, and about 100 MB more while `MAX_DIFFERING` lines are compared.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from io import BytesIO
from typing import TypeAlias

from fdstore.errors import InvalidArgument, TooLarge
from fdstore.model.records import Comparison
from fdstore.store.content_info import ContentGone, ContentInfo
from fdstore.store.contents.contents import part_of
from fdstore.store.contents.locating import fetch_part, locate
from fdstore.store.contents.resolving import explain_if_gone, reads_content, retry_if_gone
from fdstore.store.process_handle import ProcessHandle
from fdstore.text.line_diff import LineChange, find_changes, group_hunks, hunk_heading, trim
from fdstore.text.line_digests import LineDigests
from fdstore.text.selection import Part, Selector
from fdstore.wire.operation import Disk, Operation

MAX_LINES = 2_000_000
"""The most lines of a text, or part, that is compared."""

MAX_DIFFERING = 200_000
"""The most lines of either text from the first that differs to the last one."""

MAX_CONTEXT = 100

NO_NEWLINE = b"\n\\ No newline at end of file\n"

Write: TypeAlias = Callable[[bytes], object]


class _Lines:
    """The lines of one of the two texts, and where they are in the store."""

    def __init__(self, named: Selector, info: ContentInfo) -> None:
        self.fd = named.fd
        self.name = str(named)
        self.content = info.content
        self.found = LineDigests()
        self.first_char = 1
        self.first_line = 1

    def begins(self, before: tuple[int, int]) -> None:
        self.first_char, self.first_line = before[0] + 1, before[1] + 1

    def part(self, lines: range) -> Part:
        """Return the characters of these lines."""
        start, end = self.found.starts[lines.start], self.found.starts[lines.stop]
        return Part("char", self.first_char + start, end - start)


def compare(
    handle: ProcessHandle,
    a: Selector,
    b: Selector,
    *,
    context: int = 3,
    write: Write,
    most_lines: int = sys.maxsize,
) -> Operation[Comparison]:
    """Pass the unified diff that makes text `a` into `b` to `write` as it is made, with `context` lines
    (0-100) around each change; nothing if they are equal. Return how many lines differ. Lines are numbered
    as in the whole texts, also those of parts. An open stream is compared as far as it is stored. After
    `most_lines` lines of the texts no more is written: only counted.

    A text may have `MAX_LINES` lines, and `MAX_DIFFERING` from the first to the last that differs. If finding
    the shortest diff would take longer than some seconds, more lines than necessary are shown as replaced.

    Raises `TooLarge`, `InvalidArgument`, `NotText`, `NotFound`, `PageOutOfRange`, `PositionOutOfRange`, and
    `Conflict` if a name means another content before all is written.
    """
    if type(context) is not int or not 0 <= context <= MAX_CONTEXT:
        raise InvalidArgument("context", f"must be an integer from 0 to {MAX_CONTEXT}")
    old = yield from _digest(handle, a.fd, a)
    new = yield from _digest(handle, b.fd, b)
    changes = yield Disk(partial(_changes, old, new))
    if changes:
        yield Disk(partial(write, f"--- {old.name}\n+++ {new.name}\n".encode()))
    left = most_lines
    for hunk in group_hunks(changes, len(old.found), len(new.found), context):
        if not left:
            break
        heading = hunk_heading(hunk, old.first_line, new.first_line)
        yield Disk(partial(write, f"{heading}\n".encode()))
        at = hunk.old.start
        for change in hunk.changes:
            shown = range(at, change.last)[:left]
            yield from _write_lines(handle, old.fd, old, shown, change.first, b"-", write)
            added = range(change.new_first, change.new_last)[: left - len(shown)]
            yield from _write_lines(handle, new.fd, new, added, change.new_first, b"+", write)
            left -= len(shown) + len(added)
            at = change.last
        rest = range(at, hunk.old.stop)[:left]
        yield from _write_lines(handle, old.fd, old, rest, hunk.old.stop, b"-", write)
        left -= len(rest)
    return Comparison(
        a=old.name,
        b=new.name,
        removed=sum(each.last - each.first for each in changes),
        added=sum(each.new_last - each.new_first for each in changes),
    )


@reads_content
def _digest(handle: ProcessHandle, fd: str, named: Selector) -> Operation[_Lines]:
    """Read one of the texts."""

    def attempt() -> Operation[_Lines]:
        info, span = yield from part_of(handle, fd, named.part)
        lines = _Lines(named, info)

        def take(run: list[bytes]) -> Operation[None]:
            yield Disk(partial(lines.found.feed, b"".join(run).decode("utf-8")))
            _check(lines.name, max(len(lines.found), info.descriptor.lines * (named.part is None)), MAX_LINES)

        yield from fetch_part(info, span, take, lines.begins)
        lines.found.finish()
        return lines

    return (yield from retry_if_gone(handle, fd, attempt))


def _changes(old: _Lines, new: _Lines) -> list[LineChange]:
    a, b = old.found.digests, new.found.digests
    if a == b:
        return []
    differing = trim(a, b, LineChange(0, len(a), 0, len(b)))
    lines = max(differing.last - differing.first, differing.new_last - differing.new_first)
    _check(f"what differs between {old.name} and {new.name}", lines, MAX_DIFFERING)
    return find_changes(a, b)


def _check(what: str, lines: int, limit: int) -> None:
    if lines > limit:
        raise TooLarge(what, lines, limit, f"compare parts, such as fd:3#L1-{limit}", "lines")


@reads_content
def _write_lines(
    handle: ProcessHandle, fd: str, lines: _Lines, shown: range, marked_from: int, mark: bytes, write: Write
) -> Operation[None]:
    """Write lines of a text, with `mark` before those from `marked_from` on."""
    if not shown:
        return
    number, is_at_start = shown.start, True

    def take(run: list[bytes]) -> Operation[None]:
        nonlocal number, is_at_start
        written: list[bytes] = []
        for piece in BytesIO(b"".join(run)):
            if is_at_start:
                written.append(mark if number >= marked_from else b" ")
            written.append(piece)
            is_at_start = piece.endswith(b"\n")
            number += is_at_start
        yield Disk(partial(write, b"".join(written)))

    def attempt() -> Operation[None]:
        info, span = yield from locate(handle, fd, lines.part(shown))
        if info.content != lines.content:
            raise ContentGone(fd)
        yield from fetch_part(info, span, take)

    yield from explain_if_gone(handle, fd, attempt)
    if not is_at_start:
        yield Disk(partial(write, NO_NEWLINE))
