"""Reading what Redis holds without trusting it: a damaged record harms its own tree alone.

Whatever a key holds was written by fdstore, but disks fail, people type, and versions differ. So every
number is checked before anything counts by it, and what cannot be read becomes one typed error,
`DamagedRecord`, that names it. Who looks at many trees passes such a record over and says so.

A tree says in which format it was written. Fields that are not known here are ignored and left alone;
a tree of a newer `FORMAT` is refused with `NewerFormat`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from fdstore.errors import DamagedRecord, FDStoreError, NewerFormat, StoreLostData, quoted
from fdstore.records import TreeLimits, Unreadable
from fdstore.text.layout import show_controls
from fdstore.text.numbers import MAX_INTEGER
from fdstore.wire.operation import Batch, Operation

FORMAT = 1
"""The format of the trees that this version writes, and the newest that it reads. Raise it when an older
version would misread a tree, or do harm in it; a field or a kind of record that older ones may pass over
does not need that."""

UNREADABLE = (LookupError, ValueError, OverflowError, RecursionError)
"""What decoding a damaged record raises; msgspec's errors and those of UTF-8 are among them."""

MAX_SHOWN = 200
"""Characters of a name or a problem that people are shown."""

MAX_MOMENT_S = 253_402_300_800
"""The year 10000: the last moment that can be shown."""


@contextmanager
def decoding(what: str) -> Iterator[None]:
    """Raise what goes wrong in the block as `DamagedRecord` of `what`."""
    try:
        yield
    except UNREADABLE as error:
        raise damage(what, error) from error


def damage(what: str, error: Exception) -> DamagedRecord:
    """The typed error for a record whose decoding failed."""
    if isinstance(error, DamagedRecord):
        return error
    said = f"no {error.args[0]!r}" if isinstance(error, KeyError) and error.args else str(error)
    return DamagedRecord(what, show_bytes(said) or type(error).__name__)


def unreadable(error: FDStoreError) -> Unreadable:
    """The note of a record that is passed over."""
    if isinstance(error, StoreLostData):
        return Unreadable(what=error.what, problem=error.problem)
    if isinstance(error, NewerFormat):
        return Unreadable(what=error.where, problem=f"written by a newer fdstore: {error.problem}")
    return Unreadable(what="a record", problem=str(error))


PASSED_OVER = (StoreLostData, NewerFormat)
"""Errors of one tree: who looks at many goes on with the others."""


def show_bytes(value: bytes | str) -> str:
    """A name from Redis for people, whatever bytes it holds.

    >>> show_bytes(b"triage"), show_bytes(b"\\xff")
    ('triage', '\\\\xff')
    """
    text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value
    return show_controls(text[:MAX_SHOWN], keep="")


def whole_number(value: str | bytes, least: int = 0, most: int = MAX_INTEGER) -> int:
    """A whole number. Raises `ValueError`."""
    text = value.decode("ascii") if isinstance(value, bytes) else value
    # int() would take blanks, underscores, and as many digits as there are
    if len(text) > 17 or not text.removeprefix("-").isdecimal() or not text.isascii():
        raise ValueError(f"{quoted(text, 40)} is not a whole number")
    number = int(text)
    if not least <= number <= most:
        raise ValueError(f"{number} is not between {least} and {most}")
    return number


def timestamp(value: str | bytes) -> float:
    """A time in seconds since the epoch. Raises `ValueError`."""
    seconds = float(value)
    if not 0 <= seconds < MAX_MOMENT_S:
        raise ValueError(f"{quoted(str(seconds), 40)} is not a time")
    return seconds


def limits_of(tree: str, stored: bytes | str | None) -> TreeLimits:
    """The limits of a tree; a ceiling of 0 makes one 0. Raises `DamagedRecord`."""
    with decoding(f"the limits of tree {tree}"):
        limits = msgspec.json.decode(stored or b"", type=TreeLimits)
        for name in limits.__struct_fields__:
            if not 0 <= getattr(limits, name) <= MAX_INTEGER:
                raise ValueError(f"{name} is {getattr(limits, name):g}")
    return limits


def check_format(tree: str, stored: bytes | str | None) -> None:
    """Check that this version can read a tree; one that says no format is of the first. Raises
    `NewerFormat`, `DamagedRecord`."""
    if stored is None:
        return
    with decoding(f"the format of tree {tree}"):
        found = whole_number(stored)
    if found > FORMAT:
        raise newer_tree(tree, found)


def newer_tree(tree: str, found: object) -> NewerFormat:
    """The error for a tree of a newer format."""
    return NewerFormat(f"tree {tree}", f"format {found}; this one knows {FORMAT}")


def replies_or_damage(reads: Batch) -> Operation[list[Any]]:
    """The replies to requests that stand alone, with the error in place of each that meets a damaged record.

    One round trip when there is none. Otherwise the batch is halved until each of them stands alone.
    """
    if not reads:
        return []
    try:
        replies: list[Any] = yield reads
        return replies
    except DamagedRecord as error:
        if len(reads) == 1:
            return [error]
    middle = len(reads) // 2
    first = yield from replies_or_damage(reads[:middle])
    return first + (yield from replies_or_damage(reads[middle:]))
