"""The verb tail: print the end of a content and follow it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from fdstore.cli import output
from fdstore.cli.reading import report_unfinished
from fdstore.cli.session import CliSession, raw_option, run_on, verb
from fdstore.cli.standstill import report_standstill
from fdstore.errors import NotText

if TYPE_CHECKING:
    from fdstore.client import Process
    from fdstore.model.records import Descriptor

Lines = tuple[bool, int]
"""(True, n): from line n on. (False, n): the last n lines."""


class TailLines(click.ParamType[Lines]):
    """The syntax of tail -n: 5 means the last five lines, +5 from line five on."""

    name = "lines"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Lines:
        if isinstance(value, tuple):
            return value
        found = re.fullmatch(r"([+-]?)([0-9]{1,15})", value, re.ASCII)
        if found is None:
            self.fail(
                f"{value!r} is not a number of lines; write 20 for the last 20, +20 for line 20 and later"
            )
        return found[1] == "+", int(found[2])


@verb
@click.argument("process", metavar="PROC")
@click.argument("fd", metavar="FD")
@click.option("-f", "--follow", is_flag=True, help="Follow the stream until its end.")
@click.option(
    *("-n", "--lines"),
    type=TailLines(),
    metavar="[+]N",
    default="10",
    show_default=True,
    help="Print the last N lines, with + from line N on.",
)
@raw_option
def tail(session: CliSession, process: str, fd: str, follow: bool, lines: Lines, raw: bool) -> None:
    """Print the end of a content, and with -f follow it while it grows. A broken stream is printed, and then
    the command fails. With --json each line is a chunk of the text.

    \b
    fdstore tail triage fd:1 -n 20
    fdstore tail triage fd:1 -n +5 -f
    """
    from fdstore.store.contents.exporting import write_part
    from fdstore.text.selection import Part, fd_id

    pieces = output.Pieces(fd_id(fd), as_json=session.as_json, raw=raw)
    with session.process(process) as opened:
        now = opened.stat(fd)
        if now.kind == "bytes":
            raise NotText(now.fd, now.media_type, now.bytes)
        from_first, number = lines
        first = max(1, number if from_first else now.lines - number + 1)
        if follow:
            output.end_with_reader()
            start, skipped = _position(opened, now, first, exact=from_first)
            try:
                with report_standstill(opened.store, now.producer):
                    for piece in skip_lines(opened.follow(now.fd, start=start), skipped):
                        pieces.print(piece.encode("utf-8"))
            finally:
                pieces.end()
            return
        if first <= now.lines:
            part = Part("line", first, now.lines - first + 1)
            run_on(opened, write_part(opened.handle, now.fd, part, pieces.print))
        pieces.end()
        report_unfinished(now)


def _position(process: Process, now: Descriptor, first: int, *, exact: bool) -> tuple[int, int]:
    """Return the character to follow from, and the number of lines to skip after it. With `exact`, wait for
    a line that does not exist yet."""
    if first > now.lines and not exact:
        return now.chars + 1, 0
    start_line = min(first, now.lines)
    if not start_line:
        return 1, first - 1
    at = process.read(now.fd, mode="line", start=start_line, count=1).chars
    return int(at.partition("-")[0]), first - start_line


def skip_lines(pieces: Iterator[str], count: int) -> Iterator[str]:
    r"""Yield the text of `pieces` without its first `count` lines.

    >>> list(skip_lines(iter(["a", "b\nc\n", "d\ne"]), 2))
    ['d\ne']
    """
    for piece in pieces:
        rest = piece
        while count and rest:
            _, ended, rest = rest.partition("\n")
            count -= bool(ended)
        if rest:
            yield rest
