"""The ways in which a long result reaches a model: the columns of the bench.

    inline    all of it
    codex     its beginning and its end, about 10 000 tokens together at 4 bytes a token; the middle is lost
    claude    Claude Code: more than 30 000 characters of a command, or 50 000 of another tool, go to a file
              that the model reads by lines and searches; it sees the path and the first 2 KB. A read that
              would show more than 25 000 tokens is refused, and a line is cut after 2000 characters
    fdstore   fdstore with its defaults

Where hosts differ by version or model, the rule that keeps more is taken. Claude Code saves results of MCP as
JSON on one line, which its tools for files cannot read by lines; here they can.
"""

from __future__ import annotations

import itertools
import re
from typing import Literal

from fdstore.text.tokens import estimate_tokens

Column = Literal["inline", "codex", "claude", "fdstore"]
COLUMNS: tuple[Column, ...] = ("inline", "codex", "claude", "fdstore")

WINDOW_TOKENS = 1_000_000
"""No model takes a longer request."""

CODEX_BYTES = 40_000
COMMAND_CHARS = 30_000
RESULT_CHARS = 50_000
READ_TOKENS = 25_000
READ_LINES = 2000
LINE_CHARS = 2000
PREVIEW_CHARS = 2000


class Host:
    """The state that a host keeps between calls: the files of the task, and results that it saved."""

    def __init__(self, column: Column, files: dict[str, str]) -> None:
        self.column = column
        self.files = dict(files)
        self._numbers = itertools.count(1)

    def show(self, text: str, *, is_command: bool = False) -> str:
        """Return what the model sees of the result of a function."""
        match self.column:
            case "codex":
                return cut_middle(text, CODEX_BYTES)
            case "claude" if len(text) > (COMMAND_CHARS if is_command else RESULT_CHARS):
                path = f"/home/ann/.claude/projects/shop/tool-results/{next(self._numbers)}.txt"
                self.files[path] = text
                return (
                    f"<persisted-output>\nOutput too large ({len(text)} characters). Full output saved to: "
                    f"{path}\n\nPreview (first 2KB):\n{text[:PREVIEW_CHARS]}\n...\n</persisted-output>"
                )
        return text

    def read(self, path: str, start: int, count: int | None) -> str:
        """Return lines of a file as the host's tool for files shows them."""
        lines = self.files[path].splitlines(keepends=True)
        if self.column == "claude":
            shown = "".join(_cut_line(line) for line in lines[start - 1 :][: count or READ_LINES])
            tokens = estimate_tokens(shown)
            if tokens > READ_TOKENS:
                return f"Error: {tokens} tokens exceed the maximum of {READ_TOKENS}; read fewer lines."
            return shown
        shown = "".join(lines[start - 1 :] if count is None else lines[start - 1 : start - 1 + count])
        return self.show(shown, is_command=True)

    def search(self, path: str, pattern: str, context: int, *, only_count: bool) -> str:
        """Return the lines of a file that match, as `grep -n` prints them, or their number."""
        lines = self.files[path].splitlines()
        found = [number for number, line in enumerate(lines) if re.search(pattern, line)]
        if only_count:
            return f"{len(found)} matching lines"
        shown = sorted({near for hit in found for near in range(hit - context, hit + context + 1)})
        hits = frozenset(found)
        printed = [
            f"{number + 1}{':' if number in hits else '-'}{_around(lines[number], pattern)}"
            for number in shown
            if 0 <= number < len(lines)
        ]
        return self.show("\n".join(printed), is_command=True)


def _cut_line(line: str) -> str:
    return line if len(line) <= LINE_CHARS else f"{line[:LINE_CHARS]}... [line truncated]\n"


def _around(line: str, pattern: str) -> str:
    """Return a line, or of a long one what `grep -o` with some characters on both sides prints."""
    if len(line) <= LINE_CHARS:
        return line
    found = re.search(f".{{0,200}}(?:{pattern}).{{0,200}}", line)
    return found[0] if found else line[:LINE_CHARS]


def cut_middle(text: str, limit_bytes: int) -> str:
    """Return a text without its middle, if it has more bytes than the limit.

    >>> cut_middle("abcdefgh" * 10, 8)
    'abcd…18 tokens truncated…efgh'
    """
    data = text.encode()
    if len(data) <= limit_bytes:
        return text
    half = limit_bytes // 2
    head, tail = data[:half].decode("utf-8", "ignore"), data[-half:].decode("utf-8", "ignore")
    return f"{head}…{(len(data) - limit_bytes) // 4} tokens truncated…{tail}"
