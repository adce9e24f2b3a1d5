r"""Join surrogate pairs, in which JSON escapes characters beyond 16 bits: a high and a low surrogate; show
lone ones.

If a text arrives in several pieces of JSON, the two may be in different pieces. A lone surrogate is not text:
UTF-8 cannot represent it, and strict decoders refuse its escape. JavaScript, which cuts texts between 16-bit
units, writes `"\ud83d"` for half of a character.
"""

from __future__ import annotations

import re


def join_surrogates(text: str) -> str:
    r"""Return `text` with each surrogate pair as its character; lone surrogates stay.

    >>> join_surrogates("\ud83d\ude00 \ud83d") == "\U0001f600 \ud83d"
    True
    """
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def escape_surrogates(text: str) -> str:
    r"""Return `text` with lone surrogates, which UTF-8 cannot encode, shown as `\udXXX`.

    >>> print(escape_surrogates("Hi \ud83d"))
    Hi \ud83d
    """
    if text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


class SurrogateText:
    r"""Joins the surrogate pairs of a text that arrives in pieces. `rest` is a pending high surrogate.

    >>> text = SurrogateText()
    >>> text.feed("Hi \ud83d"), text.rest == "\ud83d", text.feed("\ude00!") == "\U0001f600!", text.rest
    ('Hi ', True, True, '')
    """

    def __init__(self) -> None:
        self.rest = ""

    def feed(self, piece: str) -> str:
        """Add a piece. Return the text that is complete with it."""
        text = join_surrogates(self.rest + piece)
        self.rest = text[-1] if text and "\ud800" <= text[-1] <= "\udbff" else ""
        return text[: len(text) - len(self.rest)]

    def end(self) -> str:
        """End the text. Return a pending high surrogate, or ""."""
        rest, self.rest = self.rest, ""
        return rest


_UTF16_ESCAPE = re.compile(rb"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)


def show_lone_surrogates(message: bytes) -> bytes:
    r"""Return JSON text with each escape of a lone surrogate shown as the text `\udXXX`.

    >>> show_lone_surrogates(rb'["\ud83d", "\ud83d\ude00"]')
    b'["\\\\ud83d", "\\ud83d\\ude00"]'
    """
    pieces: list[bytes] = []
    end = 0
    high: re.Match[bytes] | None = None
    lone: list[int] = []
    for found in _UTF16_ESCAPE.finditer(message):
        unit = int(found[1], 16) if found[1] else 0
        if high is not None:
            if 0xDC00 <= unit <= 0xDFFF and found.start() == high.end():
                high = None
                continue
            lone.append(high.start())
            high = None
        if 0xD800 <= unit <= 0xDBFF:
            high = found
        elif 0xDC00 <= unit <= 0xDFFF:
            lone.append(found.start())
    if high is not None:
        lone.append(high.start())
    for start in lone:
        pieces += [message[end:start], b"\\"]
        end = start
    return b"".join([*pieces, message[end:]])
