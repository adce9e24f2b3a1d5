"""Tracebacks of Python, Java, Go and Node: the message, and the frame where it was raised.

A text is one if its last traceback ends where the text does. A text of no other kind that has tracebacks
inside is described by them and by its beginning; a log that has some is a log.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from fdstore.model.records import Record
from fdstore.text.previews.line_search import FoundLine, compile_words
from fdstore.text.previews.sample import (
    SHOWN_TAIL_CHARS,
    Outline,
    Sample,
    first_lines,
    numbered_excerpt,
    part_of,
)
from fdstore.text.quantities import plain_count

MAX_LINES_AFTER = 3
"""The most lines that may follow a traceback at the end of a text."""

SHOWN_FIRST, SHOWN_LAST = 1, 2

_PYTHON = "Traceback (most recent call last):"
_PYTHON_FRAME = re.compile(r'\s+File "[^"]*", line \d+')
_PYTHON_ERROR = re.compile(r"[A-Za-z_][\w.]*(?::|$)")
_JAVA_FRAME = re.compile(r"\s+at [\w$.<>/]+\([^()]*\)")
_NODE_FRAME = re.compile(r"\s+at (?:.*\()?[^()]*:\d+:\d+\)?$")
_THROWN = re.compile(
    r"(?:Exception in thread \"[^\"]*\" |Caused by: |Uncaught )?[\w$.]+(?:Error|Exception|Throwable)\b"
)
_CAUSE = "Caused by: "
_FRAME_CHARS = 1000
_GO = ("panic: ", "fatal error: ")
_GO_FRAME = re.compile(r"\t[^\t ]+\.go:\d+")
# the line after the last one of a traceback
_ENDS_PYTHON = compile_words(rb"(?m:^)[^ ]")
_ENDS_GO = compile_words(rb"\n\r?\n(?:[^g\[]|g[^o]|\[[^s])")
_ENDS = compile_words(rb"(?m:^)(?:[^ \tC]|C[^a])")
_DEEPER = re.compile(r"\s+(?:at |\.\.\. \d+ (?:more|lines)|\[)")


class _Traceback(Record, frozen=True, kw_only=True):
    """Numbers are positions in the lines that were looked at: the first and last line of the traceback, its
    message and where it was raised."""

    language: str
    first: int
    last: int
    message: Sequence[int]
    frame: Sequence[int]
    frames: int


def traceback(sample: Sample) -> Outline | None:
    """Describe the traceback that a text is, or ends with."""
    numbered = list(sample.numbered())
    lines = [line for _, line in numbered]
    for find in (_python, _java_or_node, _go):
        found = find(lines)
        if found is None:
            continue
        after = sum(1 for line in lines[found.last + 1 :] if line.strip())
        if after > MAX_LINES_AFTER:
            continue
        first, last = numbered[found.first][0], numbered[found.last][0]
        if last - first != found.last - found.first:
            continue  # part of it was not looked at
        return Outline(
            kind="traceback",
            of=sample.range_of_lines(),
            lines=_describe(found, lines, first),
            tail_chars=0 if after == 0 else SHOWN_TAIL_CHARS,
        )
    return None


def traceback_inside(sample: Sample) -> Outline | None:
    """Describe a text that has tracebacks somewhere: how many, the first one and the last ones."""
    if any(line.startswith("```") for line in sample.first):
        return None  # a document that quotes one
    found = sample.error_lines
    begins = [line for line in found.lines if _begins(line)]
    if not begins:
        return None
    of = found.range_in(sample.total_lines)
    lines = [*first_lines(sample), f"{plain_count(len(begins), 'traceback')}{part_of(of)}:"]
    left_out = len(begins) - SHOWN_FIRST - SHOWN_LAST
    for at, line in enumerate(begins):
        if left_out > 0 and at == SHOWN_FIRST:
            lines.append(f"-- {left_out} more tracebacks --")
        if at < SHOWN_FIRST or at >= len(begins) - SHOWN_LAST:
            lines += _describe_at(line)
    return Outline(kind="traceback", of=of, lines=lines, tail_chars=SHOWN_TAIL_CHARS)


def _begins(line: FoundLine) -> bool:
    """Return whether a traceback begins with a line."""
    if line.text.rstrip("\r") == _PYTHON:
        return bool(_PYTHON_FRAME.match(line.following(1)[0]))
    if line.text.startswith(_GO):
        return any(each.startswith("goroutine ") for each in line.following(3))
    if _THROWN.match(line.text) and not line.text.startswith(_CAUSE):
        frame = line.following(1)[0]
        return bool(_language(frame))
    return False


def _describe_at(line: FoundLine) -> list[str]:
    """Describe the traceback that begins with a line."""
    end = (
        _ENDS_PYTHON
        if line.text.rstrip("\r") == _PYTHON
        else _ENDS_GO
        if line.text.startswith(_GO)
        else _ENDS
    )
    lines = [line.text, *line.following_until(end)]
    if lines[0].rstrip("\r") == _PYTHON:
        found = _python_at(lines, 0)
    elif lines[0].startswith(_GO):
        found = _go(lines[: _end_of_goroutines(lines)])
    else:
        found = cause = _thrown_at(lines, 0)
        while cause:
            found = cause
            after = found.last + 1
            has_cause = after < len(lines) and lines[after].startswith(_CAUSE)
            cause = _thrown_at(lines, after) if has_cause else None
    if found is None:
        return [numbered_excerpt(line.number, line.text)]
    return _describe(found, lines, line.number + found.first)


def _describe(found: _Traceback, lines: Sequence[str], number: int) -> list[str]:
    """Describe a traceback among `lines`, whose first line has this number."""
    first = number - found.first
    frames = plain_count(found.frames, "frame")
    return [
        f"{found.language} traceback in lines {number}-{first + found.last}, {frames}",
        *(numbered_excerpt(first + at, lines[at]) for at in found.message),
        "raised in:",
        *(numbered_excerpt(first + at, lines[at]) for at in found.frame),
    ]


def _python(lines: Sequence[str]) -> _Traceback | None:
    """Find Python's last traceback: its innermost frame is the last one, its message follows."""
    first = next(
        (
            at
            for at in range(len(lines) - 1, -1, -1)
            if lines[at].startswith(_PYTHON) and lines[at].rstrip("\r") == _PYTHON
        ),
        None,
    )
    if first is None:
        return None
    return _python_at(lines, first)


def _python_at(lines: Sequence[str], first: int) -> _Traceback | None:
    """Find the end of Python's traceback that begins there."""
    frames: list[int] = []
    for at in range(first + 1, len(lines)):
        if _PYTHON_FRAME.match(lines[at]):
            frames.append(at)
        elif not lines[at].startswith(" "):
            break
    else:
        return None
    if not frames or not _PYTHON_ERROR.match(lines[at].rstrip("\r")):
        return None
    code = range(frames[-1], min(frames[-1] + 2, at))
    return _Traceback(language="Python", first=first, last=at, message=[at], frame=code, frames=len(frames))


def _java_or_node(lines: Sequence[str]) -> _Traceback | None:
    """Find the last stack: the message stands before it, the innermost frame is its first."""
    last = next(
        (at for at in range(len(lines) - 1, -1, -1) if "at " in lines[at] and _language(lines[at])), None
    )
    if last is None:
        return None
    start = last
    while start > 0 and _DEEPER.match(lines[start - 1]):
        start -= 1
    return _thrown_at(lines, start - 1) if start > 0 and _THROWN.match(lines[start - 1]) else None


def _thrown_at(lines: Sequence[str], first: int) -> _Traceback | None:
    """Find the stack below the message that is there."""
    end = next((at for at in range(first + 1, len(lines)) if not _DEEPER.match(lines[at])), len(lines))
    languages = [_language(line) for line in lines[first + 1 : end]]
    language = next((each for each in reversed(languages) if each), "")
    if not language:
        return None
    frames = [first + 1 + at for at, each in enumerate(languages) if each == language]
    return _Traceback(
        language=language,
        first=first,
        last=frames[-1],
        message=[first],
        frame=[first + 1],
        frames=len(frames),
    )


def _language(line: str) -> str:
    """Return the language whose frame a line is; "" if it is none."""
    if len(line) > _FRAME_CHARS:
        return ""
    return "Java" if _JAVA_FRAME.match(line) else "JavaScript" if _NODE_FRAME.match(line) else ""


def _end_of_goroutines(lines: Sequence[str]) -> int:
    """Return where the stacks after a panic end: paragraphs that each begin with the name of a goroutine."""
    for at in range(1, len(lines) - 1):
        if not lines[at].strip() and not lines[at + 1].startswith(("goroutine ", "[signal ")):
            return at
    return len(lines)


def _go(lines: Sequence[str]) -> _Traceback | None:
    """Find a panic: the message, and below the goroutine that panicked its innermost frame, in two lines."""
    first = next((at for at, line in enumerate(lines) if line.startswith(_GO)), None)
    if first is None:
        return None
    start = next((at for at in range(first, len(lines)) if lines[at].startswith("goroutine ")), len(lines))
    places = [at for at in range(start + 1, len(lines)) if _GO_FRAME.match(lines[at])]
    if not places:
        return None
    return _Traceback(
        language="Go",
        first=first,
        last=places[-1],
        message=[first],
        frame=[places[0] - 1, places[0]],
        frames=len(places),
    )
