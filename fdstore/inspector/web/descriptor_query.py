"""Parse the query of a descriptor page's URL: what is shown, what is marked, what is searched.

    ?page=3   ?lines=120-130   ?chars=500-520   ?offset=4096    the position (one of them)
    ?go=120   ?go=p3   ?go=c500   ?go=50%   ?go=end             the same as a person types it
    ?q=error&re=1&case=1&context=2&from=1                       a search, from a character on
    ?count=1                                                    with how many lines match in all
    ?wrap=0   ?raw=1   ?colours=0   ?view=hex                   how it is shown
    ?view=pretty   ?view=rendered                               JSON indented, Markdown rendered from `chars`
    ?reading=1                                                  with what the process's agent has read
    ?mark=l7-9   ?mark=c500-520   ?mark=none                    what is marked in other pages (for scripts)
    ?more=1                                                     the rest of a page, from `chars` on (the same)

All of them are optional and every URL can be shared. Empty values, which forms send, count as absent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from fdstore.errors import InvalidArgument, quoted
from fdstore.model.records import Descriptor, Record
from fdstore.text.numbers import MAX_INTEGER

Unit = Literal["page", "line", "char", "offset"]
ReadableView = Literal["pretty", "rendered"]

MAX_HITS = 50
"""Hits shown at a time."""

MAX_CONTEXT = 10

_READABLE: dict[str, ReadableView] = {"pretty": "pretty", "rendered": "rendered"}
_UNITS: dict[str, Unit] = {"page": "page", "lines": "line", "chars": "char", "offset": "offset"}
_RANGE = re.compile(r"([0-9]{1,16})(?:\s*[-–]\s*([0-9]{1,16}))?")
_GO = re.compile(
    r"#?\s*(?:(?P<unit>pages?|p|lines?|l|chars?|characters?|c|offset|o|byte|b)\s*[:.]?\s*)?"
    r"(?P<first>0x[0-9a-f]{1,13}|[0-9][0-9,_ ]{0,20})(?:\s*[-–]\s*(?P<last>[0-9][0-9,_ ]{0,20}))?"
    r"(?P<percent>\.[0-9]{1,6}%|%)?",
    re.IGNORECASE,
)
_LETTERS: dict[str, Unit] = {"p": "page", "l": "line", "c": "char", "o": "offset", "b": "offset"}
GO_FORMS = "write 120 for a line, 120-130 for lines, p3 for a page, c500 for a character, 50% or end"


class Position(Record, frozen=True):
    """A position that was asked for, and the end of its range; 1-based, an offset from 0."""

    unit: Unit
    first: int
    last: int


class SearchQuery(Record, frozen=True, kw_only=True):
    """A search: the text as it was typed, how it is meant, and the character to begin at."""

    q: str
    regex: bool = False
    case: bool = False
    context: int = 0
    start: int = 1

    @property
    def pattern(self) -> str:
        """The pattern in RE2 syntax."""
        return self.q if self.regex else re.escape(self.q)


class PageQuery(Record, frozen=True, kw_only=True):
    """A parsed query."""

    position: Position | None = None
    go: str | None = None
    search: SearchQuery | None = None
    wrap: bool = True
    raw: bool = False
    colours: bool = True
    hex: bool = False
    readable: ReadableView | None = None
    reading: bool = False
    count: bool = False
    mark: str | None = None
    more: bool = False


def parse_query(values: Mapping[str, str]) -> PageQuery:
    """Parse a query. Raises `InvalidArgument`.

    >>> parse_query({"lines": "120-130"}).position
    Position(unit='line', first=120, last=130)
    """
    named = [name for name in _UNITS if values.get(name, "").strip()]
    if len(named) > 1:
        raise InvalidArgument(named[1], f"name one position: {named[0]} or {named[1]}")
    return PageQuery(
        position=_position(named[0], values[named[0]]) if named else None,
        go=values.get("go", "").strip() or None,
        search=_search(values),
        wrap=_is_on(values, "wrap", default=True),
        raw=_is_on(values, "raw"),
        colours=_is_on(values, "colours", default=True),
        hex=values.get("view") == "hex",
        readable=_READABLE.get(values.get("view", "")),
        reading=_is_on(values, "reading"),
        count=_is_on(values, "count"),
        mark=values.get("mark", "").strip() or None,
        more=_is_on(values, "more"),
    )


def _is_on(values: Mapping[str, str], name: str, *, default: bool = False) -> bool:
    value = values.get(name, "")
    return default if value == "" else value not in ("0", "false", "off", "no")


def _position(name: str, value: str) -> Position:
    unit = _UNITS[name]
    found = _RANGE.fullmatch(value.strip())
    if found is None:
        raise InvalidArgument(name, f"{quoted(value)} is not a position; write {name}=120 or {name}=120-130")
    first, last = int(found[1]), int(found[2] or found[1])
    if not (0 if unit == "offset" else 1) <= first <= last <= MAX_INTEGER:
        raise InvalidArgument(name, f"{first}-{last} is not a range; positions run upwards from 1")
    return Position(unit, first, last)


def _search(values: Mapping[str, str]) -> SearchQuery | None:
    if not values.get("q"):
        return None
    context, start = values.get("context", "0") or "0", values.get("from", "1") or "1"
    for name, value in (("context", context), ("from", start)):
        if not re.fullmatch("[0-9]{1,16}", value):
            raise InvalidArgument(name, f"a whole number is needed, not {quoted(value)}")
    return SearchQuery(
        q=values["q"],
        regex=_is_on(values, "re"),
        case=_is_on(values, "case"),
        context=min(int(context), MAX_CONTEXT),
        start=max(1, min(int(start), MAX_INTEGER)),
    )


def parse_go(text: str, descriptor: Descriptor, *, is_hex: bool = False) -> Position:
    """Return the position that a person typed, moved into the content. Raises `InvalidArgument`."""
    default: Unit = "offset" if is_hex else "line"
    totals: dict[Unit, int] = {
        "page": descriptor.pages,
        "line": max(descriptor.lines, 1),
        "char": max(descriptor.chars, 1),
        "offset": max(descriptor.bytes - 1, 0),
    }
    word = text.strip().lower()
    if word in ("end", "last", "$", "g"):
        unit: Unit = "offset" if is_hex else "page" if descriptor.pages > 1 else default
        return Position(unit, totals[unit], totals[unit])
    if word in ("start", "first", "begin", "top"):
        return Position(default, int(default == "line"), int(default == "line"))
    found = _GO.fullmatch(word)
    if found is None:
        raise InvalidArgument("go", f"{quoted(text)} is no position; {GO_FORMS}")
    first = _number(found["first"])
    if found["percent"]:
        share = min(float(found["first"] + found["percent"].rstrip("%")), 100.0) / 100
        unit = "offset" if is_hex else "page"
        at = max(int(not is_hex), min(totals[unit], round(share * totals[unit])))
        return Position(unit, at, at)
    unit = _LETTERS[found["unit"][0]] if found["unit"] else default
    if is_hex != (unit == "offset"):
        unit = default
    if is_hex:
        first = min(first, totals["offset"])  # a jump past the end goes to the end, as in editors
        return Position("offset", first, first)
    first = max(1, min(first, totals[unit]))
    last = min(_number(found["last"]), totals[unit]) if found["last"] else first
    return Position(unit, first, max(first, last))


def marked(query: PageQuery, descriptor: Descriptor, *, is_hex: bool = False) -> Position | None:
    """Return what is marked: what was asked for, unless `mark` names something else. Raises
    `InvalidArgument`."""
    if query.mark == "none":
        return None
    if typed := query.mark or query.go:
        return parse_go(typed, descriptor, is_hex=is_hex)
    return query.position


def _number(text: str) -> int:
    if text.startswith("0x"):
        return int(text, 16)
    return min(int(re.sub("[,_ ]", "", text)), MAX_INTEGER)
