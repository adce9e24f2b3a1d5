r"""Replace what patterns match by "[redacted]", in texts and in records that hold texts. Pure.

Patterns are those of searches (`text.pattern`): RE2, whose time is linear, applied to single lines. A match
is found in a line as it stands, and as it reads once its JSON escapes are undone, up to three times: a tool's
arguments may hold JSON that holds JSON, in which `p"w` stands as `p\"w`.

    key = "abc"        as it stands
    {\"key\": \"a\\u0062c\"}    undone once, twice

What replaces a match can make another one possible (`\bword` once its neighbour is gone), so a line is
searched until no match is left but those within "[redacted]" itself; one that does not come to rest is
replaced as a whole. Matches that touch are one place.

Texts are redacted whole and cut afterwards: the second half of a secret matches no pattern. What was cut
before, such as a page in a conversation, is searched for pieces of the matches that were learned from whole
texts (`cut_matches`).
"""

from __future__ import annotations

import json
import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple, TypeVar

import msgspec

from fdstore.text.cut_matches import CutMatches
from fdstore.text.pattern import Pattern
from fdstore.text.surrogates import join_surrogates

T = TypeVar("T")

MARK = "[redacted]"

UNDONE = 3
"""Times that JSON escapes are undone."""

ROUNDS = 10
"""Searches of a line until no match is left, at most."""

PAIR_CHARS = 10_000
"""Characters of a value that are looked at for a match that begins in its key."""

_MARKS = re.compile(rf"(?:{re.escape(MARK)})+")
_ESCAPE = re.compile(r'\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt]))')
_SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
BETWEEN = (":", ": ", "=", " ")
"""The text between a key and its value, however they are written."""

_LONE = re.compile("[\ud800-\udfff]")


class Spans(NamedTuple):
    """Parts of a text, in order and apart from each other, as offsets of characters."""

    parts: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, parts: Iterable[tuple[int, int]]) -> Spans:
        """Join the parts that overlap or touch.

        >>> Spans.of([(5, 7), (0, 2), (2, 3)])
        Spans(parts=((0, 3), (5, 7)))
        """
        joined: list[tuple[int, int]] = []
        for start, end in sorted(parts):
            if joined and start <= joined[-1][1]:
                joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
            else:
                joined.append((start, end))
        return cls(tuple(joined))


class Redactor:
    """Redacts texts by some patterns, and counts the places. Raises `InvalidArgument` for an invalid pattern.

    >>> redactor = Redactor([r"sk-\\w+"])
    >>> redactor.text("curl -H 'Key: sk-1234' x"), redactor.places
    ("curl -H 'Key: [redacted]' x", 1)
    """

    def __init__(self, patterns: Sequence[str] = ()) -> None:
        self._patterns = [Pattern(each) for each in patterns]
        self._cut = CutMatches()
        self.places = 0

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def learn(self, text: str) -> None:
        """Learn the matches in a text, of whole lines, whose pieces are redacted from then on. Raises
        `InvalidArgument` if there are too many.

        >>> redactor = Redactor([r"sk-\\w+"])
        >>> redactor.learn("Key: sk-4f9a77be")
        >>> redactor.text("9a77be is the rest of it")
        '[redacted] is the rest of it'
        """
        for view in _views(text):
            if self._matches_lines(view):
                for line in view.text.split("\n"):
                    for start, end in self._spans(line):
                        self._cut.learn(line[start:end])

    def matches(self, text: str) -> bool:
        """Return whether anything in a text is to be redacted."""
        before = self.places
        found = self._may_match(text) and self._redacted(text)[1] > 0
        self.places = before
        return found

    def text(self, text: str) -> str:
        """Return a text without its matches, and count them."""
        return self.cut(text, len(text) * len(MARK))[0]

    def cut(self, text: str, most: int) -> tuple[str, int]:
        """Return the first `most` characters of a text without its matches, and the length of the whole, as
        it is then. The places in what is returned are counted.

        >>> Redactor(["b+"]).cut("abbc" * 3, 12)
        ('a[redacted]c', 36)
        """
        if not self._may_match(text):
            return text[:most], len(text)
        redacted, _ = self._redacted(text, most)
        return redacted[:most], len(redacted)

    def value(self, value: Any) -> Any:
        """Return a JSON value without its matches: in keys, in texts and numbers, and in pairs of a key and a
        value as JSON writes them. A list or an object within becomes its JSON, which is redacted, too.

        >>> Redactor(['"pin": *[0-9]+', "hunter."]).value({"pin": 1234, "login": {"password": "hunter2"}})
        {'pin': '[redacted]', 'login': '{"password":"[redacted]"}'}
        """
        if not self:
            return value
        value = self._inner(value)
        if not isinstance(value, dict):
            return self._as_text(value) if isinstance(value, list) else value
        return {
            name: self._as_text(each) if isinstance(each, dict | list) else each
            for name, each in value.items()
        }

    def record(self, record: T, *, keep: frozenset[str] = frozenset()) -> T:
        """Return a record with each text in it redacted, in all its fields and the records in them, except
        the fields named in `keep`: words of fdstore itself.

        >>> from fdstore.model.records import Unreadable
        >>> Redactor(["key"]).record(Unreadable(what="my key", problem="no key"), keep=frozenset({"problem"}))
        Unreadable(what='my [redacted]', problem='no key')
        """
        return record if not self else self._record(record, keep)

    def _record(self, value: Any, keep: frozenset[str]) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, msgspec.Struct):
            fields = {name: getattr(value, name) for name in value.__struct_fields__ if name not in keep}
            changed = {name: self._record(each, keep) for name, each in fields.items()}
            return msgspec.structs.replace(value, **changed)
        if isinstance(value, tuple | list):
            return type(value)(self._record(each, keep) for each in value)
        if isinstance(value, Mapping):
            return {self._record(name, keep): self._record(each, keep) for name, each in value.items()}
        return value

    def _inner(self, value: Any) -> Any:
        """Redact a JSON value inside out."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._inner(each) for each in value]
        if isinstance(value, dict):
            pairs: dict[str, Any] = {}
            for key, each in value.items():
                name, shown = self._pair(str(key), each)
                while name in pairs:  # two keys of which nothing else is left
                    name += MARK
                pairs[name] = shown
            return pairs
        if self.matches(_json(value)):
            self.places += 1
            return MARK
        return value

    def _pair(self, name: str, value: Any) -> tuple[str, Any]:
        """Redact a key and its value, also where a pattern matches them together."""
        name, value = self.text(name), self._inner(value)
        if self._matches_pair(name, value):
            self.places += 1
            return (MARK, MARK) if self._matches_pair(name, MARK) else (name, MARK)
        return name, value

    def _matches_pair(self, name: str, value: Any) -> bool:
        written = _json(value)[:PAIR_CHARS]
        bare = value[:PAIR_CHARS] if isinstance(value, str) else written
        return any(
            self._stands_in(f"{_json(name)}{between}{written}") or self._stands_in(f"{name}{between}{bare}")
            for between in BETWEEN
        )

    def _as_text(self, value: Any) -> str:
        return self.text(_json(value))

    def _may_match(self, text: str) -> bool:
        """Return quickly whether a text may have a match, for the most texts, which have none."""
        if not self._patterns or not text:
            return False
        return bool(self._cut) or any(map(self._matches_lines, _views(text)))

    def _matches_lines(self, view: _View) -> bool:
        data = f"{view.text}\n".encode()
        return any(pattern.next(data, 0, len(data)) for pattern in self._patterns)

    def _stands_in(self, text: str) -> bool:
        """Return whether a text has a match as it stands, with its JSON escapes."""
        view = next(_views(text))
        if not self._matches_lines(view):
            return False
        for line in view.text.split("\n"):
            marked = _Marked.of(line, _given_marks(line))
            if any(not marked.holds(*span) for span in self._spans(marked.text)):
                return True
        return False

    def _redacted(self, text: str, most: int = 0) -> tuple[str, int]:
        """Return a text without its matches, and their number; count those before the offset `most`."""
        lines, at, found = [], 0, 0
        for line in text.split("\n"):
            shown, starts = self._line(line)
            lines.append(shown)
            found += len(starts)
            self.places += sum(at + start < most for start in starts)
            at += len(shown) + 1
        return "\n".join(lines), found

    def _line(self, line: str) -> tuple[str, list[int]]:
        """Return a line without its matches, and where it has "[redacted]" instead."""
        spans = _given_marks(line)
        for _ in range(ROUNDS):
            marked = _Marked.of(line, spans)
            new = [
                (marked.origin(start, at_end=False), marked.origin(end, at_end=True))
                for start, end in self._found(marked.text)
                if not marked.holds(start, end)
            ]
            if not new:
                given = {start for start, end in spans.parts if _MARKS.fullmatch(line, start, end)}
                return marked.text, [
                    at for at, (start, _) in zip(marked.at, spans.parts, strict=True) if start not in given
                ]
            spans = Spans.of([*spans.parts, *new])
        return MARK, [0]

    def _found(self, line: str) -> Iterator[tuple[int, int]]:
        """Yield the matches in a line, as offsets of characters, however it is read."""
        for view in _views(line):
            at = 0
            for piece in view.text.split("\n"):
                for start, end in chain(self._spans(piece), self._cut.pieces(piece)):
                    yield view.starts[at + start], view.starts[at + end]
                at += len(piece) + 1

    def _spans(self, line: str) -> Iterator[tuple[int, int]]:
        data = line.encode()
        for pattern in self._patterns:
            chars = at = 0
            for start, end in pattern.spans(data):
                while start and data[start] & 0xC0 == 0x80:  # `\\B` and `\\C` match within a character
                    start -= 1
                while end < len(data) and data[end] & 0xC0 == 0x80:
                    end += 1
                if start < at:  # in the character with which the match before ends
                    chars, at = 0, 0
                chars += len(data[at:start].decode())
                first = chars
                chars += len(data[start:end].decode())
                at = end
                yield first, chars


class _View(NamedTuple):
    """A text as it is searched; `starts` is where each of its characters, and its end, is in the text."""

    text: str
    starts: Sequence[int]


def _views(text: str) -> Iterator[_View]:
    """Yield a text as it stands, and with its JSON escapes undone."""
    # a lone surrogate has no UTF-8, and no pattern matches the bytes of one
    view = _View(_LONE.sub("\ufffd", text), range(len(text) + 1))
    yield view
    for _ in range(UNDONE):
        if "\\" not in view.text or not _ESCAPE.search(view.text):
            return
        view = _undone(view)
        yield view


def _undone(view: _View) -> _View:
    pieces: list[str] = []
    starts = array("L")
    at, high = 0, ""
    for escape in _ESCAPE.finditer(view.text):
        if escape.start() > at:
            pieces.append(view.text[at : escape.start()])
            starts.extend(view.starts[at : escape.start()])
            high = ""
        char = chr(int(escape[1], 16)) if escape[1] else _SHORT.get(escape[2], escape[2])
        if high and "\udc00" <= char <= "\udfff":  # two escapes are one character
            pieces[-1], high = join_surrogates(high + char), ""
        else:
            pieces.append(char)
            starts.append(view.starts[escape.start()])
            high = char if "\ud800" <= char <= "\udbff" else ""
        at = escape.end()
    pieces.append(view.text[at:])
    starts.extend(view.starts[at:])
    return _View(_LONE.sub("\ufffd", "".join(pieces)), starts)


def _given_marks(line: str) -> Spans:
    """Return where a line says "[redacted]" already."""
    return Spans.of(hit.span() for hit in _MARKS.finditer(line))


class _Marked(NamedTuple):
    """A line with a mark in place of each of some spans; `at` is where each mark begins."""

    text: str
    at: list[int]
    spans: Spans

    @classmethod
    def of(cls, line: str, spans: Spans) -> _Marked:
        pieces: list[str] = []
        at: list[int] = []
        end = length = 0
        for start, following in spans.parts:
            pieces += [line[end:start], MARK]
            length += start - end
            at.append(length)
            length += len(MARK)
            end = following
        return cls("".join([*pieces, line[end:]]), at, spans)

    def holds(self, start: int, end: int) -> bool:
        """Return whether a part of the text is within one mark."""
        number = bisect_right(self.at, start) - 1
        return number >= 0 and end <= self.at[number] + len(MARK)

    def origin(self, offset: int, *, at_end: bool) -> int:
        """Return where an offset is in the line itself: within a mark, the start or the end of its span."""
        number = (bisect_left if at_end else bisect_right)(self.at, offset) - 1
        if number < 0:
            return offset
        start, end = self.spans.parts[number]
        past = offset - self.at[number] - len(MARK)
        return past + end if past >= 0 else end if at_end else start


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
