r"""Find one value of a JSON text by its pointer (RFC 6901), while the text passes by in pieces.

    {"results": [{"id": 7}, {"id": 8}]}     /results/1/id  ->  the characters of 8
    {"id": 7}\n{"id": 8}\n                  /1/id          ->  the same: each value of JSON lines is a record

JSON is what the standard library reads: its scanner reads the values that are passed over, as far as they fit
in `WINDOW_CHARS`. Only of longer ones each part is looked at here, with a stack in place of recursion. So
about two windows are in memory, whatever the text, and each character is read a bounded number of times. A
text of one value is read to its end: it may be wrong there, and of a key that stands twice the last counts.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Generator
from typing import NamedTuple, TypeAlias, TypeVar

from fdstore.errors import InvalidArgument, NoSuchValue, quoted

WINDOW_CHARS = 262_144
"""A value, key or number that is not longer is read in one piece."""

PATIENCE_CHARS = WINDOW_CHARS // 4
"""After a value did not fit, so many characters are read part by part before another is tried in one piece:
values that are nested deep would be tried as often as they are nested."""

MAX_DEPTH = 10_000
"""The deepest nesting of arrays and objects."""

MAX_POINTER_CHARS = 4096
SHOWN_KEYS = 12
_SHOWN_KEY_CHARS = 40

T = TypeVar("T")
Reading: TypeAlias = Generator[None, str | None, T]
"""Reads on; yields when it needs the next piece of the text, and is sent it, or None at the end."""

_SPACE = re.compile(r"[ \t\n\r]*")
_SPACE_IN_LINE = re.compile(r"[ \t\r]*")
_AFTER_VALUE = frozenset(" \t\n\r,]}")
_NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"
_SCALAR = re.compile(rf"{_NUMBER}|true|false|null|NaN|-?Infinity")
_CHARS = re.compile(r'(?:[^"\\\x00-\x1f]+|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})){0,1000}')
_PLAIN_KEY = re.compile(r'[ \t\n\r]*"([^"\\\x00-\x1f]*)"[ \t\n\r]*:[ \t\n\r]*')
_LONGEST_ESCAPE = 6
_INDEX = re.compile(r"0|[1-9][0-9]{0,15}")
_LONE_TILDE = re.compile(r"~(?![01])")
_CLOSING = {"[": "]", "{": "}"}
_KINDS = {'"': "a string", "t": "true", "f": "false", "n": "null"}
_BOM = "\ufeff"

NOT_HERE = (ValueError, RecursionError, IndexError)
"""What the scanner raises for a value that is not there as a whole, or is none."""

_scan = json.JSONDecoder(parse_int=str, parse_float=str).raw_decode  # numbers may have any number of digits


class CharSpan(NamedTuple):
    """The characters `text[start:end]`."""

    start: int
    end: int


def parse_pointer(pointer: str) -> tuple[str, ...]:
    """Return the keys and indices of a pointer. Raises `InvalidArgument`.

    >>> parse_pointer("/a~1b/0/~0"), parse_pointer("/"), parse_pointer("")
    (('a/b', '0', '~'), ('',), ())
    """
    problem = ""
    if len(pointer) > MAX_POINTER_CHARS:
        problem = f"it has more than {MAX_POINTER_CHARS} characters"
    elif pointer and not pointer.startswith("/"):
        problem = 'a pointer begins with "/"'
    elif _LONE_TILDE.search(pointer):
        problem = 'in a pointer "~0" stands for "~", and "~1" for "/"'
    elif any("\ud800" <= char <= "\udfff" for char in pointer):
        problem = "it has a lone surrogate"
    if problem:
        raise InvalidArgument("fd", f"{quoted(pointer)}: {problem}")
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:])


def pointer_to(parts: tuple[str | int, ...]) -> str:
    """Return the pointer of keys and indices.

    >>> pointer_to(("a/b", 0, "~"))
    '/a~1b/0/~0'
    """
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


class _Container:
    """An array or object on the way to the value: how many items it has so far, some of its keys."""

    def __init__(self, opening: str) -> None:
        self.opening = opening
        self.items = 0
        self.keys: list[str] = []

    def add(self, key: str) -> None:
        self.items += 1
        if self.items <= SHOWN_KEYS:
            self.keys.append(quoted(key, _SHOWN_KEY_CHARS))

    def __str__(self) -> str:
        if self.opening == "[":
            return f"an array of {self.items}"
        if not self.items:
            return "an object without keys"
        shown = ", ".join(self.keys)
        more = ", ..." if self.items > len(self.keys) else ""
        return f"an object with {shown}{more}"


class ValueFinder:
    r"""Finds the value of a pointer in a text that `feed` is given in pieces, the last one None.

    >>> finder = ValueFinder("fd:1", "/a/1")
    >>> for piece in ('{"a": [1, "', 'x"]}', None):
    ...     finder.feed(piece)
    >>> finder.span
    CharSpan(start=10, end=13)

    It is `done` when no more text is needed: after the record that holds the value. Where the text turns out
    to be JSON lines after the first one was read as a document, it `must_begin_again`, with `lines=True`.

    Raises `InvalidArgument` for what is not JSON, and `NoSuchValue`.
    """

    def __init__(self, fd: str, pointer: str, *, lines: bool = False) -> None:
        self._fd, self._pointer = fd, pointer
        self._parts = parse_pointer(pointer)
        self._lines = lines
        self._text, self._at = "", 0  # what is known of the text from `_before` on, and the place in it
        self._before = self._newlines = 0
        self._is_last = False
        self._deepest: tuple[int, object] = (0, "")  # the parts that there are, and what the value is there
        self._found: CharSpan | None = None
        self.done = self.must_begin_again = False
        self._reading = self._read()
        next(self._reading)

    @property
    def span(self) -> CharSpan:
        """The characters of the value. Raises `NoSuchValue`."""
        if self._found is not None:
            return self._found
        depth, there = self._deepest
        longest = pointer_to(self._parts[:depth])
        raise NoSuchValue(f"{self._fd}#J{self._pointer}", f"{self._fd}#J{longest}", str(there))

    def feed(self, piece: str | None) -> None:
        """Take the next piece of the text, None after the last one."""
        try:
            self._reading.send(piece)
        except StopIteration:
            self.done = True

    # --- the text

    def _more(self) -> Reading[None]:
        """Wait until there is a window of text from here on, or the end; drop what was read."""
        pieces, size = [self._text[self._at :]], len(self._text) - self._at
        self._newlines += self._text.count("\n", 0, self._at)
        self._before += self._at
        self._text, self._at = "", 0
        while size < WINDOW_CHARS and not self._is_last:
            piece = yield
            if piece is None:
                self._is_last = True
            else:
                pieces.append(piece)
                size += len(piece)
        self._text = "".join(pieces)

    @property
    def _has_more(self) -> bool:
        """Return whether `_more` would add to what is there from here on."""
        return not self._is_last and len(self._text) - self._at < WINDOW_CHARS

    @property
    def _here(self) -> int:
        return self._before + self._at

    def _look(self, space: re.Pattern[str] = _SPACE) -> str:
        """Go to the next character that is not space, and return it; "" if it is not there yet."""
        found = space.match(self._text, self._at)
        assert found is not None
        self._at = found.end()
        return self._text[self._at : self._at + 1]

    def _next_char(self, space: re.Pattern[str] = _SPACE) -> Reading[str]:
        """As `_look`, but "" only at the end of the text."""
        while not (char := self._look(space)) and not self._is_last:
            yield from self._more()
        return char

    def _refuse(self, problem: str) -> InvalidArgument:
        line = self._newlines + self._text.count("\n", 0, self._at) + 1
        place = f"line {line}, character {self._here + 1}"
        return InvalidArgument("fd", f"{self._fd} is not JSON: {problem} at {place}")

    # --- the values of the text

    def _read(self) -> Reading[None]:
        yield from self._more()
        self._at += self._text.startswith(_BOM)
        if not (yield from self._next_char()):
            raise self._refuse("there is no value")
        first, number = self._here, 0
        parts = self._parts
        wanted = int(parts[0]) if parts and _INDEX.fullmatch(parts[0]) else sys.maxsize
        while True:
            if self._lines and number == wanted:
                yield from self._search(parts[1:], 1)
                return
            if not number and not self._lines:
                yield from self._search(parts, 0)
            elif passed := self._skip_run("\n", wanted - number):
                number += passed - 1
            else:
                yield from self._skip()
            last = self._here
            if (self._look(_SPACE_IN_LINE) or (yield from self._next_char(_SPACE_IN_LINE))) not in ("\n", ""):
                raise self._refuse("more follows the value in its line")
            if not (self._look() or (yield from self._next_char())):
                break
            if not self._lines and parts[:1] == ("0",):
                self.must_begin_again = True
                return
            self._lines = True
            number += 1
        if not parts:
            self._found = CharSpan(first, last)
        elif self._lines:
            self._found, self._deepest = None, (0, f"{number + 1} records of JSON lines")

    def _search(self, parts: tuple[str, ...], depth: int) -> Reading[None]:
        """Read the value that begins here, and find the one that these parts name in it; `depth` parts lie
        before them. The last one found counts, at each depth."""
        path: list[_Container] = []
        while True:
            opening = yield from self._next_char()
            begin, self._found = self._here, None
            if len(path) == len(parts):
                yield from self._skip()
                self._found = CharSpan(begin, self._here)
            elif opening in _CLOSING:
                path.append(_Container(opening))
                self._deepest = depth + len(path) - 1, path[-1]
                self._at += 1
            else:
                yield from self._skip()
                self._deepest = depth + len(path), _KINDS.get(opening, "a number")
            while path and not (yield from self._find_in(path[-1], parts[len(path) - 1])):
                path.pop()
            if not path:
                return

    def _find_in(self, container: _Container, part: str) -> Reading[bool]:
        """Go to the next value in a container that this part names. Return False at its end."""
        is_array, closing = container.opening == "[", _CLOSING[container.opening]
        wanted = int(part) if is_array and _INDEX.fullmatch(part) else -1
        while True:
            char = self._look() or (yield from self._next_char())
            if char == closing:
                self._at += 1
                return False
            if container.items:
                self._pass_comma(char, closing)
            if is_array:
                left = wanted - container.items
                if passed := self._skip_run(",", left if left >= 0 else sys.maxsize):
                    container.items += passed
                    continue
                container.items += 1
                if not left:
                    return True
            else:
                self._skip_members(container, part)
                key = yield from self._key()
                container.add(key or "...")
                if key == part:
                    return True
            yield from self._skip()

    def _pass_comma(self, char: str, closing: str) -> None:
        if char != ",":
            raise self._refuse(f"a comma or {closing} is needed")
        self._at += 1

    def _skip_run(self, separator: str, most: int) -> int:
        """Pass over values that are there, at most so many, and the separators between them: to the separator
        behind the last one. Return how many."""
        text, at, passed = self._text, self._at, 0
        try:
            while passed < most:
                _, end = _scan(text, at + (text[at] == " "))
                if text[end] != separator:
                    break
                self._at, at, passed = end, end + 1, passed + 1
        except NOT_HERE:
            pass
        return passed

    def _skip_members(self, container: _Container, part: str) -> None:
        """Pass over members of an object that are there, each with its comma, up to this key."""
        text, at = self._text, self._at
        try:
            while (key := _PLAIN_KEY.match(text, at)) and key[1] != part:
                _, end = _scan(text, key.end())
                if text[end] != ",":
                    break
                container.add(key[1])
                at = end + 1
        except NOT_HERE:
            pass
        self._at = at

    def _skip_at_once(self) -> bool:
        """Pass over a value, if all of it and what follows it is there."""
        self._look()
        text = self._text
        try:
            _, end = _scan(text, self._at)
        except NOT_HERE:
            return False
        if text[end] not in _AFTER_VALUE if end < len(text) else not self._is_last:
            return False  # such as a number that goes on
        self._at = end
        return True

    def _skip_in_window(self) -> Reading[bool]:
        """Pass over a value, if it is not longer than a window."""
        if self._skip_at_once():
            return True
        if not self._has_more:
            return False
        yield from self._more()
        return self._skip_at_once()

    def _skip(self) -> Reading[None]:
        """Pass over a value, of any length."""
        if (yield from self._skip_in_window()):
            return
        opened: list[str] = []
        tries_again_at = self._here + PATIENCE_CHARS
        while True:
            char = self._look() or (yield from self._next_char())
            is_read = False
            if self._here >= tries_again_at:
                is_read = yield from self._skip_in_window()
                tries_again_at = self._here + PATIENCE_CHARS * (not is_read)
            if not is_read and char in _CLOSING:
                if len(opened) == MAX_DEPTH:
                    raise self._refuse(f"it is nested deeper than {MAX_DEPTH} levels")
                opened.append(char)
                self._at += 1
                char = self._look() or (yield from self._next_char())
                if char != _CLOSING[opened[-1]]:
                    if opened[-1] == "{":
                        yield from self._key()
                    continue
                opened.pop()
                self._at += 1
            elif not is_read:
                yield from self._scalar(char)
            while opened:
                char = self._look() or (yield from self._next_char())
                if char == _CLOSING[opened[-1]]:
                    opened.pop()
                    self._at += 1
                    continue
                self._pass_comma(char, _CLOSING[opened[-1]])
                if opened[-1] == "{":
                    yield from self._key()
                elif self._here >= tries_again_at and self._skip_run(",", sys.maxsize):
                    continue
                break
            else:
                return

    def _key(self) -> Reading[str | None]:
        """Pass over a key and its colon. Return it; None if it is longer than a window."""
        if (self._look() or (yield from self._next_char())) != '"':
            raise self._refuse("a key in quotes is needed")
        if plain := _PLAIN_KEY.match(self._text, self._at):
            self._at = plain.end()
            return plain[1]
        key = self._string_here()
        if key is None and self._has_more:
            yield from self._more()
            key = self._string_here()
        if key is None:
            yield from self._string()
        if (self._look() or (yield from self._next_char())) != ":":
            raise self._refuse("a colon is needed")
        self._at += 1
        return key

    def _string_here(self) -> str | None:
        """Pass over a string that is there, and return it."""
        try:
            found, self._at = _scan(self._text, self._at)
        except ValueError:
            return None
        return str(found)

    def _string(self) -> Reading[None]:
        """Pass over a string, of any length."""
        self._at += 1
        while True:
            found = _CHARS.match(self._text, self._at)
            assert found is not None
            self._at, is_further = found.end(), found.end() > self._at
            if len(self._text) - self._at < _LONGEST_ESCAPE and not self._is_last:
                yield from self._more()
            elif self._text.startswith('"', self._at):
                self._at += 1
                return
            elif self._at == len(self._text):
                raise self._refuse("it ends inside a string")
            elif not is_further:
                is_escape = self._text[self._at] == "\\"
                raise self._refuse("a wrong escape" if is_escape else "a control character inside a string")

    def _scalar(self, char: str) -> Reading[None]:
        """Pass over a string, a number or a word."""
        if char == '"':
            yield from self._string()
            return
        if not char:
            raise self._refuse("it ends before a value")
        while True:
            found = _SCALAR.match(self._text, self._at)
            end = found.end() if found else self._at
            if found and end < len(self._text) and self._text[end] in _AFTER_VALUE:
                break
            if not self._has_more:
                break
            yield from self._more()
        if found is None:
            raise self._refuse("a value is needed")
        if end == len(self._text) and not self._is_last:
            raise self._refuse(f"a number of more than {WINDOW_CHARS} digits")
        self._at = end
