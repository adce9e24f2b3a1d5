"""What people and models may write for a descriptor and a part of it, and what that means.

    fd:3   fd-3   3          a descriptor (shown always as fd:3)
    ref:plan                 a named passage
    fd:3#P2  fd:3#P2-4       pages           ref:plan#L1-5     any part of either
    fd:3#L120-180            lines
    fd:3#C100-299            characters

All positions are 1-based and inclusive. A start past the end is an error, an end past it is
clamped: what is reported is what was returned.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

import msgspec

from fdstore.errors import InvalidArgument, PageOutOfRange, PositionOutOfRange, quoted
from fdstore.records import Mode
from fdstore.text.numbers import MAX_INTEGER

FdLike = str | int
"""What names a descriptor: "fd:3", "fd-3", "3", 3, "ref:plan"; where noted, with "#L1-9"."""

_FD = re.compile(r"(?:fd[:-])?([1-9][0-9]{0,15})")
_REF = re.compile(r"ref:[A-Za-z0-9_.-]{1,64}")
_PART = re.compile(r"([PLC])([0-9]{1,16})(?:-([0-9]{1,16}))?")
_MODES: dict[str, Mode] = {"P": "page", "L": "line", "C": "char"}
MODES: tuple[Mode, ...] = ("page", "line", "char")

ID_FORMS = "write fd:3, or ref:NAME for a named passage"
SELECTOR_FORMS = "write fd:3#P2-4 for pages, fd:3#L10-20 for lines, fd:3#C1-99 for characters"


class Part(msgspec.Struct, frozen=True):
    """A range in units of `mode`, 1-based; `count` units from `start` on."""

    mode: Mode
    start: int
    count: int

    @property
    def last(self) -> int:
        return self.start + self.count - 1


FIRST_PAGE = Part("page", 1, 1)
"""What is read when nothing is said."""


class Selector(msgspec.Struct, frozen=True):
    """A descriptor id in its one shown form, and the part asked for, if any."""

    fd: str
    part: Part | None = None


def fd_ids(values: Iterable[object]) -> list[str]:
    """The shown forms of several ids. Raises `InvalidArgument`, also for one text: its letters are no ids."""
    if isinstance(values, str):
        raise InvalidArgument("share", 'a list of ids is needed, as ["fd:1"]')
    return [fd_id(value) for value in values]


def fd_id(value: object) -> str:
    """The shown form of a descriptor id, without a part.

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
    raise InvalidArgument("fd", f"{quoted(value)} names no descriptor; {ID_FORMS}")


def selector(value: object) -> Selector:
    """A descriptor with an optional part.

    >>> selector("fd:3#L120-180")
    Selector(fd='fd:3', part=Part(mode='line', start=120, count=61))

    Raises `InvalidArgument`.
    """
    # text alone is remembered: of other types, some that are equal are not the same (1 and True)
    return _selector(value) if isinstance(value, str) else Selector(fd_id(value))


@lru_cache(maxsize=1024)
def _selector(value: str) -> Selector:
    name, hash_sign, written = value.partition("#")
    fd = fd_id(name)
    if not hash_sign:
        return Selector(fd)
    found = _PART.fullmatch(written)
    if not found:
        raise InvalidArgument("fd", f"{quoted(written)} is no part of a content; {SELECTOR_FORMS}")
    start, last = int(found[2]), int(found[3] or found[2])
    if not 1 <= start <= last <= MAX_INTEGER:
        raise InvalidArgument("fd", f"{quoted(written)}: ranges run upwards from 1; {SELECTOR_FORMS}")
    return Selector(fd, Part(_MODES[found[1]], start, last - start + 1))


def number(name: str, value: object) -> int:
    """`value` if it is a whole number from 1 to 2**53. Raises `InvalidArgument`."""
    if type(value) is not int and (isinstance(value, bool) or not isinstance(value, int)):
        raise InvalidArgument(name, f"a whole number is needed, not {quoted(value)}")
    if not 1 <= value <= MAX_INTEGER:
        raise InvalidArgument(name, f"a number from 1 to {MAX_INTEGER} is needed")
    return value


def check_mode(mode: object) -> Mode:
    """`mode` if it is one. Raises `InvalidArgument`."""
    for known in MODES:
        if mode == known:
            return known
    raise InvalidArgument("mode", f"{quoted(mode)} is not a mode; use page, line or char")


def clamp(fd: str, parse_request: Part, total: int) -> Part:
    """`parse_request`, cut at the end of a content with `total` units of its mode.

    Reading from position 1 of nothing is nothing, not an error.
    Raises `PageOutOfRange` or `PositionOutOfRange` when the start is past the end.
    """
    if parse_request.start > max(total, 1):
        if parse_request.mode == "page":
            raise PageOutOfRange(fd, parse_request.start, total)
        raise PositionOutOfRange(
            fd, "line" if parse_request.mode == "line" else "character", parse_request.start, total
        )
    return Part(
        parse_request.mode, parse_request.start, min(parse_request.count, total - parse_request.start + 1)
    )


def parse_request(
    value: object,
    mode: object = None,
    start: object = None,
    count: object = None,
    *,
    whole: bool = False,
    default: Part | None = None,
) -> Selector:
    """What a call asks for, from a selector or from separate arguments; no part means everything.

    `whole` asks for everything, `default` is the part when nothing is said.
    Raises `InvalidArgument`, also when two of the ways are mixed.
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
    said = [name for name, given in (("mode", mode), ("start", start), ("count", count)) if given is not None]
    if found.part is not None and (said or whole):
        extra = said[0] if said else "read_all"
        raise InvalidArgument(extra, f"{quoted(value)} says which part already; leave {extra} out")
    if mode is not None:
        check_mode(mode)
    beside = [name for name in said if name != "mode"]
    if beside:
        raise InvalidArgument(beside[0], f"read_all reads everything; leave {beside[0]} out")
    return found
