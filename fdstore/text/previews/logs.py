"""Logs and the output of tests: lines that look like errors, and the end.

A text counts as a log if half of the lines at its beginning have a time or a level, and as the output of
tests if it has lines that only test runners and build tools print.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import Literal

from fdstore.text.previews.line_search import compile_words, line_of
from fdstore.text.previews.sample import (
    JUDGED_CHARS,
    JUDGED_LINES,
    Outline,
    Sample,
    first_and_last,
    first_lines,
    numbered_excerpt,
    part_of,
)

MIN_LINES = 6
MIN_MARKS, MAX_MARKS = 2, 20
"""The different lines that make a text the output of tests, and the most that are looked at."""

SHOWN_ERRORS = 16
LOG_TAIL_CHARS = 800
"""The end of a log says most."""

Level = Literal["debug", "info", "warn", "error"]
LEVELS: dict[str, Level] = {
    "TRACE": "debug",
    "DEBUG": "debug",
    "INFO": "info",
    "NOTICE": "info",
    "WARN": "warn",
    "WARNING": "warn",
    "ERROR": "error",
    "FATAL": "error",
    "CRITICAL": "error",
}
"""The levels of a log, by the words that name them."""

_LEVEL_WORDS = "|".join(LEVELS)
# ERROR, level=error, [error]
_LEVEL = re.compile(rf".{{0,60}}?(?:\b({_LEVEL_WORDS})\b|(?i:\blevel=\"?|\[)((?i:{_LEVEL_WORDS}))\b)")
_LOGGED = re.compile(
    r"\W{0,3}(?:\d{4}[-/.]\d\d[-/.]\d\d[T ]\d|\[?\d\d:\d\d:\d\d|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d"
    r"|\d{1,8}:[CMSX] \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d"
    r"|\[ *\d+\.\d{3,6}\]|\d{9,13}(?:\.\d+)?[\s\]])"
    rf"|.{{0,60}}?\b(?:{_LEVEL_WORDS})\b"
)
_TESTED = compile_words(
    rb"(?m:^)(?:=+ (?:test session starts|FAILURES|ERRORS|short test summary info"
    rb"|.{0,200}?\b(?:passed|failed)\b)"
    rb"|(?:FAILED|ERROR|PASSED) \S+::|[^\s:]*[./:_]\S* (?:PASSED|FAILED|ERROR|SKIPPED)\b"
    rb"|(?:not )?ok \d+ |TAP version \d|ok  +\t?\S+\t"
    rb"|[ \t]*--- (?:FAIL|PASS|SKIP): |=== RUN |test \S+ \.\.\. (?:ok|FAILED|ignored)|test result: "
    rb"|running \d+ tests?\r?(?m:$)|Tests: +\d+|Test Suites: +\d|(?:PASS|FAIL)[ \t]+\S+\.\S+"
    rb"|Ran \d+ tests? in |\[INFO\] Tests run:|BUILD (?:SUCCESS|FAIL)"
    rb"|make(?:\[\d+\])?: (?:\*\*\*|Entering|Leaving)"
    rb"|npm (?:ERR!|error)|##\[\w+\])"
)
_ERROR = re.compile(
    r"(?:errors?|fail(?:ed|ures?)?|fatal|critical|panic|exception|not ok|traceback)\b(?!=0|: 0\b)"
)
_NONE = re.compile(r"(?:^|\W)(?:0|no) $")
_WORDS = ("error", "fail", "fatal", "critical", "panic", "exception", "not ok", "traceback")


def log(sample: Sample) -> Outline | None:
    """Describe a log, or the output of tests."""
    if len(sample.first) < MIN_LINES or sample.script_of:
        return None
    if is_log(sample.first):
        return _outline(sample, "log")
    ends = [*sample.first[:JUDGED_LINES], *sample.first[-JUDGED_LINES:], *sample.last[-JUDGED_LINES:]]
    is_tested = not sample.is_document and _is_tested("\n".join(ends).encode("utf-8", "surrogatepass"))
    return _outline(sample, "test output") if is_tested else None


def is_log(lines: Sequence[str]) -> bool:
    """Return whether half of the first lines, and enough of them, have a time or a level."""
    judged = [line for line in lines[:JUDGED_LINES] if line.strip()]
    logged = sum(1 for line in judged if _LOGGED.match(line))
    return 2 * logged >= max(len(judged), MIN_LINES)


def level_of(line: str) -> Level | None:
    """Return the level of a line of a log, which stands at its beginning; None without one.

    >>> level_of("12:30:01 WARNING disk at 91 %"), level_of("t=1 level=fatal msg=x"), level_of("at main.py")
    ('warn', 'error', None)
    """
    found = _LEVEL.match(line)
    return LEVELS[(found[1] or found[2]).upper()] if found else None


def tests_inside(sample: Sample) -> Outline | None:
    """Describe a text that has the output of tests somewhere."""
    if len(sample.first) < MIN_LINES or sample.is_document or sample.script_of:
        return None
    is_tested = any(_is_tested(span.data) for span in sample.spans)
    return _outline(sample, "test output") if is_tested else None


def _is_tested(data: bytes) -> bool:
    """Return whether there are lines that only test runners and build tools print."""
    marks = {line_of(data, hit.start()) for hit in islice(_TESTED.finditer(data), MAX_MARKS)}
    return len(marks) >= MIN_MARKS


def _outline(sample: Sample, kind: str) -> Outline:
    found = sample.error_lines
    errors = [line for line in found.lines if _looks_like_an_error(line.text)]
    of = found.range_in(sample.total_lines)
    lines = first_lines(sample)
    counted = "1 line looks like an error" if len(errors) == 1 else f"{len(errors)} lines look like errors"
    lines += [
        f"{counted}{part_of(of)}{':' if errors else ''}",
        *first_and_last(
            errors, SHOWN_ERRORS, "such lines", lambda each: numbered_excerpt(each.number, each.text)
        ),
    ]
    last = errors[-1].number if errors else 0
    return Outline(kind=kind, of=of, lines=lines, tail_chars=LOG_TAIL_CHARS, tail_after=last)


def _looks_like_an_error(line: str) -> bool:
    line = line[:JUDGED_CHARS]
    if line.startswith("E   "):
        return True
    lowered = line.lower()
    if not any(word in lowered for word in _WORDS):
        return False
    for hit in _ERROR.finditer(lowered):
        start = hit.start()
        before = lowered[max(start - 4, 0) : start]
        if before[-1:].isalnum() or before[-1:] == "_":
            if hit[0] in ("error", "exception") and line[start : start + 1].isupper():
                return True  # a name such as TypeError
        elif not _NONE.search(before):
            return True
    return False
