"""The reference that code holds to a text: its place and its size.

fd("fd:1")             the whole text
fd("fd:1#L1-100")      a part; its positions count from its own beginning
log.split(chars=9000)  parts, which code passes on as "fd:1#C1-8990"
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from fdstore.errors import InvalidArgument, NotText, PositionOutOfRange, TooLarge, quoted
from fdstore.model.records import Descriptor
from fdstore.store.contents import descriptors, extents, reading, searching
from fdstore.store.contents.extents import Extent, SplitUnit
from fdstore.store.process_handle import ProcessHandle
from fdstore.text.pattern import groups_in
from fdstore.text.selection import Part, selector
from fdstore.wire.operation import Operation

Unit: TypeAlias = Literal["pages", "lines", "chars", "window", "all"]

PART_CHARS = 50_000
"""The parts that the error of a text that is too large advises, unless less may be read."""


class TextRef(msgspec.Struct, frozen=True):
    """A text or a part of one: its descriptor, its extent, and the selector that names it."""

    descriptor: Descriptor
    extent: Extent
    ref: str

    @property
    def is_whole(self) -> bool:
        return self.ref == self.descriptor.fd

    @property
    def is_fixed(self) -> bool:
        """Return whether it stays as it is: it is not written any more, and is not reached by a name, which
        may come to mean another text."""
        return self.descriptor.state != "open" and self.descriptor.fd.startswith("fd:")

    @property
    def pages(self) -> int:
        """Its pages; those of a part have as many characters as the pages of its text."""
        if self.is_whole:
            return self.descriptor.pages
        return max(1, -(-self.extent.chars // self.descriptor.page_size))

    @property
    def facts(self) -> dict[str, Any]:
        """Its facts, as code gets them."""
        d = self.descriptor
        return {
            "ref": self.ref,
            "fd": d.fd,
            "total_chars": self.extent.chars,
            "total_lines": self.extent.lines,
            "total_pages": self.pages,
            "source": d.source,
            "kind": d.kind,
            "state": d.state,
            "first_char": self.extent.first_char,
            "first_line": self.extent.first_line,
        }


def require_text(text_ref: TextRef) -> None:
    """Raise `NotText` for bytes, which have no characters to read."""
    d = text_ref.descriptor
    if d.kind != "text":
        raise NotText(d.fd, d.media_type, d.bytes)


def whole(descriptor: Descriptor) -> TextRef:
    """Return the reference to a whole text, or of bytes, which have no characters to read."""
    return TextRef(descriptor, extents.whole(descriptor), descriptor.fd)


def part_of(descriptor: Descriptor, extent: Extent) -> TextRef:
    """Return the reference to a part."""
    if extent.chars == descriptor.chars:
        return whole(descriptor)
    last = extent.first_char + max(extent.chars, 1) - 1
    return TextRef(descriptor, extent, f"{descriptor.fd}#C{extent.first_char}-{last}")


def look_up(handle: ProcessHandle, ref: object) -> Operation[TextRef]:
    """Return the text that `ref` names: a number, "fd:1", "name:KEY", "ref:NAME", with a selector too."""
    named = selector(ref)
    if named.part is None:
        return whole((yield from descriptors.stat(handle, named.fd)))
    return part_of(*(yield from extents.measure(handle, named.fd, named.part)))


def read(
    handle: ProcessHandle, text_ref: TextRef, unit: Unit, first: int, last: int, limit: int
) -> Operation[str]:
    """Return the text of these units, inclusive, as they count in it. An end past its end is clamped; a
    window ends where `limit` characters are read.

    Raises `PositionOutOfRange`, `TooLarge` (more than `limit` characters), `NotText`.
    """
    require_text(text_ref)
    if unit == "all" and text_ref.extent.chars == 0:
        return ""
    try:
        if unit == "all":
            part = None if text_ref.is_whole else text_ref.extent.part
            return (yield from reading.read(handle, text_ref.descriptor.fd, part, limit)).text
        return (yield from _read_units(handle, text_ref, unit, first, last, limit))
    except TooLarge as error:
        what = text_ref.ref if unit == "all" else f"this part of {text_ref.ref}"
        size = min(limit, PART_CHARS)
        advice = f"read it in parts: split(chars={size}), chars(first, last), or search(pattern)"
        raise TooLarge(what, error.size, limit, advice) from None


def _read_units(
    handle: ProcessHandle, text_ref: TextRef, unit: Unit, first: int, last: int, limit: int
) -> Operation[str]:
    fd, extent = text_ref.descriptor.fd, text_ref.extent
    total = {"pages": text_ref.pages, "lines": extent.lines}.get(unit, extent.chars)
    first, last = _whole_number("first", first), _whole_number("last", last)
    if last < first:
        raise InvalidArgument("last", f"ranges run upwards: {last} is before {first}")
    if first > total:
        named = "char" if unit == "window" else unit.removesuffix("s")
        raise PositionOutOfRange(text_ref.ref, named, first, total)
    last = min(last, total)
    if unit == "pages" and text_ref.is_whole:
        return (yield from reading.read(handle, fd, Part("page", first, last - first + 1), limit)).text
    if unit == "lines":
        lines = Part("line", extent.first_line + first - 1, last - first + 1)
        try:
            found = yield from reading.read(handle, fd, lines, limit)
            return _inside(found.text, found.chars, extent)
        except TooLarge:
            if text_ref.is_whole:
                raise
        # the part may have little of its first and last line
        _, measured = yield from extents.measure(handle, fd, lines)
        begin = max(measured.first_char, extent.first_char)
        until = min(measured.first_char + measured.chars, extent.first_char + extent.chars)
        return (yield from reading.read(handle, fd, Part("char", begin, until - begin), limit)).text
    if unit == "pages":
        size = text_ref.descriptor.page_size
        first, last = (first - 1) * size + 1, min(last * size, extent.chars)
    elif unit == "window":
        last = min(last, first + limit - 1)
    part = Part("char", extent.first_char + first - 1, last - first + 1)
    return (yield from reading.read(handle, fd, part, limit)).text


def _inside(text: str, chars: str, extent: Extent) -> str:
    """Cut whole lines to the part that is inside the extent; `chars` says where they are."""
    begin = int(chars.partition("-")[0])
    until = extent.first_char + extent.chars - begin
    return text[max(0, extent.first_char - begin) : max(0, until)]


def _whole_number(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        shown = str(value) if isinstance(value, int | float) else quoted(value)
        raise InvalidArgument(name, f"{shown} is not a number from 1 on")
    return value


def search(
    handle: ProcessHandle,
    text_ref: TextRef,
    pattern: str,
    max_matches: int,
    *,
    ignore_case: bool,
    context: int,
) -> Operation[list[dict[str, Any]]]:
    """Return the matching lines, with what the groups of the pattern match in each. Lines count from the
    beginning of the text. Raises `InvalidArgument`, `NotText`."""
    require_text(text_ref)
    if text_ref.extent.chars == 0:
        return []
    part = None if text_ref.is_whole else text_ref.extent.part
    found = yield from searching.search(
        handle,
        text_ref.descriptor.fd,
        part,
        pattern,
        context=context,
        max_matches=max_matches,
        ignore_case=ignore_case,
    )
    groups = groups_in(pattern, ignore_case=ignore_case)
    lines_before, chars_before = text_ref.extent.first_line - 1, text_ref.extent.first_char - 1
    hits = []
    for hit in found.hits:
        first, _, last = hit.chars.partition("-")
        hits.append(
            {
                "line": hit.line - lines_before,
                "text": hit.text,
                "chars": [int(first) - chars_before, int(last) - chars_before] if last != "0" else [0, 0],
                "groups": groups(hit.text),
                "before": [near.text for near in hit.before],
                "after": [near.text for near in hit.after],
            }
        )
    return hits


def split(handle: ProcessHandle, text_ref: TextRef, unit: SplitUnit, size: int) -> Operation[list[TextRef]]:
    """Return it in parts, see `extents.split`. Raises `InvalidArgument`, `NotText`."""
    require_text(text_ref)
    size = _whole_number(unit, size)
    found = yield from extents.split(handle, text_ref.descriptor.fd, text_ref.extent, unit, size)
    return [part_of(text_ref.descriptor, each) for each in found]


def ref_of(part: object) -> str:
    """Return the reference of a text that code passed: a str, or the facts of a text. Raises
    `InvalidArgument`.

    >>> ref_of("fd:1"), ref_of({"ref": "fd:1#L10-20"})
    ('fd:1', 'fd:1#L10-20')
    """
    ref = part.get("ref") if isinstance(part, dict) else part
    if not isinstance(ref, str):
        raise InvalidArgument("", f"a text is needed, as fd('fd:1'), not {quoted(part)}")
    return ref
