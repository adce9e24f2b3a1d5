"""Words: what a text is found by in the search of runs (`store.views.word_search`).

A word is a run of letters and digits, with `.`, `-` and `_` inside. Its later parts are words of their own,
because the search finds words by their beginning:

    "See docs/Build-Log.md"  ->  see  docs  build-log.md  log.md  md

Chinese and Japanese are written without blanks, so there each pair of characters is a word, and the last one.
Case, and the forms of characters that Unicode calls compatible, make no difference.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from unicodedata import normalize

MAX_WORDS = 64
"""The different words of one text that are found: its first ones. About those of 100 words of English. Redis
packs a small set of up to 128 members, so those of a task and an answer take some two kilobytes."""

MAX_WORD_CHARS = 40
"""A longer word is found by its beginning."""

MAX_TEXT_CHARS = 10_000
"""The words of a text after this many characters are not looked for."""

MAX_QUERY_WORDS = 8

CACHED_CHARS = 200
"""The words of a text up to this length are remembered: most descriptors have one of a few sources."""

_UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_PART = rf"[^\W_{_UNSPACED}]+"
_LATER_PART = re.compile(r"(?<=[._-])[^._-]")


@cache  # it takes milliseconds to compile, which a command that starts need not wait for
def _run() -> re.Pattern[str]:
    return re.compile(rf"(?P<unspaced>(?:(?=\w)[{_UNSPACED}])+)|{_PART}(?:[._-]+{_PART})*")


@cache
def _unspaced_char() -> re.Pattern[str]:
    return re.compile(f"[{_UNSPACED}]")


def is_unspaced(char: str) -> bool:
    """Return whether a character is one of a script that is written without blanks.

    >>> is_unspaced("語"), is_unspaced("w")
    (True, False)
    """
    return _unspaced_char().match(char) is not None


def words_of(text: str) -> list[str]:
    """Return the first different words of a text, at most `MAX_WORDS`, in their order. None is empty or has
    a blank, a control character or a lone surrogate.

    >>> words_of("Sort the LOG: sort /var/build-log.md")
    ['sort', 'the', 'log', 'var', 'build-log.md', 'log.md', 'md']
    """
    return _different(_words(text), MAX_WORDS)


def query_words(query: str) -> list[str]:
    """Return the words that a text must have to be found by a query: they, or longer words that begin so.

    >>> query_words("Build-log sorted")
    ['build-log', 'sorted']
    """
    return _different(_query_words(query), MAX_QUERY_WORDS)


def _words(text: str) -> Iterator[str]:
    for run in _runs(text):
        word = run.group()
        if run.lastgroup:
            yield from _pairs(word)
            yield word[-1]
        else:
            yield word
            for part in _LATER_PART.finditer(word):
                yield word[part.start() :]


def _query_words(text: str) -> Iterator[str]:
    for run in _runs(text):
        word = run.group()
        yield from _pairs(word) if run.lastgroup and len(word) > 1 else [word]


def _runs(text: str) -> Iterator[re.Match[str]]:
    """Return the runs of letters and digits; those without blanks have a group."""
    # folding may undo the normal form
    folded = normalize("NFKC", normalize("NFKC", text[:MAX_TEXT_CHARS]).casefold())
    return _run().finditer(folded)


def _pairs(run: str) -> Iterator[str]:
    return (run[at : at + 2] for at in range(len(run) - 1))


def _different(words: Iterator[str], most: int) -> list[str]:
    found: dict[str, None] = {}
    for word in words:
        found[word[:MAX_WORD_CHARS]] = None
        if len(found) == most:
            break
    return list(found)


def joined_words(text: str) -> str:
    """Return the words of a text as the scripts of the store take them: with a blank between two.

    >>> joined_words("docs/Plan.md")
    'docs plan.md md'
    """
    return _of_short(text) if len(text) <= CACHED_CHARS else " ".join(words_of(text))


@lru_cache(maxsize=512)
def _of_short(text: str) -> str:
    return " ".join(words_of(text))
