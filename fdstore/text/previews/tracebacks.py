"""Tracebacks of Python, Java, Go and Node: the message, and the frame where it was raised.

A text counts as one if its last traceback ends where the text does, or if a traceback is all it begins with.
A log that has tracebacks in its middle is a log.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from fdstore.records import Record
from fdstore.text.previews.sample import Outline, Sample, numbered_excerpt

MAX_LINES_AFTER = 3
"""How many lines may follow a traceback at the end of a text."""

MAX_MESSAGE_LINES = 5

_PYTHON = "Traceback (most recent call last):"
_PYTHON_FRAME = re.compile(r'\s+File "[^"]*", line \d+')
_PYTHON_ERROR = re.compile(r"[A-Za-z_][\w.]*(?::|$)")
_JAVA_FRAME = re.compile(r"\s+at [\w$.<>/]+\([^()]*\)")
_NODE_FRAME = re.compile(r"\s+at (?:.*\()?[^()]*:\d+:\d+\)?$")
_THROWN = re.compile(
    r"(?:Exception in thread \"[^\"]*\" |Caused by: |Uncaught )?[\w$.]+(?:Error|Exception|Throwable)\b"
)
_GO = re.compile(r"(?:panic: |fatal error: )")
_GO_FRAME = re.compile(r"\t[^\t ]+\.go:\d+")
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
        plural = "s" if found.frames > 1 else ""
        return Outline(
            kind="traceback",
            of=sample.range_of_lines(),
            lines=[
                f"{found.language} traceback in lines {first}-{last}, {found.frames} frame{plural}",
                *(numbered_excerpt(*numbered[at]) for at in found.message),
                "raised in:",
                *(numbered_excerpt(*numbered[at]) for at in found.frame),
            ],
            tail_chars=0 if after == 0 else 300,
        )
    return None


def _last(lines: Sequence[str], matches: re.Pattern[str]) -> int | None:
    return next((at for at in range(len(lines) - 1, -1, -1) if matches.match(lines[at])), None)


def _python(lines: Sequence[str]) -> _Traceback | None:
    """Find Python's last traceback: its innermost frame is the last one, its message follows."""
    first = next((at for at in range(len(lines) - 1, -1, -1) if lines[at].rstrip("\r") == _PYTHON), None)
    if first is None:
        return None
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
    last = _last(lines, _JAVA_FRAME)
    node = _last(lines, _NODE_FRAME)
    language, pattern = "Java", _JAVA_FRAME
    if node is not None and (last is None or node >= last):
        last, language, pattern = node, "JavaScript", _NODE_FRAME
    if last is None:
        return None
    start = last
    while start > 0 and _DEEPER.match(lines[start - 1]):
        start -= 1
    if start == 0 or not _THROWN.match(lines[start - 1]):
        return None
    frames = sum(1 for line in lines[start : last + 1] if pattern.match(line))
    return _Traceback(
        language=language,
        first=start - 1,
        last=last,
        message=[start - 1],
        frame=[start],
        frames=frames,
    )


def _go(lines: Sequence[str]) -> _Traceback | None:
    """Find a panic: the message, and below the goroutine that panicked its innermost frame, in two lines."""
    first = next((at for at, line in enumerate(lines) if _GO.match(line)), None)
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
