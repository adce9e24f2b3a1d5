"""Estimate the tokens of a text offline, by classes of characters.

No tokenizer of current models is public, and tables of others are downloaded. A fixed number of characters
per token is wrong by a factor of two for logs, JSON and Chinese; counting by class lies within 0.7 to 1.4 of
what OpenAI's o200k counts for English, code, logs, JSON, Chinese, Russian, base64 and minified JavaScript
(the table in the tests). The cost is bounded: of a long text, evenly spread parts are counted and scaled up.

Between scripts of one text the error is about the same for each, so an agent loop multiplies by how far the
estimate of its last request was from what the provider counted (`calibration`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain

SAMPLE_CHARS = 50_000
"""The characters in the sample of a text."""

PARTS = 10
"""Parts of the sample, since a log may begin or end with something else."""

LEAST_FACTOR, MOST_FACTOR = 0.5, 2.0
"""The bounds of a calibration."""

_RUNS = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")
_CHANGES = re.compile(r"[a-z][A-Z]|[A-Za-z](?=[0-9])|[0-9](?=[A-Za-z])")
CODE_CHANGES, CODE_CHARS = 0.2, 1.55
"""A run with more changes for each character is a code, and has a token for so many characters."""


@cache  # it takes milliseconds to compile, which a command that starts need not wait for
def _word() -> re.Pattern[str]:
    return re.compile(
        r"([A-Za-z]+)|(\d+)|([\u0370-\u1fff]+)|([\u2e80-\ud7ff\uf900-\ufaff\uff00-\uffef]+)"
        r"|([^\x00-\uffff]+)|(\s+)|([^\sA-Za-z\d]+)"
    )


def estimate_tokens(text: str) -> int:
    """Return about how many tokens a model counts for a text.

    >>> estimate_tokens(""), estimate_tokens("The build failed on a full disk.")
    (0, 8)
    """
    if len(text) <= SAMPLE_CHARS:
        return round(sum(_counts([text])))
    return round(sum(_counts(spread_parts(text, SAMPLE_CHARS))) * len(text) / SAMPLE_CHARS)


def estimate_by_parts(parts: Sequence[str], chars: int) -> int:
    """Return about how many tokens a text of `chars` characters has, of which these parts are known."""
    return round(sum(map(round, _counts(parts))) * chars / (sum(map(len, parts)) or 1))


def spread_parts(text: str, chars: int) -> list[str]:
    """Return `PARTS` evenly spread parts of a text, of together `chars` characters, which it has at least."""
    part = chars // PARTS
    step = (len(text) - part) / (PARTS - 1)
    return [text[round(i * step) : round(i * step) + part] for i in range(PARTS)]


def calibration(counted: int, estimated: float) -> float:
    """Return by how much estimates are multiplied, after a provider has counted the tokens of a request that
    was estimated: from 0.5 to 2, since a request also has parts that are not estimated.

    >>> calibration(1300, 1000), calibration(9, 1000), calibration(0, 0)
    (1.3, 0.5, 1.0)
    """
    if counted <= 0 or estimated <= 0:
        return 1.0
    return min(max(counted / estimated, LEAST_FACTOR), MOST_FACTOR)


def _counts(texts: Iterable[str]) -> Iterator[float]:
    """Yield the estimate of all of each text."""
    for text in texts:
        plain, total = [], 0.0
        end = 0
        for match in _RUNS.finditer(text):
            run = match[0]
            # base64 and other codes change between cases and digits, unlike names and paths
            if len(_CHANGES.findall(run)) > len(run) * CODE_CHANGES:
                plain.append(text[end : match.start()])
                end = match.end()
                total += len(run) / CODE_CHARS
        plain.append(text[end:])
        for match in chain.from_iterable(map(_word().finditer, plain)):
            size = match.end() - match.start()
            match match.lastindex:
                case 1:  # a word of six letters is one token
                    total += (size + 5) // 6
                case 2:
                    total += (size + 2) // 3
                case 3:  # Greek, Cyrillic, Arabic, Indic
                    total += size * 0.3
                case 4:  # Chinese, Japanese, Korean
                    total += size * 0.8
                case 5:  # emoji
                    total += size * 1.7
                case 6:  # one blank belongs to the next word
                    total += 0 if size == 1 and match[0] == " " else 1 if size < 4 else 1 + size / 80
                case _:  # a single one often belongs to the next word
                    total += 0.8 if size == 1 else (size + 1) // 2
        yield total
