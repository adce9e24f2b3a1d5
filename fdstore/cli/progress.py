"""A progress line on stderr for long transfers, if it is a terminal.

It is drawn in place, which works on one line alone: so it is never wider than the terminal.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fdstore.cli import output
from fdstore.cli.tables import GAP, shorten, width
from fdstore.text.layout import show_controls
from fdstore.text.quantities import format_count, format_size

LARGE_BYTES = 4_000_000
"""Smaller transfers are too short for a progress line."""

LARGE_COUNT = 2000
PAUSE_S = 0.1
BAR_COLUMNS = 24
LABEL_COLUMNS = 8
"""What is left of a label at least."""

ERASE = "\r\x1b[K"


@contextmanager
def progress(label: str, total: int | None, noun: str = "") -> Iterator[Callable[[int], None] | None]:
    """Yield a function to call with the number of bytes so far, or of things named by `noun`.

    Yields None if stderr is not a terminal or the transfer is small. `total` is None if unknown.
    """
    large = LARGE_COUNT if noun else LARGE_BYTES
    if not output.stderr_is_terminal() or (total is not None and total < large):
        yield None
        return
    began = shown = time.monotonic()

    def tell(done: int) -> None:
        nonlocal shown
        now = time.monotonic()
        if now - shown < PAUSE_S:
            return
        shown = now
        draw(progress_line(label, done, total, now - began, noun, columns=output.stderr_columns() - 1))

    try:
        yield tell
    finally:
        draw("")


def progress_line(
    label: str, done: int, total: int | None, seconds: float, noun: str = "", *, columns: int
) -> str:
    """Format the progress of a transfer in at most `columns`: where they are few, without its bar, then with
    a shortened label.

    >>> progress_line("put a.log", 500_000, 1_000_000, 2.0, columns=80)
    'put a.log  [############............]  50%  500.0 kB of 1.0 MB  250.0 kB/s'
    >>> progress_line("put a.log", 500_000, 1_000_000, 2.0, columns=60)
    'put a.log   50%  500.0 kB of 1.0 MB  250.0 kB/s'
    >>> progress_line("put a-very-long-name.log", 500_000, None, 2.0, columns=40)
    'put a-very-long...  500.0 kB  250.0 kB/s'
    >>> progress_line("du a", 500, 1_000, 2.0, "content", columns=90)
    'du a  [############............]  50%  500 contents of 1,000 contents  250 contents/s'
    """

    def amount(count: int) -> str:
        return format_count(count, noun) if noun else format_size(count)

    label = show_controls(label, keep="")
    said = f"{amount(int(done / max(seconds, 0.001)))}/s"
    if not total:
        said = f"{amount(done)}  {said}"
    else:
        part = min(1.0, done / total)
        bar = "#" * int(part * BAR_COLUMNS)
        said = f"{int(part * 100):3}%  {amount(done)} of {amount(total)}  {said}"
        drawn = f"{label}{GAP}[{bar:.<{BAR_COLUMNS}}] {said}"
        if width(drawn) <= columns:
            return drawn
    return shorten(f"{shorten(label, max(LABEL_COLUMNS, columns - len(GAP + said)))}{GAP}{said}", columns)


def draw(text: str) -> None:
    """Draw a line in the place of the last one, cut to the terminal."""
    sys.stderr.write(ERASE + shorten(text, output.stderr_columns() - 1))
    sys.stderr.flush()
