"""Where everything printed goes through: text for people, JSON for programs, content as it is.

Content on a pipe or in a file is exact to the byte. On a terminal the control characters of everything
that is printed are shown escaped, because texts, answers, reasons and names come from anywhere and a
terminal obeys them. JSON is always UTF-8. What is said beside the data goes to stderr, a line each, and
is escaped there in any case. So nothing else in this package writes to either (a test looks).
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from fdstore.cli.colours import paint
from fdstore.cli.words import said_of
from fdstore.errors import FDStoreError, WriteFailed
from fdstore.text.layout import show_controls, show_controls_in_json

if TYPE_CHECKING:
    from fdstore.records import Unreadable


class OutputFailed(WriteFailed):
    """Standard output took no more."""

    def __str__(self) -> str:
        return f"{self.what} took no more: {self.problem}; what came before may be there"


def on_terminal() -> bool:
    """Whether a person reads standard output."""
    return sys.stdout is not None and sys.stdout.isatty()


def columns() -> int | None:
    """The width a table may have; None where nobody looks and nothing is to be cut."""
    return shutil.get_terminal_size().columns if on_terminal() else None


def watched() -> bool:
    """Whether a person reads standard error."""
    return sys.stderr is not None and sys.stderr.isatty()


def coloured(when: str = "auto") -> bool:
    """Whether standard output gets colours: "always", "never", or where a person reads it and wants them."""
    return when == "always" or (when == "auto" and on_terminal() and _wants_colours())


def _wants_colours() -> bool:
    from fdstore import settings

    return settings.read().colours


def line(text: str = "") -> None:
    """Prints a line, or several, for people."""
    painted(show_controls(text) if on_terminal() else text)


def painted(text: str) -> None:
    """Prints lines that may hold colours: whoever painted them escaped what is in them before."""
    _write(f"{text}\n".encode(_encoding(), "backslashreplace"))


def marked(mark: str, style: str, text: str) -> None:
    """Prints a line that begins with a mark, which is painted where there are colours."""
    if coloured():
        painted(f"{paint(mark, style)}  {show_controls(text)}")
    else:
        line(f"{mark}  {text}")


def document(record: object) -> None:
    """Prints a record, or a dict of records, as JSON on one line."""
    import msgspec

    encoded = msgspec.json.encode(record)
    if on_terminal():
        encoded = show_controls_in_json(encoded.decode("utf-8")).encode("utf-8")
    _write(encoded + b"\n")


def content(data: bytes, *, raw: bool = False) -> None:
    """Prints stored text, whole characters of UTF-8."""
    if on_terminal() and not raw:
        data = show_controls(data.decode("utf-8")).encode(_encoding(), "backslashreplace")
    _write(data)


def escaped_content(data: bytes) -> None:
    """Prints stored text that was escaped already where it has to be, and may hold colours."""
    if on_terminal() and _encoding().lower() != "utf-8":
        data = data.decode("utf-8", "backslashreplace").encode(_encoding(), "backslashreplace")
    _write(data)


class Pieces:
    """Prints a content piece by piece: as it is, or with --json a document for each."""

    def __init__(self, fd: str, *, as_json: bool, raw: bool) -> None:
        self._fd = fd
        self._as_json = as_json
        self._raw = raw
        self._last = b"\n"

    def print(self, data: bytes) -> None:
        """Prints a piece: stored text, whole characters of UTF-8."""
        if not data:
            return
        self._last = data[-1:]
        if self._as_json:
            document({"fd": self._fd, "text": data.decode("utf-8")})
        else:
            content(data, raw=self._raw)

    def end(self) -> None:
        """After the last one: what is said next at a terminal begins on a line of its own."""
        if on_terminal() and not self._as_json and self._last != b"\n":
            line()


def passed_over(found: Sequence[Unreadable], *, as_json: bool) -> None:
    """Says what a verb could not read and left out: a line each on stderr, or a document after the others."""
    if found and as_json:
        document({"unreadable": found})
        return
    for each in found:
        say(f"fdstore: {each.what} cannot be read: {each.problem}")


def confirmed(question: str) -> bool | None:
    """Whether a person says yes; None if nobody can be asked."""
    if sys.stdin is None or not sys.stdin.isatty() or not watched():
        return None
    return click.confirm(show_controls(question, keep=""), err=True)


def note(text: str) -> None:
    """Tells a person at the terminal something that is not the data."""
    if watched():
        say(text)


def say(text: str) -> None:
    """Says a line on stderr, whoever reads it."""
    click.echo(show_controls(text, keep="\t"), err=True)


def errors(text: str, *, raw: bool = False) -> None:
    """Prints on stderr what commands wrote to theirs, as `content` does on stdout."""
    click.echo(show_controls(text) if watched() and not raw else text, err=True, nl=False)


def show_logs() -> None:
    """Sends the library's warnings to stderr, as lines that a terminal can trust."""
    import logging

    from fdstore.logs import VisibleFormatter

    class ToStderr(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            click.echo(self.format(record), err=True)

    log = logging.getLogger("fdstore")
    if not log.handlers:
        handler = ToStderr(logging.WARNING)
        handler.setFormatter(VisibleFormatter("%(name)s: %(message)s"))
        log.addHandler(handler)


def report(error: FDStoreError, *, as_json: bool) -> None:
    """Says what went wrong, on stderr."""
    _drop_unwritable()
    if as_json:
        import msgspec

        record = {"error": {"type": error.type, "message": said_of(error)}}
        say(show_controls_in_json(msgspec.json.encode(record).decode("utf-8")))
        return
    said = f"fdstore: {error.type}: {said_of(error)}"
    if watched() and _wants_colours():
        said = show_controls(said, keep="\t")
        head = f"fdstore: {error.type}:"
        click.echo(paint(head, "bad") + said.removeprefix(head), err=True, color=True)
    else:
        say(said)
    for hint in getattr(error, "__notes__", ()):
        say(f"  {hint}")


def finish() -> None:
    """Sends off what is still buffered, while a failure can still be told."""
    if sys.stdout is not None:
        _write(b"")
        _flush()


def abandon() -> None:
    """Gives up standard output: nothing more is written to it, not by the interpreter's end either."""
    if sys.stdout is not None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _encoding() -> str:
    return "utf-8" if sys.stdout is None else sys.stdout.encoding


def _write(data: bytes) -> None:
    if sys.stdout is None:
        raise OutputFailed("standard output", "it is closed")
    try:
        sys.stdout.buffer.write(data)
        # always: a reader behind a pipe waits for what a verb that goes on has printed so far
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _failed(error) from error


def _flush() -> None:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _failed(error) from error


def _failed(error: OSError) -> OutputFailed:
    return OutputFailed("standard output", (error.strerror or type(error).__name__).lower())


def _drop_unwritable() -> None:
    """Before an error is told: what was printed so far comes first, or is given up if it cannot be."""
    try:
        finish()
    except (OSError, OutputFailed):
        abandon()
