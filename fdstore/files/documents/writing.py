"""Where readers of documents write text, and the error that they raise. Part of the child, which imports
nothing of fdstore but this room."""

from __future__ import annotations

import re
from typing import BinaryIO, Literal

BUFFER_CHARS = 1 << 16
MARK = re.compile(r"\[(?:(?:page|slide|chapter|row) [0-9]|sheet |notes of slide [0-9]).*\]")
"""A line that begins a page, a sheet, a slide or a chapter, or says which row follows."""

Problem = Literal["damaged", "encrypted", "no text", "date"]


class NoText(Exception):
    """A document cannot be read as text: of which sort the problem is, and what is so."""

    def __init__(self, problem: Problem, said: str) -> None:
        super().__init__(problem, said)
        self.problem: Problem = problem
        self.said = said


class TextWriter:
    """Writes lines in UTF-8 to a file. `has_text`: whether any was written but marks."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._lines: list[str] = []
        self._chars = 0
        self._last = ""
        self.has_text = False

    def mark(self, name: str) -> None:
        """Begin a page, a sheet, ...: `[page 3]`."""
        self._add(f"[{' '.join(name.split())}]")

    def text(self, text: str) -> None:
        """Write a text of one line or several."""
        text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
        for line in text.split("\n"):
            self.has_text = self.has_text or bool(line.strip())
            self._add(f" {line}" if line.startswith("[") and MARK.fullmatch(line) else line)

    def blank(self) -> None:
        """Write an empty line, unless one is before."""
        if self._last.strip():
            self._add("")

    def _add(self, line: str) -> None:
        self._last = line
        self._lines.append(line)
        self._chars += len(line) + 1
        if self._chars >= BUFFER_CHARS:
            self.flush()

    def flush(self) -> None:
        """Write what is buffered."""
        if self._lines:
            self._file.write("\n".join([*self._lines, ""]).encode("utf-8", "backslashreplace"))
        self._lines, self._chars = [], 0
