"""Format the lines that a search finds: numbered, coloured, escaped, shortened, or their matches only.

On a terminal control characters are escaped, and a line longer than `SHOWN_CHARS` is reduced to the part
around its first match; otherwise a line is printed as stored. Escaping precedes colours.
"""

from __future__ import annotations

import msgspec

from fdstore.cli.colours import paint
from fdstore.text.hits import KEPT_LINE_CHARS as SHOWN_CHARS
from fdstore.text.hits import REACH_BYTES, context_line, excerpt
from fdstore.text.layout import show_controls
from fdstore.text.pattern import HitCount, LineMatch, Pattern
from fdstore.text.quantities import format_count

Span = tuple[int, int]


class JsonLines:
    r"""A `Layout` for programs: a JSON document a line, with the whole text. `column` is the 1-based
    character at which the first match begins, `hits` the number of matches of `pattern` if there are several;
    a line of context has none.

    >>> JsonLines("fd:1")(7, b"banana", (1, 2)), JsonLines("fd:1")(8, b"cherry", None)
    (b'{"fd":"fd:1","line":7,"text":"banana","column":2}\n', b'{"fd":"fd:1","line":8,"text":"cherry"}\n')
    >>> JsonLines("fd:1", Pattern("a"))(7, b"banana", (1, 2))
    b'{"fd":"fd:1","line":7,"text":"banana","column":2,"hits":3}\n'
    """

    separator = b""

    def __init__(self, fd: str, pattern: Pattern | None = None) -> None:
        self._fd = fd
        self._pattern = pattern

    def __call__(self, number: int, line: bytes, match: Span | None) -> bytes:
        found: dict[str, object] = {"fd": self._fd, "line": number, "text": _decoded(line)}
        if match is not None:
            found["column"] = 1 + len(_decoded(line[: match[0]]))
            if self._pattern is not None:
                hits = HitCount()
                self._pattern.count_hits(line, LineMatch(0, len(line), *match), hits)
                if hits.hits > 1:
                    found |= count_fields(hits)
        return msgspec.json.encode(found) + b"\n"


def count_fields(hits: HitCount) -> dict[str, object]:
    """Return the number of hits for a JSON document, and whether there are more."""
    found: dict[str, object] = {"hits": hits.hits}
    return found if hits.is_exact else found | {"hits_are_exact": False}


def _decoded(data: bytes) -> str:
    r"""Return bytes as text. \C matches one byte, possibly a part of a character."""
    return data.decode("utf-8", "backslashreplace")


class FoundLines:
    r"""A `Layout` for lines that match `pattern`, or with `inverted` for those that do not.

    >>> FoundLines(Pattern("a+"), only_matching=True)(7, b"banana", (1, 2))
    b'7:a\n7:a\n7:a\n'
    """

    def __init__(
        self,
        pattern: Pattern,
        *,
        numbered: bool = True,
        only_matching: bool = False,
        inverted: bool = False,
        coloured: bool = False,
        escaped: bool = False,
    ) -> None:
        self._pattern = pattern
        self._numbered = numbered
        self._only_matching = only_matching
        self._inverted = inverted
        self._coloured = coloured
        self._escaped = escaped
        self.separator = self._paint("--", "mark") + b"\n"

    def __call__(self, number: int, line: bytes, match: Span | None) -> bytes:
        head = b""
        if self._numbered:
            mark = "-" if match is None else ":"
            head = self._paint(str(number), "number") + self._paint(mark, "mark")
        shows_matches = match is not None and not self._inverted
        if self._only_matching:
            spans = self._pattern.spans(line) if shows_matches else []
            return b"".join(head + self._match(line[start:end]) + b"\n" for start, end in spans)
        if self._escaped and len(line) > SHOWN_CHARS:
            return head + self._cut(line, match, marked=shows_matches) + b"\n"
        spans = self._pattern.spans(line) if shows_matches and self._coloured else []
        return head + self._marked(line, spans) + b"\n"

    def _marked(self, line: bytes, spans: list[Span]) -> bytes:
        pieces, done = [], 0
        for start, end in spans:
            pieces += [self._shown(line[done:start]), self._match(line[start:end])]
            done = end
        return b"".join([*pieces, self._shown(line[done:])])

    def _cut(self, line: bytes, match: Span | None, *, marked: bool) -> bytes:
        if match is None:
            kept = context_line(line, 0, len(line), 0)
            text, left_out, spans = kept.text, (0, kept.left_out), []
        else:
            shown = excerpt(line, LineMatch(0, len(line), *match))
            text, left_out = shown.text, shown.left_out
            start = len(text[: shown.column - 1].encode("utf-8"))
            spans = [(start, start + min(match[1] - match[0], REACH_BYTES))] if marked else []
        before, after = (self._left_out(count) for count in left_out)
        return before + self._marked(text.encode("utf-8"), spans) + after

    def _left_out(self, chars: int) -> bytes:
        return self._paint(f"[{format_count(chars, 'character')} left out]", "faint") if chars else b""

    def _match(self, data: bytes) -> bytes:
        if not self._coloured:
            return self._shown(data)
        begin, _, end = paint("-", "match").partition("-")
        return begin.encode() + self._shown(data) + end.encode()

    def _shown(self, data: bytes) -> bytes:
        if not self._escaped:
            return data
        return show_controls(_decoded(data), keep="\t").encode("utf-8")

    def _paint(self, text: str, style: str) -> bytes:
        return (paint(text, style) if self._coloured else text).encode()
