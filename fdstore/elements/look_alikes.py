"""Escape text that a model could mistake for one of our own tags.

A model may skip invisible characters, and read a fullwidth, mathematical or Cyrillic letter as the Latin one
that it looks like. So a tag counts as ours if it is one after removing control and default-ignorable
characters, folding NFKC and case, and replacing each character by the one of ours that Unicode Technical
Standard #39 confuses it with (`elements.confusables`); blanks may follow its `<` and its slash:

    <fd_content    </ Preview    <f[U+200B]d_    ＜ｆｄ＿    <fԁ_    <[tag characters that spell fd_]

Only its `<` is replaced, by `&lt;`. A `<` that begins no such tag is unchanged.

There are three patterns: a plain one for ASCII, and two whose letters are classes of all characters that
stand for them, built on first use. One of these is for texts whose only `<` is the plain one: it begins with
a literal, and so is several times as fast. Every run of skipped characters is matched possessively and ends
before the next `<`, so the time is linear in the text.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

from fdstore.elements.confusables import CONFUSABLES
from fdstore.elements.kinds import TAG_STARTS

_SPELLINGS = (*TAG_STARTS, *(start.replace("m", "rn") for start in TAG_STARTS if "m" in start))
"""The same as they look: the standard has rn for m."""

_TAG_CHARACTERS = 0xE0000
"""The offset from an ASCII character to its invisible tag character, which models are known to read."""

LIKE_LESS_THAN = "\uff1c\ufe64" + CONFUSABLES["<"] + chr(_TAG_CHARACTERS + ord("<"))
"""Characters that a model may read as `<`."""

# DerivedCoreProperties.txt, Default_Ignorable_Code_Point, with the invisible ones of Specials
_IGNORABLE = (
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
_CONTROL = "\x00-\x1f\x7f-\x9f"
_BLANK = rf"[\s\u2800{_CONTROL}{_IGNORABLE}]*+"
_INVISIBLE = rf"[\x00-\x08\x0e-\x1f\x7f-\x9f{_IGNORABLE}]*+"

_FOLDED = (
    *((0xAA, 0xBA), (0xDF, 0xDF), (0x132, 0x149), (0x17F, 0x17F), (0x1C4, 0x1F3), (0x2B0, 0x2E4)),
    *((0x1D2C, 0x1D7F), (0x1D9B, 0x1DBF), (0x1E96, 0x1E9E), (0x2070, 0x20A8), (0x2100, 0x217F)),
    *((0x24B6, 0x24E9), (0x2C7C, 0x2C7D), (0x3250, 0x3250), (0x32CC, 0x32CF), (0x3371, 0x33FF)),
    *((0xA69C, 0xA69D), (0xA7F1, 0xA7F9), (0xAB5C, 0xAB69), (0xFB00, 0xFB06), (0xFE33, 0xFE34)),
    *((0xFE4D, 0xFE4F), (0xFE64, 0xFE64), (0xFF00, 0xFF5E), (0x10780, 0x107BF), (0x1CCD6, 0x1CCF9)),
    *((0x1D400, 0x1D7FF), (0x1F110, 0x1F190)),
)
"""The ranges that contain all characters that fold to ASCII; a test checks this against all of Unicode."""


def escape_look_alikes(text: str) -> tuple[str, int]:
    """Replace each `<` that could begin one of our tags by `&lt;`. Return the text and the number of
    replacements.

    >>> escape_look_alikes("a <b> and a </fd_list>")
    ('a <b> and a &lt;/fd_list>', 1)
    """
    if text.isascii():
        return _ascii().subn("&lt;", text)
    is_plain = not any(char in text for char in LIKE_LESS_THAN)
    return _unicode(is_plain).subn("&lt;", text)


def _ascii_pattern(start: str) -> str:
    classes = (f"[{char}{''.join(filter(str.isascii, CONFUSABLES[char]))}]" for char in start)
    return _INVISIBLE.join(classes)


@cache  # it takes milliseconds to compile, which a command that starts need not wait for
def _ascii() -> re.Pattern[str]:
    starts = "|".join(map(_ascii_pattern, _SPELLINGS))
    return re.compile(rf"<(?!<)(?={_BLANK}(?:/{_BLANK})?(?:{starts}))", re.ASCII | re.IGNORECASE)


@cache
def _unicode(is_plain: bool) -> re.Pattern[str]:
    folds = _folds()
    opening = "<" if is_plain else f"[<{LIKE_LESS_THAN}]"
    slash = f"[/{''.join(folds['/'])}{_tag_character('/')}]"
    firsts = {start[0] for start in _SPELLINGS}
    first = "".join(firsts) + "".join(firsts).upper()  # one class refuses most tags, which are others
    first += "".join(char for to, chars in folds.items() if to[:1] in firsts for char in chars)
    plain = "|".join(_start_pattern(start, folds) for start in _SPELLINGS)
    hidden = "|".join(
        "".join(f"[{_tag_character(char)}{_tag_character(char.upper())}]" for char in start)
        for start in TAG_STARTS
    )
    return re.compile(
        rf"{opening}(?!<)(?={_BLANK}(?:{slash}{_BLANK})?(?=[{first}])(?:{plain})|{slash}?(?:{hidden}))"
    )


def _folds() -> dict[str, list[str]]:
    """Map each fold, which may be several ASCII characters, to the characters that fold to it or look like
    it."""
    found = {char: list(alike) for char, alike in CONFUSABLES.items()}
    for first, last in _FOLDED:
        for char in map(chr, range(first, last + 1)):
            found.setdefault(fold(char), []).append(char)
    return found


def fold(text: str) -> str:
    """Return `text` without differences of case and font: NFKC, case-folded."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def _start_pattern(start: str, folds: dict[str, list[str]]) -> str:
    """Return a pattern for all texts whose fold begins with `start`; one character may fold to several."""
    if not start:
        return ""
    whole = [char for to, chars in folds.items() if to.startswith(start) for char in chars]
    ways = [f"[{start.upper()}{start}{''.join(whole)}]" if len(start) == 1 else _any_of(whole)]
    for length in range(1, len(start)):
        chars = folds.get(start[:length], [])
        if length == 1:
            chars = [start[0].upper(), start[0], *chars]
        if chars:
            ways.append(f"{_any_of(chars)}{_INVISIBLE}{_start_pattern(start[length:], folds)}")
    return f"(?:{'|'.join(filter(None, ways))})"


def _any_of(chars: list[str]) -> str:
    return f"[{''.join(chars)}]" if chars else ""


def _tag_character(char: str) -> str:
    return chr(_TAG_CHARACTERS + ord(char))
