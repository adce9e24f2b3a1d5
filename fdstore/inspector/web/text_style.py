r"""The look that escape sequences give to text (SGR: Select Graphic Rendition), as classes of descriptor.css.

    ESC[1;38;5;196m  ->  Style(marks={"bold"}, text=(15, 0, 0))  ->  "sgr bold fg r15 g0 b0"

The page's Content-Security-Policy allows no style attributes. So a colour is one class for each of red, green
and blue, in 16 steps; the 16, 256 and 16 million colours of terminals become the nearest of these. Text must
be readable whatever it asks for: without a background the stylesheet makes its colour darker on a light page
and lighter on a dark one; before a background it keeps its colour where the contrast is enough, and is else
black or white. Nothing hides text: to conceal is not understood.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from fdstore.model.records import Record

Colour = tuple[int, int, int]
"""Red, green and blue, each from 0 to 15."""

STEP = 17
READABLE = 4.5
"""The contrast of text that WCAG asks for."""

_SGR = re.compile("\x1b\\[([0-9;:]*)m")
_BASE = (0x000000, 0xCD0000, 0x00CD00, 0xCDCD00, 0x0000EE, 0xCD00CD, 0x00CDCD, 0xE5E5E5)
_BRIGHT = (0x7F7F7F, 0xFF0000, 0x00FF00, 0xFFFF00, 0x5C5CFF, 0xFF00FF, 0x00FFFF, 0xFFFFFF)
_CUBE = (0, 95, 135, 175, 215, 255)
_ON = {1: "bold", 2: "faint", 3: "italic", 4: "underline", 7: "inverse", 9: "struck", 21: "underline"}
_OFF = {22: {"bold", "faint"}, 23: {"italic"}, 24: {"underline"}, 27: {"inverse"}, 29: {"struck"}}
_PARTS = {38: "text", 48: "back"}


class Style(Record, frozen=True):
    """What holds for the text from here on: the `marks`, the colour of `text` and of what is in its `back`;
    None is that of the page."""

    marks: frozenset[str] = frozenset()
    text: Colour | None = None
    back: Colour | None = None


PLAIN = Style()


def changed(style: Style, sequence: str) -> Style | None:
    r"""Return the style after an escape sequence; None if it sets none, or not only what is known here.

    >>> changed(PLAIN, "\x1b[31m").text, changed(PLAIN, "\x1b[38;2;255;0;128m").text
    ((12, 0, 0), (15, 0, 8))
    >>> changed(PLAIN, "\x1b[2K"), changed(PLAIN, "\x1b[8m")
    (None, None)
    """
    found = _SGR.fullmatch(sequence)
    if found is None:
        return None
    marks, colours = set(style.marks), {"text": style.text, "back": style.back}
    fields = iter(found[1].split(";"))
    for field in fields:
        number, *more = [int(each or 0) for each in field.split(":")]
        if number == 0 and not more:
            marks, colours = set(), dict.fromkeys(colours)
        elif number == 4 and len(more) == 1 and more[0] <= 5:  # 4:3 is underlined by a wave
            marks = marks | {"underline"} if more[0] else marks - {"underline"}
        elif number in _PARTS:
            colour = _extended(more, colons=True) if more else _extended(_numbers(fields), colons=False)
            if colour is None:
                return None
            colours[_PARTS[number]] = colour
        elif more:
            return None
        elif number in _ON:
            marks.add(_ON[number])
        elif number in _OFF:
            marks -= _OFF[number]
        elif number in (39, 49):
            colours["text" if number == 39 else "back"] = None
        elif (tens := number // 10) in (3, 4, 9, 10) and number % 10 < 8:
            colours["text" if tens in (3, 9) else "back"] = _nearest(
                (_BRIGHT if tens > 4 else _BASE)[number % 10]
            )
        else:
            return None
    return Style(frozenset(marks), colours["text"], colours["back"])


def _numbers(fields: Iterator[str]) -> list[int]:
    """Return the numbers of an extended colour, taken from the fields that follow."""
    taken: list[int] = []
    for field in fields:
        if not field.isdecimal() and field:
            return []
        taken.append(int(field or 0))
        if len(taken) == {5: 2, 2: 4}.get(taken[0], 1):
            break
    return taken


def _extended(numbers: list[int], *, colons: bool) -> Colour | None:
    """Return the colour of `5, n` or `2, red, green, blue`; colons may name a colour space before red."""
    match numbers:
        case [5, n] if n < 256:
            return _of_256(n)
        case [2, _, red, green, blue, *_] if colons:
            pass
        case [2, red, green, blue]:
            pass
        case _:
            return None
    return _nearest(red << 16 | green << 8 | blue) if max(red, green, blue) < 256 else None


def _of_256(n: int) -> Colour:
    if n < 16:
        return _nearest((*_BASE, *_BRIGHT)[n])
    if n >= 232:
        return _nearest((8 + 10 * (n - 232)) * 0x010101)
    red, green, blue = (_CUBE[(n - 16) // each % 6] for each in (36, 6, 1))
    return _nearest(red << 16 | green << 8 | blue)


def _nearest(rgb: int) -> Colour:
    return round((rgb >> 16) / STEP), round((rgb >> 8 & 255) / STEP), round((rgb & 255) / STEP)


@lru_cache(4096)
def classes_of(style: Style) -> str:
    """Return the classes of text of this style, "" for plain text.

    >>> classes_of(Style(frozenset({"bold"}), text=(12, 0, 0)))
    'sgr bold fg r12 g0 b0'
    >>> classes_of(Style(text=(0, 0, 1), back=(0, 0, 0)))
    'sgr white bg br0 bg0 bb0'
    """
    text, back, names = style.text, style.back, sorted(style.marks - {"inverse"})
    if "inverse" in style.marks:
        text, back = back, text
        if back is None:
            return " ".join(["sgr", *names, "inverse"])
    if back is not None:
        if text is not None and contrast(text, back) >= READABLE:
            names += ["on", *_components("", text)]
        else:
            names.append("black" if contrast(back, (0, 0, 0)) >= contrast(back, (15, 15, 15)) else "white")
        names += ["bg", *_components("b", back)]
    elif text is not None:
        names += ["fg", *_components("", text)]
    return " ".join(["sgr", *names]) if names else ""


def _components(prefix: str, colour: Colour) -> list[str]:
    return [f"{prefix}{name}{value}" for name, value in zip("rgb", colour, strict=True)]


def contrast(one: Colour, other: Colour) -> float:
    """Return the contrast of two colours by WCAG, from 1 to 21.

    >>> contrast((0, 0, 0), (15, 15, 15))
    21.0
    """
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: Colour) -> float:
    shares = [value * STEP / 255 for value in colour]
    red, green, blue = (
        each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in shares
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
