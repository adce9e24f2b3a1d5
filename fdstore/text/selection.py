"""Parse descriptor ids and selectors of parts, as people and models write them.

    fd:3   fd-3   3          a descriptor (always printed as fd:3)
    ref:plan                 a passage that a model named
    name:notes/plan.md       a content by its name (see `names`)
    fd:3#P2  fd:3#P2-4       pages           ref:plan#L1-5     any part of either
    fd:3#L120-180            lines           fd:3#L120-        from line 120 to the end
    fd:3#C100-299            characters
    fd:3#J/results/0         a value of JSON, by its pointer (RFC 6901): all that follows "#J"

All positions are 1-based and inclusive. A start past the end is an error; an end past it is clamped, and
results report the clamped range. No number has leading zeros.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import TypeAlias

import msgspec

from fdstore.errors import InvalidArgument, PageOutOfRange, PositionOutOfRange, quoted
from fdstore.model.records import Mode
from fdstore.text.json_pointer import parse_pointer
from fdstore.text.names import NAME, SELECTOR, split_name
from fdstore.text.numbers import MAX_INTEGER

FdLike = str | int
"""A descriptor id: "fd:3", "fd-3", "3", 3, "ref:plan", "name:plan.md"; where noted, with "#L1-9"."""

_FD = re.compile(r"(?:fd[:-])?([1-9][0-9]{0,15})")
_REF = re.compile(r"ref:[A-Za-z0-9_.-]{1,64}")
_MODES: dict[str, Mode] = {"P": "page", "L": "line", "C": "char"}
MODES: tuple[Mode, ...] = ("page", "line", "char")

ID_FORMS = "write fd:3, ref:NAME for a named passage, or name:KEY"
SELECTOR_FORMS = (
    "write fd:3#P2-4 for pages, fd:3#L10-20 for lines, fd:3#C1-99 for characters, fd:3#L10- to the end, "
    "fd:3#J/key/0 for a value of JSON"
)


class Part(msgspec.Struct, frozen=True):
    """A range in units of `mode`, 1-based; `count` units from `start` on."""

    mode: Mode
    start: int
    count: int

    @property
    def last(self) -> int:
        return self.start + self.count - 1


FIRST_PAGE = Part("page", 1, 1)
"""The part that is read by default."""


class JsonValue(msgspec.Struct, frozen=True):
    """The source text of a value of a JSON content, which `locating.locate` finds in it."""

    pointer: str


AnyPart: TypeAlias = Part | JsonValue


class Selector(msgspec.Struct, frozen=True):
    """A descriptor id in its canonical form, and a part, if any.

    >>> str(selector("3#L120-180")), str(selector("fd:3#P2-")), str(selector("3#J/a/0")), str(selector(3))
    ('fd:3#L120-180', 'fd:3#P2-', 'fd:3#J/a/0', 'fd:3')
    """

    fd: str
    part: AnyPart | None = None

    def __str__(self) -> str:
        if self.part is None:
            return self.fd
        if isinstance(self.part, JsonValue):
            return f"{self.fd}#J{self.part.pointer}"
        last = "" if self.part.last == MAX_INTEGER else self.part.last
        return f"{self.fd}#{self.part.mode[0].upper()}{self.part.start}-{last}"


def fd_ids(values: Iterable[object]) -> list[str]:
    """Return the canonical forms of several ids. Raises `InvalidArgument`, also for a single one."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise InvalidArgument("share", 'a list of ids is needed, as ["fd:1"]')
    return [fd_id(value) for value in values]


def fd_id(value: object) -> str:
    """Return the canonical form of a descriptor id without a part.

    >>> fd_id("fd-3"), fd_id(3), fd_id("ref:plan")
    ('fd:3', 'fd:3', 'ref:plan')

    Raises `InvalidArgument` for anything else.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        if 1 <= value <= MAX_INTEGER:
            return f"fd:{value}"
        raise InvalidArgument("fd", f"descriptors are numbered from 1; {ID_FORMS}")
    if isinstance(value, str):
        found = _FD.fullmatch(value)
        if found and int(found[1]) <= MAX_INTEGER:
            return f"fd:{found[1]}"
        if _REF.fullmatch(value):
            return value
        if value.startswith(NAME):
            name, part = split_name(value)
            if part is None:
                return name
            raise InvalidArgument("fd", f"{quoted(value)}: a whole content is needed here, without #{part}")
    raise InvalidArgument("fd", f"{quoted(value)} names no descriptor; {ID_FORMS}")


def selector(value: object) -> Selector:
    """Parse a descriptor with an optional part.

    >>> selector("fd:3#L120-180")
    Selector(fd='fd:3', part=Part(mode='line', start=120, count=61))

    Raises `InvalidArgument`.
    """
    # cache text alone: values of other types may be equal but not the same (1 and True)
    return _selector(value) if isinstance(value, str) else Selector(fd_id(value))


@lru_cache(maxsize=1024)
def _selector(value: str) -> Selector:
    if value.startswith(NAME):
        fd, part = split_name(value)
        hash_sign, range_text = part is not None, part or ""
    else:
        name, mark, range_text = value.partition("#")
        fd, hash_sign = fd_id(name), bool(mark)
    if not hash_sign:
        return Selector(fd)
    found = SELECTOR.fullmatch(range_text)
    if not found:
        raise InvalidArgument("fd", f"{quoted(range_text)} is not a part of a content; {SELECTOR_FORMS}")
    pointer, mode, first, dash, written_end = found.groups()
    if mode is None:
        parse_pointer(pointer or "")
        return Selector(fd, JsonValue(pointer or ""))
    end = str(MAX_INTEGER) if dash and not written_end else written_end or first
    if first.startswith("0") or end.startswith("0"):
        problem = "numbers count from 1 and have no leading zeros"
        raise InvalidArgument("fd", f"{quoted(range_text)}: {problem}; {SELECTOR_FORMS}")
    start, last = int(first), int(end)
    if not start <= last <= MAX_INTEGER:
        raise InvalidArgument("fd", f"{quoted(range_text)}: ranges run upwards from 1; {SELECTOR_FORMS}")
    return Selector(fd, Part(_MODES[mode], start, last - start + 1))


def number(name: str, value: object) -> int:
    """Return `value` if it is a whole number from 1 to 2**53. Raises `InvalidArgument`."""
    if type(value) is not int and (isinstance(value, bool) or not isinstance(value, int)):
        raise InvalidArgument(name, f"a whole number is needed, not {quoted(value)}")
    if not 1 <= value <= MAX_INTEGER:
        raise InvalidArgument(name, f"a number from 1 to {MAX_INTEGER} is needed")
    return value


def check_mode(mode: object) -> Mode:
    """Return `mode` if it is valid. Raises `InvalidArgument`."""
    for known in MODES:
        if mode == known:
            return known
    raise InvalidArgument("mode", f"{quoted(mode)} is not a mode; use page, line or char")


def clamp(fd: str, part: Part, total: int) -> Part:
    """Return `part`, cut at the end of a content with `total` units of its mode.

    Position 1 of an empty content is valid, and the result is empty.
    Raises `PageOutOfRange` or `PositionOutOfRange` when the start is past the end.
    """
    if part.start > max(total, 1):
        if part.mode == "page":
            raise PageOutOfRange(fd, part.start, total)
        raise PositionOutOfRange(fd, "line" if part.mode == "line" else "character", part.start, total)
    return Part(part.mode, part.start, min(part.count, total - part.start + 1))


def parse_request(
    value: object,
    mode: object = None,
    start: object = None,
    count: object = None,
    *,
    whole: bool = False,
    default: Part | None = None,
) -> Selector:
    """Parse what a call requests, from a selector or from separate arguments; no part means everything.

    `whole` requests everything; `default` is the part if neither is given.
    Raises `InvalidArgument`, also when the ways are mixed.
    """
    found = selector(value)
    if found.part is None and not whole:
        if mode is None and start is None and count is None:
            return Selector(found.fd, default)
        return Selector(
            found.fd,
            Part(
                "page" if mode is None else check_mode(mode),
                1 if start is None else number("start", start),
                1 if count is None else number("count", count),
            ),
        )
    names = [name for name, arg in (("mode", mode), ("start", start), ("count", count)) if arg is not None]
    if found.part is not None and (names or whole):
        extra = names[0] if names else "read_all"
        raise InvalidArgument(extra, f"{quoted(value)} says which part already; leave {extra} out")
    if mode is not None:
        check_mode(mode)
    ranges = [name for name in names if name != "mode"]
    if ranges:
        raise InvalidArgument(ranges[0], f"read_all reads everything; leave {ranges[0]} out")
    return found
