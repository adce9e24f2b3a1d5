"""The verb diff: print what differs between two texts, as `diff -u` does."""

from __future__ import annotations

import click

from fdstore.cli import output
from fdstore.cli.colours import paint
from fdstore.cli.session import CliSession, colour_option, raw_option, run_on, verb
from fdstore.text.layout import show_controls

DIFFERENT = 1
"""diff's exit code for texts that differ. For errors see `fdstore.cli.FAILED_COMPARISON`."""

_STYLES = {"@": "mark", "-": "bad", "+": "good"}
_HEADING_LINES = 2


@verb
@click.argument("process", metavar="PROC")
@click.argument("a", metavar="SELECTOR")
@click.argument("b", metavar="SELECTOR")
@click.option(
    *("-U", "--context"),
    type=click.IntRange(0, 100),
    metavar="N",
    default=3,
    show_default=True,
    help="Lines around each change, at most 100.",
)
@colour_option
@raw_option
def diff(session: CliSession, process: str, a: str, b: str, context: int, colour: str, raw: bool) -> None:
    """Print which lines differ between two texts, as `diff -u` does.

    Lines are numbered as in the whole texts, also those of parts. The diff is printed as it is made, without
    a limit of its size; each text may have 2000000 lines, and 200000 from the first that differs to the last.
    The exit code is 0 if they are equal, 1 if they differ, 2 after an error.

    \b
    fdstore diff triage fd:1 fd:2
    fdstore diff triage name:plan.md#L1-100 fd:7 -U 0
    """
    from fdstore.store.contents.comparing import compare
    from fdstore.text.selection import parse_request

    printer = DiffPrinter(
        coloured=output.use_colours(colour), escaped=output.stdout_is_terminal() and not raw
    )
    pieces: list[bytes] = []

    def write(piece: bytes) -> None:
        output.escaped_content(printer.format(piece))

    with session.process(process) as opened:
        keep = pieces.append if session.as_json else write
        operation = compare(opened.handle, parse_request(a), parse_request(b), context=context, write=keep)
        found = run_on(opened, operation)
    if session.as_json:
        text = b"".join(pieces).decode("utf-8")
        output.document(
            {"a": found.a, "b": found.b, "removed": found.removed, "added": found.added, "diff": text}
        )
    if not found.is_equal:
        click.get_current_context().exit(DIFFERENT)


class DiffPrinter:
    r"""Formats a unified diff that comes in pieces: coloured, or escaped for a terminal.

    >>> printer = DiffPrinter(coloured=True, escaped=False)
    >>> printer.format(b"--- fd:1\n+++ fd:2\n@@ -1 +1 @@\n-a").splitlines()[-1]
    b'\x1b[31m-a\x1b[m'
    """

    def __init__(self, *, coloured: bool, escaped: bool) -> None:
        self._coloured = coloured
        self._escaped = escaped
        self._headings_left = _HEADING_LINES
        self._style: str | None = None
        self._is_inside = False

    def format(self, piece: bytes) -> bytes:
        """Return how a piece is printed; it may begin and end inside a line."""
        if not self._coloured and not self._escaped:
            return piece
        *ended, rest = piece.decode("utf-8").split("\n")
        shown = "".join(f"{self._line(line, ends=True)}\n" for line in ended)
        return f"{shown}{self._line(rest, ends=False)}".encode()

    def _line(self, text: str, *, ends: bool) -> str:
        if text and not self._is_inside:
            self._style = "heading" if self._headings_left else _STYLES.get(text[0])
            self._headings_left = max(0, self._headings_left - 1)
        self._is_inside = not ends and (self._is_inside or bool(text))
        shown = show_controls(text, keep="\t") if self._escaped else text
        return paint(shown, self._style) if self._coloured and self._style else shown
