"""Diffs: the files, and how many lines each adds and removes.

Lines are counted by the numbers in the heading of each hunk, so a removed line that begins with `-- ` is not
the heading of a file. What stands between hunks is not such as the message of the next commit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from fdstore.text.previews.sample import Outline, Sample, excerpt, part_of
from fdstore.text.quantities import plain_count

_HUNK = re.compile(r"@@ -\d{1,9}(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@")
_GIT = "diff --git "
_NOTES = {
    "new file mode": "new",
    "deleted file mode": "deleted",
    "rename to": "renamed",
    "Binary files": "binary",
    "GIT binary patch": "binary",
}
_NOTED = tuple(_NOTES)
_BEGINNINGS = ("diff ", "--- ", "Index: ", "commit ", "From ")
MIN_SHARE = 5
"""A text that begins otherwise is a diff if one of so many lines is of its headings and hunks."""


@dataclass
class _File:
    """A file of a diff, whose heading is in this line."""

    line: int
    name: str
    added: int = 0
    removed: int = 0
    hunks: int = 0
    lines: int = 1
    """Of its headings and hunks."""
    note: str = ""


def diff(sample: Sample) -> Outline | None:
    """Describe a diff in the unified format."""
    if not any(line.startswith((_GIT, "@@ -")) for line in sample.first):
        return None
    lines = sample.head_lines
    files = _files(lines)
    if not files or not _is_mostly(files, lines):
        return None
    everything = len(lines) == sample.total_lines
    of = sample.range_of_first(len(lines))
    in_all = "" if of == "all" else f"; the text has {sample.total_lines} lines"
    added, removed = sum(file.added for file in files), sum(file.removed for file in files)
    counts = f"{plain_count(len(files), 'file')}, +{added} -{removed}"
    shown = [f"{counts}{part_of(of)}{in_all}"]
    if not everything:
        files[-1].note += " so far"
    for file in files:
        note = f" {file.note.strip()}" if file.note else ""
        shown.append(f"{file.line}:{excerpt(file.name)} +{file.added} -{file.removed}{note}")
    return Outline(kind="diff", of=of, lines=shown)


def _files(lines: Sequence[str]) -> list[_File]:
    """Return the files; none if the lines are not a diff."""
    files: list[_File] = []
    old = new = 0  # lines of the hunk that are still to come
    for number, line in enumerate(lines, 1):
        if old > 0 or new > 0:
            files[-1].lines += 1
            match line[:1]:
                case "+":
                    new -= 1
                    files[-1].added += 1
                case "-":
                    old -= 1
                    files[-1].removed += 1
                case " " | "" | "\r":  # mail strips the blank of an empty line
                    old, new = old - 1, new - 1
                case "\\":
                    pass
                case _:
                    return []
            if old < 0 or new < 0:
                return []
        elif line.startswith(_GIT):
            files.append(_File(number, line.removeprefix(_GIT)))
        elif line.startswith("--- ") and number < len(lines) and lines[number].startswith("+++ "):
            name = _name(line, lines[number])
            if files and not files[-1].hunks and lines[files[-1].line - 1].startswith(_GIT):
                files[-1].name = name.removeprefix("b/").removeprefix("a/")
            else:
                files.append(_File(number, name))
        elif line.startswith("@@ -") and (hunk := _HUNK.match(line)):
            if not files:
                return []
            files[-1].hunks += 1
            files[-1].lines += 1
            old, new = int(hunk[1] or 1), int(hunk[2] or 1)
        elif line.startswith(_NOTED) and files and not files[-1].hunks:
            for beginning, note in _NOTES.items():
                if line.startswith(beginning):
                    files[-1].note = note
    return files if any(file.hunks or file.note for file in files) else []


def _is_mostly(files: Sequence[_File], lines: Sequence[str]) -> bool:
    """Return whether a text is a diff, perhaps with messages of commits, and no page that quotes one."""
    if lines[0].startswith(_BEGINNINGS):
        return True
    of_diff = sum(file.lines for file in files)
    return MIN_SHARE * sum(1 for line in lines if line.strip()) <= of_diff


def _name(old: str, new: str) -> str:
    """Return the name of a file from its two headings, without times."""
    names = [heading[4:].partition("\t")[0].rstrip("\r") for heading in (new, old)]
    return names[0] if names[0] != "/dev/null" else names[1]
