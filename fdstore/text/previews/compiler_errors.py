"""Reports of compilers and checkers: the errors with their lines, and how many files have some.

Two reports make a text the output of a compiler. One error makes it that only if the text is of no other
kind, as the output of a long build is: then its beginning is shown too.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import NamedTuple

from fdstore.text.previews.line_search import MAX_HITS, FoundLine, compile_words, find_lines, line_of
from fdstore.text.previews.sample import (
    SHOWN_TAIL_CHARS,
    Outline,
    Sample,
    excerpt,
    first_and_last,
    first_lines,
    numbered_excerpt,
    part_of,
)
from fdstore.text.quantities import plain_count

MIN_REPORTS = 2
SHOWN = 12

_REPORT = re.compile(
    r"(?P<file>[^\s:()][^:()\n]{0,300}?)(?::\d+(?::\d+)?|\(\d+(?:,\d+)?\)) ?: (?:fatal )?"
    r"(?P<kind>error|warning)\b"
)
_RUST = re.compile(r"(?P<kind>error|warning)(?:\[E\d+\])?: (?!aborting|could not compile|build failed)")
_RUST_PLACE = re.compile(r"\s+--> (?P<file>[^:]+):\d+:\d+")
_WORDS, _WARNING = compile_words(b"error|warning"), compile_words(rb"(?m:^)warning|[:)] ?warning")


class _Report(NamedTuple):
    is_error: bool
    file: str
    line: FoundLine
    place: str = ""

    def __str__(self) -> str:
        return numbered_excerpt(self.line.number, self.line.text) + self.place


def compiler_errors(sample: Sample) -> Outline | None:
    """Describe a text with the reports of a compiler or checker."""
    if not _may_have_reports(sample):
        return None
    return _outline(sample, MIN_REPORTS)


def compiler_error_inside(sample: Sample) -> Outline | None:
    """Describe a text that has one error of a compiler somewhere."""
    reports = map(_report, sample.error_lines.lines)
    return _outline(sample, 1) if any(report and report.is_error for report in reports) else None


def _may_have_reports(sample: Sample) -> bool:
    """Return whether there is a report among the lines with errors, or those with warnings; only then both
    are searched for together."""
    found = (line for line in sample.error_lines.lines if "error" in line.text or "warning" in line.text)
    if any(map(_report, found)):
        return True
    warnings = (hit for span in sample.spans for hit in islice(_WARNING.finditer(span.data), MAX_HITS))
    lines = (line_of(hit.string, hit.start()).decode("utf-8", "replace") for hit in warnings)
    return any(_REPORT.match(line) or _RUST.match(line) for line in lines)


def _outline(sample: Sample, min_reports: int) -> Outline | None:
    found = find_lines(sample.spans, _WORDS)
    reports = [report for line in found.lines if (report := _report(line))]
    if len(reports) < min_reports:
        return None
    errors = [report for report in reports if report.is_error]
    warnings = [report for report in reports if not report.is_error]
    files = {report.file for report in reports}
    of = found.range_in(sample.total_lines)
    numbers = f"{plain_count(len(errors), 'error')} and {plain_count(len(warnings), 'warning')}"
    lines = [
        *(first_lines(sample) if len(reports) < MIN_REPORTS else ()),
        f"lines that report {numbers} in {plain_count(len(files), 'file')}{part_of(of)}",
        *(first_and_last(errors, SHOWN, "errors") if errors else first_and_last(warnings, SHOWN, "warnings")),
    ]
    return Outline(kind="compiler errors", of=of, lines=lines, tail_chars=SHOWN_TAIL_CHARS)


def _report(line: FoundLine) -> _Report | None:
    """Return what a line reports, with the next line for Rust, which names the place there."""
    text = line.text
    if report := _REPORT.match(text):
        return _Report(report["kind"] == "error", report["file"], line)
    rust = _RUST.match(text)
    place = _RUST_PLACE.match("".join(line.following(1))) if rust else None
    if rust and place:
        return _Report(rust["kind"] == "error", place["file"], line, f" {excerpt(place[0].strip())}")
    return None
