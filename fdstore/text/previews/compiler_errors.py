"""What compilers and checkers report: the errors with their lines, and how many files have some."""

from __future__ import annotations

import re

from fdstore.text.previews.sample import Outline, Sample, counted, excerpt, first_and_last, numbered_excerpt

MIN_REPORTS = 2
SHOWN = 12
TAIL_CHARS = 300

_REPORT = re.compile(
    r"(?P<file>[^\s:()][^:()\n]{0,300}?)(?::\d+(?::\d+)?|\(\d+(?:,\d+)?\)) ?: (?:fatal )?"
    r"(?P<kind>error|warning)\b"
)
_RUST = re.compile(r"(?P<kind>error|warning)(?:\[E\d+\])?: (?!aborting|could not compile|build failed)")
_RUST_PLACE = re.compile(r"\s+--> (?P<file>[^:]+):\d+:\d+")


def compiler_errors(sample: Sample) -> Outline | None:
    """Describe the reports of a compiler or checker."""
    errors: list[str] = []
    warnings: list[str] = []
    files: set[str] = set()
    waiting = waiting_kind = ""  # Rust's message, whose place is in the next line
    for number, line in sample.numbered():
        report = _REPORT.match(line) if "error" in line or "warning" in line else None
        shown = ""
        if report:
            shown, kind, file = numbered_excerpt(number, line), report["kind"], report["file"]
        elif waiting and (place := _RUST_PLACE.match(line)):
            shown, kind, file = f"{waiting} {excerpt(place[0].strip())}", waiting_kind, place["file"]
        if shown:
            (errors if kind == "error" else warnings).append(shown)
            files.add(file)
        rust = None if report else _RUST.match(line)
        waiting = numbered_excerpt(number, line) if rust else ""
        waiting_kind = rust["kind"] if rust else ""
    if len(errors) + len(warnings) < MIN_REPORTS:
        return None
    reports = f"{counted(len(errors), 'error')} and {counted(len(warnings), 'warning')}"
    part = "" if sample.all_lines else " in this part"
    shown_lines = (
        first_and_last(errors, SHOWN, "errors") if errors else first_and_last(warnings, SHOWN, "warnings")
    )
    lines = [f"lines that report {reports} in {counted(len(files), 'file')}{part}", *shown_lines]
    return Outline(kind="compiler errors", of=sample.range_of_lines(), lines=lines, tail_chars=TAIL_CHARS)
