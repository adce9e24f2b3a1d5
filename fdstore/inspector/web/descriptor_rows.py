r"""Cut stored text into rows for display, with what a screen would hide or obey made visible.

Control characters, ANSI escapes, bidirectional controls and characters of no width become marked segments.
With `colours`, escapes that set colours and weights (`text_style`) are not shown: the text after them has a
style, over lines too. Nothing here is HTML: `templates/descriptor_rows.html` inserts segments as text, for
the page and its scripts.

    "a\x1b[31mb\u202ec"  ->  ("", "a") ("ansi", "ESC[31m") ("", "b") ("bidi", "U+202E") ("", "c")
    with colours          ->  ("", "a") ("", "b", "sgr fg r12 g0 b0") ("bidi", "U+202E") ...
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from markupsafe import Markup, escape

from fdstore.inspector.web.text_style import PLAIN, Style, changed, classes_of
from fdstore.model.records import Record
from fdstore.text.previews.logs import Level, is_log, level_of

# The order matters: an escape sequence is one segment, an ESC alone is a control character.
_HIDDEN = re.compile(
    "(?P<ansi>\x1b\\[[0-?]{0,64}[ -/]{0,8}[@-~]|\x1b\\][^\x07\x1b\n]{0,512}(?:\x07|\x1b\\\\)"
    "|\x1b[ -/]?[0-Z\\\\-~])"
    "|(?P<ctl>[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufffe\uffff]+)"
    "|(?P<bidi>[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]+)"
    "|(?P<wide>[\u00ad\u034f\u115f\u1160\u180e\u200b\u2060-\u2064\u3164\ufeff\uffa0\ufff9-\ufffb"
    "\U000e0000-\U000e007f]+)"
)


LEVEL_CHARS = 400
"""The characters at the beginning of a line that may have its level."""


class Segment(Record, frozen=True):
    """A piece of a row: its kind ("" for plain text, "ctl", "ansi", "bidi" or "wide"; "mark" is added for
    what was asked for), the text to show, and the classes of its style."""

    kind: str
    text: str
    style: str = ""

    @property
    def markup(self) -> Markup:
        """The text, escaped for HTML and otherwise exact: a parser would read a CR as LF."""
        return Markup(str(escape(self.text)).replace("\r", "&#13;"))


class TextRow(Record, frozen=True):
    """One line of a page. `number` is None for the rest of a line that began on an earlier page. `on`: it is
    among the lines that were asked for. `level`: what it has on a page that is of a log."""

    number: int | None
    line: int
    segments: tuple[Segment, ...]
    on: bool = False
    level: Level | None = None


def rows_of(
    text: str,
    first_line: int,
    first_char: int,
    *,
    continued: bool = False,
    lines: tuple[int, int] | None = None,
    chars: tuple[int, int] | None = None,
    raw: bool = False,
    colours: bool = False,
) -> list[TextRow]:
    r"""Return the rows of a part of a text that begins at these 1-based positions. `lines` and `chars` are
    the ranges to mark. With `raw`, characters stay as they are.

    >>> [(row.number, row.segments[0].text) for row in rows_of("a\nb", 7, 1)]
    [(7, 'a'), (8, 'b')]
    """
    rows, char, style = [], first_char, PLAIN
    pieces = text.split("\n")
    if text.endswith("\n"):
        pieces.pop()
    plain = [_HIDDEN.sub("", piece[:LEVEL_CHARS]) for piece in pieces]
    has_levels = is_log(plain)
    for i, piece in enumerate(pieces):
        line = first_line + i
        on = lines is not None and lines[0] <= line <= lines[1]
        mark = (chars[0] - char, chars[1] - char + 1) if chars else (0, 0)
        found, style = paint(piece, style, mark=mark, raw=raw, colours=colours)
        is_rest = continued and i == 0
        level = level_of(plain[i]) if has_levels and not is_rest else None
        rows.append(TextRow(None if is_rest else line, line, tuple(found), on, level))
        char += len(piece) + 1
    return rows


def paint(
    text: str,
    style: Style = PLAIN,
    *,
    mark: tuple[int, int] = (0, 0),
    raw: bool = False,
    colours: bool = False,
) -> tuple[list[Segment], Style]:
    """Return the segments of a line that begins in a style, and the style at its end. `mark` is the range of
    its characters to mark, as offsets; in it all escapes are shown, and text has no colours."""
    begin, end = min(max(mark[0], 0), len(text)), min(max(mark[1], mark[0], 0), len(text))
    found = []
    for first, last, kind in _pieces(text, raw=raw):
        new = changed(style, text[first:last]) if colours and kind == "ansi" else None
        if new is None or (first < end and begin < last):
            ends = sorted({first, last, *(at for at in (begin, end) if first < at < last)})
            for at, to in pairwise(ends):
                shown = text[at:to] if kind == "" else "".join(map(visible, text[at:to]))
                if begin <= at < end:
                    found.append(Segment(f"{kind} mark".strip(), shown))
                else:
                    found.append(Segment(kind, shown, classes_of(style) if kind == "" else ""))
        style = new or style
    return found, style


def _pieces(text: str, *, raw: bool) -> Iterator[tuple[int, int, str]]:
    """Yield where each piece of a line begins and ends, and its kind."""
    at = 0
    for found in () if raw else _HIDDEN.finditer(text):
        if found.start() > at:
            yield at, found.start(), ""
        yield found.start(), found.end(), found.lastgroup or ""
        at = found.end()
    if at < len(text):
        yield at, len(text), ""


def segments_of(text: str) -> list[Segment]:
    """Return the segments of a line, without colours."""
    return paint(text)[0]


NAMES = (
    *("NUL", "SOH", "STX", "ETX", "EOT", "ENQ", "ACK", "BEL", "BS", "HT", "LF", "VT", "FF", "CR", "SO", "SI"),
    *("DLE", "DC1", "DC2", "DC3", "DC4", "NAK", "SYN", "ETB", "CAN", "EM", "SUB", "ESC"),
    *("FS", "GS", "RS", "US"),
)
"""The names of the control characters; their symbols (U+2400) are missing in many fonts."""


def visible(char: str) -> str:
    r"""Return what is shown for a character that a screen would hide or obey.

    >>> visible("\x1b"), visible("\x7f"), visible("\u202e"), visible("m")
    ('ESC', 'DEL', 'U+202E', 'm')
    """
    code = ord(char)
    if code < 0x20:
        return NAMES[code]
    if code == 0x7F:
        return "DEL"
    return f"U+{code:04X}" if _HIDDEN.match(char) else char


def visible_text(text: str) -> str:
    r"""Return `text` on one line with what is hidden made visible, for names and sources.

    >>> visible_text("a\nb\u202e")
    'aLFbU+202E'
    """
    return "".join(map(visible, text))


ROW_BYTES = 16

BLOCK_BYTES = 4096
"""Bytes of one block of a dump: what a page is of a text."""


class HexRow(Record, frozen=True):
    """One row: the offset of its first byte, the bytes in hexadecimal, and as characters."""

    offset: int
    hex: str
    ascii: str


def hex_rows(data: bytes, offset: int = 0) -> list[HexRow]:
    """Return the rows of `data`, whose first byte has this offset.

    >>> hex_rows(b"one\\n", 32)
    [HexRow(offset=32, hex='6f 6e 65 0a  ', ascii='one.')]
    """
    return [
        HexRow(offset + i, _pairs(data[i : i + ROW_BYTES]), _printable(data[i : i + ROW_BYTES]))
        for i in range(0, len(data), ROW_BYTES)
    ]


def _pairs(row: bytes) -> str:
    return f"{row[:8].hex(' ')}  {row[8:].hex(' ')}"


def _printable(data: bytes) -> str:
    return "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in data)
