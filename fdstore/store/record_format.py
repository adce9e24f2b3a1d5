"""Decode records from Redis without trusting them: a damaged record affects only its own tree.

All records are written by fdstore, but disks fail, people edit keys, versions differ, and who may write to
one tree may be hostile. So every number is validated before use, and a record that cannot be decoded raises
`DamagedRecord`, which names it. `decode_record` decodes JSON; `decoding` is for what is read field by field.
Operations over many trees skip such a record and report it.

Each tree records its format. Unknown fields are ignored and preserved; a tree of a newer `FORMAT` is
refused with `NewerFormat`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, TypeVar

import msgspec

from fdstore.errors import (
    SKIPPABLE,
    DamagedRecord,
    FDStoreError,
    InvalidArgument,
    NewerFormat,
    StoreLostData,
    quoted,
)
from fdstore.model.msgspec_types import prepare
from fdstore.model.records import MAX_MOMENT_S, TreeLimits, Unreadable
from fdstore.text.layout import show_controls
from fdstore.text.numbers import MAX_INTEGER
from fdstore.wire.operation import Batch, Operation

T = TypeVar("T")

FORMAT = 1
"""The format of the trees that this version writes, and the newest that it reads. Raise it when an older
version would misread or damage a tree; a new field or kind of record that older versions may ignore does
not need that."""

UNREADABLE = (LookupError, ValueError, OverflowError, RecursionError)
"""Exceptions raised by decoding a damaged record; they include those of msgspec and of UTF-8."""

MAX_SHOWN = 200
"""The maximum length of a name or a problem in a message, in characters."""


@contextmanager
def decoding(what: str) -> Iterator[None]:
    """Convert decoding errors in the block to `DamagedRecord` of `what`, also those of names and settings,
    which are checked as if a user had given them."""
    try:
        yield
    except (InvalidArgument, *UNREADABLE) as error:
        raise damage(what, error) from error


def decode_record(value: bytes | str | None, kind: type[T], what: str) -> T:
    """Decode a JSON value from Redis as this type. Raises `DamagedRecord` of `what` for a missing value, and
    for one that is not of the type, also if `__post_init__` of a Struct refuses it.

    >>> decode_record(b'{"tree_depth": 3}', TreeLimits, "the limits of tree triage").tree_depth
    3
    """
    of_kind: Any = kind
    with decoding(what):
        found: T = _decoder(of_kind).decode(b"" if value is None else value)
    return found


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    prepare(kind)
    return msgspec.json.Decoder(kind)


def damage(what: str, error: Exception) -> DamagedRecord:
    """Return the typed error for a record whose decoding failed."""
    if isinstance(error, DamagedRecord):
        return error
    problem = f"no {error.args[0]!r}" if isinstance(error, KeyError) and error.args else str(error)
    return DamagedRecord(what, show_bytes(problem) or type(error).__name__)


def unreadable(error: FDStoreError) -> Unreadable:
    """Return the description of a record that is skipped because of this error."""
    if isinstance(error, StoreLostData):
        return Unreadable(what=error.what, problem=error.problem)
    if isinstance(error, NewerFormat):
        return Unreadable(what=error.where, problem=f"written by a newer fdstore: {error.problem}")
    return Unreadable(what="a record", problem=str(error))


@contextmanager
def skipping(damaged: list[Unreadable]) -> Iterator[None]:
    """Add the error of a record that cannot be read to `damaged`, and continue after the block."""
    try:
        yield
    except SKIPPABLE as error:
        damaged.append(unreadable(error))


def required(reply: T | DamagedRecord) -> T:
    """Return a reply of `replies_or_damage`. Raises the error of a damaged record."""
    if isinstance(reply, DamagedRecord):
        raise reply
    return reply


def show_bytes(value: bytes | str) -> str:
    """Return a name from Redis as printable text, whatever bytes it holds.

    >>> show_bytes(b"triage"), show_bytes(b"\\xff")
    ('triage', '\\\\xff')
    """
    text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value
    return show_controls(text[:MAX_SHOWN], keep="")


def whole_number(value: str | bytes | int, least: int = 0, most: int = MAX_INTEGER) -> int:
    """Parse a whole number from `least` to `most`, also one that a script returns. Raises `ValueError`."""
    text = value.decode("ascii") if isinstance(value, bytes) else str(value)
    # int() would accept blanks, underscores, and any number of digits
    if len(text) > 20 or not text.removeprefix("-").isdecimal() or not text.isascii():
        raise ValueError(f"{quoted(text, 40)} is not a whole number")
    number = int(text)
    if not least <= number <= most:
        raise ValueError(f"{number} is not between {least} and {most}")
    return number


def timestamp_or_none(value: bytes | None) -> float | None:
    """Return a time; None if there is none, or it is damaged."""
    with suppress(*UNREADABLE):
        return None if value is None else timestamp(value)
    return None


def timestamp(value: str | bytes) -> float:
    """Parse a time in seconds since the epoch. Raises `ValueError`."""
    seconds = float(value)
    if not 0 <= seconds < MAX_MOMENT_S:
        raise ValueError(f"{quoted(str(seconds), 40)} is not a time")
    return seconds


def limits_of(tree: str, stored: bytes | str | None) -> TreeLimits:
    """Decode the limits of a tree; a ceiling may have lowered one to 0. Raises `DamagedRecord`."""
    return decode_record(stored, TreeLimits, f"the limits of tree {tree}")


def check_format(tree: str, stored: bytes | str | None) -> None:
    """Check that this version can read a tree. Raises `NewerFormat`, `DamagedRecord`."""
    if show_bytes(stored or "") != str(FORMAT):
        raise format_error(tree, stored)


def format_error(tree: str, stored: bytes | str | None) -> FDStoreError:
    """Return the error for a tree of another format than `FORMAT`."""
    try:
        found = whole_number(stored or "")
    except UNREADABLE as error:
        return damage(f"the format of tree {tree}", error)
    return NewerFormat(f"tree {tree}", f"format {found}; this one knows {FORMAT}")


def replies_or_damage(reads: Batch) -> Operation[list[Any]]:
    """Return the replies to independent commands; the reply to one that hits a damaged record is the error.

    One round trip if no record is damaged. Otherwise the batch is bisected to find the damaged ones.
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
