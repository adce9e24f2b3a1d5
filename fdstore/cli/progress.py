"""A progress line on stderr for long transfers, if it is a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fdstore.cli import output
from fdstore.text.layout import show_controls
from fdstore.text.quantities import format_count, format_size

LARGE_BYTES = 4_000_000
"""Smaller transfers are too short for a progress line."""

LARGE_COUNT = 2000
PAUSE_S = 0.1
BAR_COLUMNS = 24
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
        draw(f"{show_controls(label, keep='')}  {format_progress(done, total, now - began, noun)}")

    try:
        yield tell
    finally:
        draw("")


def format_progress(done: int, total: int | None, seconds: float, noun: str = "") -> str:
    """Format the progress of a transfer.

    >>> format_progress(500_000, 1_000_000, 2.0)
    '[############............]  50%  500.0 kB of 1.0 MB  250.0 kB/s'
    >>> format_progress(500_000, None, 2.0)
    '500.0 kB  250.0 kB/s'
    >>> format_progress(500, 1_000, 2.0, "content")
    '[############............]  50%  500 contents of 1000 contents  250 contents/s'
    """

    def amount(count: int) -> str:
        return format_count(count, noun) if noun else format_size(count)

    speed = f"{amount(int(done / max(seconds, 0.001)))}/s"
    if not total:
        return f"{amount(done)}  {speed}"
    part = min(1.0, done / total)
    bar = "#" * int(part * BAR_COLUMNS)
    return f"[{bar:.<{BAR_COLUMNS}}] {int(part * 100):3}%  {amount(done)} of {amount(total)}  {speed}"


def draw(text: str) -> None:
    sys.stderr.write(ERASE + text)
    sys.stderr.flush()
