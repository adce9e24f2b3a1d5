"""The verb that shows the end of a content, and what comes after it: tail."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from fdstore.cli import output
from fdstore.cli.reading import tell_unfinished
from fdstore.cli.session import Session, raw_option, run_on, verb

if TYPE_CHECKING:
    from fdstore.client import Process
    from fdstore.records import Descriptor

Lines = tuple[bool, int]
"""Whether lines are counted from the first, and a number of lines or of a line."""


class TailLines(click.ParamType[Lines]):
    """As of tail: 5 is the last five lines, +5 is from line five on."""

    name = "lines"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Lines:
        if isinstance(value, tuple):
            return value
        found = re.fullmatch(r"([+-]?)([0-9]{1,15})", value, re.ASCII)
        if found is None:
            self.fail(f"{value!r} is not a number of lines; write 20 for the last 20, +20 for line 20 and on")
        return found[1] == "+", int(found[2])


@verb
@click.argument("process", metavar="PROC")
@click.argument("fd", metavar="FD")
@click.option("-f", "--follow", is_flag=True, help="Go on until its end.")
@click.option(
    *("-n", "--lines"),
    type=TailLines(),
    metavar="[+]N",
    default="10",
    show_default=True,
    help="The last N lines; with + from line N on.",
)
@raw_option
def tail(session: Session, process: str, fd: str, follow: bool, lines: Lines, raw: bool) -> None:
    """Print the end of a content, and with -f what is still being written. Of a stream that broke off
    it prints what was stored, and fails. With --json each line is a piece of the text.

    \b
    fdstore tail triage fd:1 -n 20
    fdstore tail triage fd:1 -n +5 -f
    """
    from fdstore.store.contents import write_out
    from fdstore.text.selection import Part, fd_id

    pieces = output.Pieces(fd_id(fd), as_json=session.as_json, raw=raw)
    with session.process(process) as opened:
        now = opened.stat(fd)
        from_first, number = lines
        first = max(1, number if from_first else now.lines - number + 1)
        if follow:
            start, skipped = _position(opened, now, first, exact=from_first)
            print_as_it_comes(opened, pieces, now.fd, start, skipped)
            return
        if first <= now.lines:
            part = Part("line", first, now.lines - first + 1)
            run_on(opened, write_out(opened.handle, now.fd, part, pieces.print))
        pieces.end()
        tell_unfinished(now)


def _position(process: Process, now: Descriptor, first: int, *, exact: bool) -> tuple[int, int]:
    """The character to follow from, and how many lines to skip from there on: a line that is not there yet
    is waited for if it is meant itself."""
    if first > now.lines and not exact:
        return now.chars + 1, 0
    begun = min(first, now.lines)
    if not begun:
        return 1, first - 1
    at = process.read(now.fd, mode="line", start=begun, count=1).chars
    return int(at.partition("-")[0]), first - begun


def print_as_it_comes(
    process: Process, pieces: output.Pieces, fd: str, start: int = 1, skipped_lines: int = 0
) -> None:
    """Print a content from a character on, until its end. Raises `StreamBroken`."""
    try:
        for piece in without_lines(process.follow(fd, start=start), skipped_lines):
            pieces.print(piece.encode("utf-8"))
    finally:
        pieces.end()


def without_lines(pieces: Iterator[str], count: int) -> Iterator[str]:
    r"""The text in `pieces` without its first `count` lines.

    >>> list(without_lines(iter(["a", "b\nc\n", "d\ne"]), 2))
    ['d\ne']
    """
    for piece in pieces:
        rest = piece
        while count and rest:
            _, ended, rest = rest.partition("\n")
            count -= bool(ended)
        if rest:
            yield rest
