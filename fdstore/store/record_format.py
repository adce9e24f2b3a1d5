"""Decode records from Redis without trusting them: a damaged record affects only its own tree.

All records are written by fdstore, but disks fail, people edit keys, versions differ, and who may write to
one tree may be hostile. So every number is validated before use, and a record that cannot be decoded raises
`DamagedRecord`, which names it. `decode_record` decodes JSON, `decode_count` and those beside it one number,
and `hashes.Hash` a hash, each by the bounds of its type. `decoding` names the record that a block of code
decodes. Operations over many trees skip such a record and report it.

Each tree records its format. Unknown fields are ignored and preserved; a tree of a newer `FORMAT` is
refused with `NewerFormat`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
    StoreRefused,
    StoreUnavailable,
    TreeOutOfReach,
    quoted,
)
from fdstore.model.msgspec_types import prepare
from fdstore.model.records import Count, Moment, Ordinal, Total, TreeLimits, Unreadable
from fdstore.text.layout import show_controls
from fdstore.wire.operation import Apart, Batch, Command, Operation, key_of

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


def decode_or_none(value: bytes | None, kind: type[T]) -> T | None:
    """Decode a JSON value from Redis as this type; None for one that is missing, or is not of the type."""
    of_kind: Any = kind
    with suppress(*UNREADABLE):
        found: T = _decoder(of_kind).decode(value or b"")
        return found
    return None


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


def show_bytes(value: bytes | str, most: int = MAX_SHOWN) -> str:
    """Return at most so many characters of a name from Redis as printable text, whatever bytes it holds.

    >>> show_bytes(b"triage"), show_bytes(b"\\xff")
    ('triage', '\\\\xff')
    """
    text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value
    return show_controls(text[:most], keep="")


Number = bytes | str | int | None
"""A number as Redis and its scripts give it; None is missing, and refused."""


def _scalar(kind: Any, what: str) -> Callable[[Number], Any]:
    """Return the decoder of a number from Redis, or from a script, of this type. It raises `ValueError`."""
    decode = msgspec.json.Decoder(kind).decode

    def decoded(value: Number) -> Any:
        try:
            return decode(b"%d" % value if isinstance(value, int) else value or b"")
        except ValueError as error:
            shown = "" if value is None else value if isinstance(value, bytes) else str(value)
            raise ValueError(f"{quoted(show_bytes(shown), 40)} is not {what}") from error

    return decoded


decode_count: Callable[[Number], int] = _scalar(Count, "a whole number from 0 on")
decode_ordinal: Callable[[Number], int] = _scalar(Ordinal, "a whole number from 1 on")
decode_total: Callable[[Number], int] = _scalar(Total, "a whole number")
decode_moment: Callable[[Number], float] = _scalar(Moment, "a time")


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
        found = decode_count(stored)
    except UNREADABLE as error:
        return damage(f"the format of tree {tree}", error)
    return NewerFormat(f"tree {tree}", f"format {found}; this one knows {FORMAT}")


def replies_of_trees(reads: Batch) -> Operation[list[Any]]:
    """Return the replies to reads of many trees, as `replies_or_damage`. In a Cluster the reply to one whose
    node does not answer is the error too, `TreeOutOfReach`. Raises `StoreUnavailable` if no node answers."""
    replies = yield from replies_or_damage(Apart(reads))
    refused = next((each for each in replies if isinstance(each, StoreRefused)), None)
    if refused is not None:
        raise refused
    if replies and all(isinstance(each, StoreUnavailable) for each in replies):
        return (yield from replies_or_damage(reads))
    return [
        _out_of_reach(read, reply) if isinstance(reply, StoreUnavailable) else reply
        for read, reply in zip(reads, replies, strict=True)
    ]


def _out_of_reach(read: Command, error: StoreUnavailable) -> TreeOutOfReach:
    tree = str(key_of(read)).partition("{")[2].partition("}")[0]
    return TreeOutOfReach(f"tree {tree}", f"its node does not answer: {error.problem}")


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
    halves = [type(reads)(half) for half in (reads[:middle], reads[middle:])]
    first = yield from replies_or_damage(halves[0])
    return first + (yield from replies_or_damage(halves[1]))
