"""All output of the commands: text for people, JSON for programs, stored content.

Content printed to a pipe or file is exact to the byte. On a terminal, control characters of all output are
escaped: texts, answers, reasons and names come from untrusted sources, and a terminal obeys them. JSON is
always UTF-8. Messages go to stderr, one line each, always escaped. No other module of this package writes to
stdout or stderr (a test checks).
"""

from __future__ import annotations

import os
import select
import shutil
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from typing import TYPE_CHECKING, TextIO

import click

from fdstore.cli import tables
from fdstore.cli.colours import paint
from fdstore.cli.words import error_text
from fdstore.errors import FDStoreError, WriteFailed
from fdstore.text.layout import show_controls, show_controls_in_json

if TYPE_CHECKING:
    from fdstore.cli.happenings import Happening
    from fdstore.cli.tables import Table
    from fdstore.model.records import Unreadable
    from fdstore.setup.logs import LogFormat


READER_GONE = 141
"""Exit code after the reader of standard output closed the pipe; a shell reports the same for SIGPIPE."""


class OutputFailed(WriteFailed):
    """Writing to standard output failed."""

    def __str__(self) -> str:
        return f"{self.what} failed: {self.problem}; earlier output may have been written"


def stdout_is_terminal() -> bool:
    """Return whether standard output is a terminal."""
    return sys.stdout is not None and sys.stdout.isatty()


def end_with_reader() -> None:
    """Exit with `READER_GONE` as soon as the reader closes the pipe, as `head -1` does. A command that waits
    for new output would otherwise notice only at its next write. The process exits without cleanup: call
    this from commands that only read."""
    try:
        output = os.dup(sys.stdout.fileno())  # the one of now, whatever the number means later
    except (OSError, AttributeError):
        return  # of a test, in memory; or it is closed
    poll = select.poll()
    poll.register(output, 0)

    def wait() -> None:
        if any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll()):
            os._exit(READER_GONE)

    threading.Thread(target=wait, name="fdstore-reader", daemon=True).start()


def check_open() -> None:
    """Raise `OutputFailed` if standard output is closed, before anything is begun."""
    if sys.stdout is None:
        raise OutputFailed("standard output", "it is closed")


@contextmanager
def for_the_answer_alone() -> Iterator[None]:
    """Keep standard output for what follows the block: what functions of an agent print in it, and commands
    that they start, goes to standard error."""
    check_open()
    sys.stdout.flush()
    try:
        out, err = sys.stdout.fileno(), sys.stderr.fileno()
    except OSError:  # of a test, in memory
        with redirect_stdout(sys.stderr):
            yield
        return
    kept = os.dup(out)
    os.dup2(err, out)
    try:
        yield
    finally:
        with suppress(OSError):  # standard error may be closed
            sys.stdout.flush()
        os.dup2(kept, out)
        os.close(kept)


def stdin_is_terminal() -> bool:
    """Return whether standard input is a terminal."""
    return sys.stdin is not None and sys.stdin.isatty()


def columns() -> int | None:
    """Return the width of the terminal; None if standard output is not one, so that tables are not cut."""
    return shutil.get_terminal_size().columns if stdout_is_terminal() else None


def stderr_columns() -> int:
    """Return the width of the terminal that standard error is; 80 if it is none."""
    with suppress(OSError):  # of a test, in memory
        # of the stream itself: shutil asks standard output, which may be a pipe
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    return 80


def stderr_is_terminal() -> bool:
    """Return whether standard error is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


def use_colours(when: str = "auto") -> bool:
    """Return whether to colour standard output. "auto": on a terminal without NO_COLOR."""
    return when == "always" or (when == "auto" and stdout_is_terminal() and _wants_colours())


def _wants_colours() -> bool:
    from fdstore.setup import settings

    return settings.read().colours


def line(text: str = "") -> None:
    """Print one or several lines, escaped on a terminal."""
    print_painted(show_controls(text) if stdout_is_terminal() else text)


def sentence(text: str) -> None:
    """Print a line. On a terminal what is long goes on below itself."""
    room = columns()
    for each in tables.wrap(show_controls(text), room, indent="  ") if room else [text]:
        print_painted(each)


def print_painted(text: str) -> None:
    """Print lines that may contain colours; the caller has escaped their text."""
    _write(f"{text}\n".encode(_encoding(), "backslashreplace"))


def table(declared: Table, rows: Sequence[Sequence[str]], below: Sequence[str] = ()) -> None:
    """Print a table that fits the terminal, coloured if colours are on, with a line `below` each row; on
    stderr, how to see what is cut."""
    drawn = tables.draw(declared, rows, below=below, columns=columns(), coloured=use_colours())
    print_painted(str(drawn))
    if drawn.is_cut and declared.whole:
        note(f"... is what is cut here: {declared.whole}")


def happening(event: Happening, *, to_stderr: bool) -> None:
    """Print what happened in a tree: on a terminal coloured, a long line going on below itself."""
    is_terminal = stderr_is_terminal() if to_stderr else stdout_is_terminal()
    width = (stderr_columns() if to_stderr else columns()) if is_terminal else None
    for each in event.lines(columns=width, coloured=is_terminal and _wants_colours()):
        if to_stderr:
            click.echo(each, err=True, color=True)
        else:
            print_painted(each)


def facts(pairs: Sequence[tuple[str, str]]) -> None:
    """Print pairs of a name and a value, coloured if colours are on; long values go on below themselves."""
    print_painted(tables.facts(pairs, columns=columns(), coloured=use_colours()))


def verdict(text: str, style: str) -> None:
    """Print the last line of a check, coloured if colours are on."""
    line(text) if not use_colours() else print_painted(paint(show_controls(text), style))


def clear_screen() -> None:
    """Clear the terminal before output that replaces what is there; elsewhere do nothing."""
    if stdout_is_terminal():
        _write(b"\x1b[H\x1b[2J")


def marked(mark: str, style: str, text: str, advice: str = "") -> None:
    """Print a line that begins with a mark, coloured if colours are on, and advice below it. On a terminal
    what is long goes on below itself."""
    indent = " " * len(f"{mark}{tables.GAP}")
    below = [f"-> {advice}"] if advice else []
    if room := columns():
        text, *below = (show_controls(each) for each in (text, *below))
        text, *more = tables.wrap(text, room - len(indent))
        for each in below:
            more += tables.wrap(each, room - len(indent), indent="   ")
        below = more
    print_painted(f"{paint(mark, style) if use_colours() else mark}{tables.GAP}{text}")
    for each in below:
        print_painted(indent + each)


def document(record: object) -> None:
    """Print a record, or a dict of records, as JSON on one line."""
    import msgspec

    encoded = msgspec.json.encode(record)
    if stdout_is_terminal():
        encoded = show_controls_in_json(encoded.decode("utf-8")).encode("utf-8")
    _write(encoded + b"\n")


def documents(records: Iterable[object]) -> None:
    """Print records as JSON, one on each line."""
    for record in records:
        document(record)


def content(data: bytes, *, raw: bool = False) -> None:
    """Print stored text: complete UTF-8 characters."""
    if stdout_is_terminal() and not raw:
        data = show_controls(data.decode("utf-8")).encode(_encoding(), "backslashreplace")
    _write(data)


def escaped_content(data: bytes) -> None:
    """Print stored text that is already escaped if necessary, and may contain colours."""
    if stdout_is_terminal() and _encoding().lower() != "utf-8":
        data = data.decode("utf-8", "backslashreplace").encode(_encoding(), "backslashreplace")
    _write(data)


class Pieces:
    """Prints a content in chunks: as text or bytes, or with --json one document per chunk."""

    def __init__(self, fd: str, *, as_json: bool, raw: bool) -> None:
        self._fd = fd
        self._as_json = as_json
        self._raw = raw
        self._is_text = True
        self._last = b"\n"

    def print_bytes(self) -> None:
        """Print bytes instead of text from now on: as they are, in JSON as base64."""
        self._is_text = False

    def print(self, data: bytes) -> None:
        """Print a chunk of a content: of text, complete UTF-8 characters."""
        if not data:
            return
        if not self._is_text:
            document({"fd": self._fd, "base64": data}) if self._as_json else _write(data)
            return
        self._last = data[-1:]
        if self._as_json:
            document({"fd": self._fd, "text": data.decode("utf-8")})
        else:
            content(data, raw=self._raw)

    def end(self) -> None:
        """Finish: on a terminal, end an incomplete last line."""
        if stdout_is_terminal() and not self._as_json and self._last != b"\n":
            line()


def path_text(path: object) -> str:
    """Return a path as text that JSON can hold: it may contain bytes that are not UTF-8."""
    return str(path).encode("utf-8", "backslashreplace").decode("utf-8")


def report_unreadable(found: Sequence[Unreadable], *, as_json: bool) -> None:
    """Report skipped records: a line each on stderr, or one JSON document."""
    if found and as_json:
        document({"unreadable": found})
        return
    for each in found:
        say(f"fdstore: {each.what} cannot be read: {each.problem}")


def confirm(question: str, *, without_terminal: str) -> bool:
    """Ask for confirmation. Raises `UsageError(without_terminal)` if stdin or stderr is not a terminal."""
    if not (stdin_is_terminal() and stderr_is_terminal()):
        raise click.UsageError(without_terminal)
    return click.confirm(show_controls(question, keep=""), err=True)


def note(text: str) -> None:
    """Print a message to stderr if it is a terminal."""
    if stderr_is_terminal():
        say(text)


def prompt(text: str) -> None:
    """Print the begin of a line to stderr, which the person at the terminal goes on with."""
    click.echo(show_controls(text, keep=""), err=True, nl=False)


def say(text: str) -> None:
    """Print a message to stderr."""
    click.echo(show_controls(text, keep="\t"), err=True)


def say_of_us(text: str) -> None:
    """Print a message of fdstore itself to stderr."""
    say(f"fdstore: {text}")


def errors(text: str, *, raw: bool = False) -> None:
    """Print the stderr of commands to ours, escaped like `content`."""
    click.echo(show_controls(text) if stderr_is_terminal() and not raw else text, err=True, nl=False)


def show_logs(level: str = "warning", log_format: LogFormat = "text") -> None:
    """Log messages of the library and of its HTTP servers from `level` up to stderr, with control characters
    escaped; what is to be said once a day (`once_a_day` names it), not more often. A second call changes
    nothing."""
    import logging

    from fdstore.local.said_today import is_first_today
    from fdstore.setup import settings
    from fdstore.setup.logs import formatter

    class ToStderr(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            daily = getattr(record, "once_a_day", "")
            if daily and not is_first_today(settings.read().data_dir, daily):
                return
            click.echo(self.format(record), err=True)

    log = logging.getLogger("fdstore")
    if not log.handlers:
        handler = ToStderr(level.upper())
        handler.setFormatter(formatter(log_format, "%(name)s: %(message)s"))
        log.addHandler(handler)
        for other in ("uvicorn", "mcp"):
            logging.getLogger(other).addHandler(handler)
        if level != "warning":
            log.setLevel(level.upper())


def report(error: FDStoreError, *, as_json: bool) -> None:
    """Print an error to stderr, with its notes."""
    drop_unwritable()
    if as_json:
        import msgspec

        record = {"error": {"type": error.type, "message": error_text(error)}}
        say(show_controls_in_json(msgspec.json.encode(record).decode("utf-8")))
        return
    message = f"fdstore: {error.type}: {error_text(error)}"
    if stderr_is_terminal() and _wants_colours():
        message = show_controls(message, keep="\t")
        head = f"fdstore: {error.type}:"
        click.echo(paint(head, "bad") + message.removeprefix(head), err=True, color=True)
    else:
        say(message)
    for hint in getattr(error, "__notes__", ()):
        say(f"  {hint}")


def finish() -> None:
    """Flush standard output while a failure can still be reported."""
    if sys.stdout is not None:
        _write(b"")


def abandon(stream: TextIO | None = None) -> None:
    """Redirect standard output, or another stream, to /dev/null, also for the flush at the end."""
    stream = stream or sys.stdout
    if stream is not None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def _encoding() -> str:
    return "utf-8" if sys.stdout is None else sys.stdout.encoding


def _write(data: bytes) -> None:
    check_open()
    try:
        sys.stdout.buffer.write(data)
        # always flush: a reader behind a pipe waits for the output of a long-running verb
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        problem = (error.strerror or type(error).__name__).lower()
        raise OutputFailed("standard output", problem) from error


def drop_unwritable() -> None:
    """Flush earlier output before an error message, or drop it if that fails."""
    try:
        finish()
    except (OSError, OutputFailed):
        abandon()
