r"""Lone surrogates in JSON text, which strict decoders refuse: JavaScript cuts texts between 16-bit units
and writes `"\ud83d"` for half of a character."""

from __future__ import annotations

import re

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
