"""What an archive and a compressed file have in common: their members, and how one is surveyed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from fdstore.files.unpacking import Damaged, blocks_of
from fdstore.model.records import ContentKind
from fdstore.text.quantities import format_count
from fdstore.text.utf8 import Utf8Check

HEAD_BYTES = 512
"""The first bytes of each member that are kept."""


class Odd(NamedTuple):
    """A member that could not be stored, and the reason."""

    path: str
    problem: str


class LeftOutMember(Damaged):
    """A member is left out; the others are not."""


class Entry(NamedTuple):
    """A member of an archive, or what a compressed file holds: its path below the archive ("" there), its
    size, whether it is text in UTF-8, its first bytes, and where it is."""

    path: str
    size: int
    kind: ContentKind
    head: bytes
    place: Any


class Contents(NamedTuple):
    """What a packed file holds. `is_archive`: members with paths of their own, in the format `form`; else it
    is one compressed file."""

    form: str
    is_archive: bool
    entries: Sequence[Entry]
    odd: Sequence[Odd]


def survey(path: str, file: Any, place: Any) -> Entry:
    """Read a member to its end, and describe it."""
    check, size, head = Utf8Check(), 0, b""
    for block in blocks_of(file):
        size += len(block)
        head += block[: HEAD_BYTES - len(head)]
        check.feed(block)
    return Entry(path, size, "text" if check.ended() else "bytes", head, place)


def left_over(path: str, count: int) -> list[Odd]:
    if not count:
        return []
    return [Odd(path, f"{format_count(count, 'byte')} after its end that belong to nothing")]


def safe_path(name: str) -> str:
    """Return the path of a member below its archive. Raises `LeftOutMember` for one that leads out of it."""
    if name.startswith("/"):
        raise LeftOutMember("its name is absolute")
    names = [each for each in name.split("/") if each not in ("", ".")]
    if ".." in names:
        raise LeftOutMember("its name holds '..'")
    if not names:
        raise LeftOutMember("it has no name")
    return "/".join(names)


def shown_name(name: str) -> str:
    """Return the name of a member for messages."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")
