"""Logs and the output of tests: lines that look like errors, and the end.

A text counts as a log if half of the lines at its beginning have a time or a level, and as the output of
tests if it has lines that only test runners and build tools print.
"""

from __future__ import annotations

import re
from itertools import islice

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
MIN_MARKS = 2
SHOWN_ERRORS = 16
LOG_TAIL_CHARS = 800
"""The end of a log says most."""

_LOGGED = re.compile(
    r"\W{0,3}(?:\d{4}[-/.]\d\d[-/.]\d\d[T ]\d|\[?\d\d:\d\d:\d\d|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d"
    r"|\[ *\d+\.\d{3,6}\]|\d{9,13}(?:\.\d+)?[\s\]])"
    r"|.{0,60}?\b(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|CRITICAL)\b"
)
_TESTED = re.compile(
    r"=+ (?:test session starts|FAILURES|ERRORS|short test summary info|.{0,200}?\b(?:passed|failed)\b)"
    r"|(?:FAILED|ERROR|PASSED) \S+::|[^\s:]++(?:::?[^\s:]++)* (?:PASSED|FAILED|ERROR|SKIPPED)\b"
    r"|(?:not )?ok \d+ |TAP version \d|ok  +\t?\S+\t"
    r"|\s*--- (?:FAIL|PASS|SKIP): |=== RUN |test \S+ \.\.\. (?:ok|FAILED|ignored)|test result: "
    r"|running \d+ tests?$|Tests: +\d+|Test Suites: +\d|(?:PASS|FAIL)\s+\S+\.\S+|Ran \d+ tests? in "
    r"|\[INFO\] Tests run:|BUILD (?:SUCCESS|FAIL)|make(?:\[\d+\])?: (?:\*\*\*|Entering|Leaving)"
    r"|npm (?:ERR!|error)|##\[\w+\]"
)
_ERROR = re.compile(
    r"(?:errors?|fail(?:ed|ures?)?|fatal|critical|panic|exception|not ok|traceback)\b(?!=0|: 0\b)"
)
_NONE = re.compile(r"(?:^|\W)(?:0|no) $")
_WORDS = ("error", "fail", "fatal", "critical", "panic", "exception", "not ok", "traceback")


def log(sample: Sample) -> Outline | None:
    """Describe a log, or the output of tests."""
    if len(sample.first) < MIN_LINES:
        return None
    judged = [line for line in sample.first[:JUDGED_LINES] if line.strip()]
    logged = sum(1 for line in judged if _LOGGED.match(line))
    kind = "log"
    if 2 * logged < max(len(judged), MIN_LINES):
        ends = (*sample.first[:JUDGED_LINES], *sample.first[-JUDGED_LINES:], *sample.last[-JUDGED_LINES:])
        marks = sum(1 for _ in islice(filter(_TESTED.match, dict.fromkeys(ends)), MIN_MARKS))
        if marks < MIN_MARKS:
            return None
        kind = "test output"
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
    return Outline(kind=kind, of=of, lines=lines, tail_chars=LOG_TAIL_CHARS)


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
