r"""The tokens of a program, read in time linear in its code, and by every Python alike.

Python's own parser is not for code of a model: it takes quadratic time for some, holds all threads of the
process meanwhile, and a version of Python reads what another does not. What is done with code here needs no
tree: where brackets, strings and statements begin and end.

    server.tool(f"{name} {x!r:>{w}}", -1, 'a')   # a comment

    server.tool  (  f"  {  x  !  r  {  w  }  }  "  ,  -1  ,  'a'  )

A dotted name without spaces is one token, and so is a run of numbers and arithmetic. An f-string that has
fields is a bracket: what these hold is tokens too, its own text is none, nor is a field that is a mere name.
A line end is a token where no bracket is open; blanks, comments and joined lines are none.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache, cached_property

MAX_NESTED = 200
"""Brackets in brackets; Python takes no more either."""

_TOKEN = r"""
    [\ \t\f]+ | \\(?:\r\n|[\r\n]) | \#[^\r\n]*
    | (  (?i:[rbu]|br|rb)?
         (?: '{3}[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*'{3}
           | "{3}[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"{3}
           | '(?!'')[^'\\\r\n]*(?:\\(?:\r\n|.)[^'\\\r\n]*)*'
           | "(?!"")[^"\\\r\n]*(?:\\(?:\r\n|.)[^"\\\r\n]*)*"
         )
       | (?!(?i:[ft]|[ft]r|r[ft])['"])
         [A-Za-z_\x80-\U0010ffff][\w\x80-\U0010ffff]* (?:\.[A-Za-z_\x80-\U0010ffff][\w\x80-\U0010ffff]*)*
       | (?: \.?\d(?:[\w.]|(?<=[eE])[+-])* | [-+*/%@&|^~] )+
       | (?:>>|<<)=?|[=!<>:]=|[=<>.,:;!]
       | (?i:[ft]|[ft]r|r[ft])(?:'(?!'')[^'\\{}\r\n]*'|"(?!"")[^"\\{}\r\n]*")
      )
    | ([\r\n](?:[\ \t\f]*[\r\n])*) | ([(\[{]) | ([)\]}]) | ((?i:[ft]|[ft]r|r[ft])(?:'{3}|"{3}|['"])) | (.)
    """
"""Any character beyond ASCII may be one of a name, as those of Thai or Hindi are that `\\w` leaves out."""

_PLAIN, _LINE_END, _OPENING, _CLOSING, _F_STRING, _OTHER = range(1, 7)

_LINE_END_CHARS = re.compile(r"\r\n|[\r\n]")

COMPOUND = frozenset(
    {"if", "elif", "else", "for", "while", "try", "except", "finally", "with", "def", "class", "async"}
)
"""The first words of compound statements; `match` and `case` can be names."""

_CLOSES = {"(": ")", "[": "]", "{": "}"}
_FORMAT_BEGINS = (":", ":=")


@cache  # it takes milliseconds to compile, which a command that starts need not wait for
def _token() -> re.Pattern[str]:
    return re.compile(_TOKEN, re.VERBOSE | re.DOTALL)


def _literal(quote: str, *, is_raw: bool) -> re.Pattern[str]:
    """Return what the text of an f-string up to a field or its end matches."""
    mark = quote[0]
    text = rf"[^{{}}{mark}\\]+" if len(quote) == 3 else rf"[^{{}}{mark}\\\r\n]+"
    escape = r"\\(?:[^{}]|(?=[{}]))" if is_raw else r"\\(?:N\{[^{}\n]*\}|[^{}]|(?=[{}]))"
    inside = rf"|{mark}(?!{mark}{mark})" if len(quote) == 3 else ""
    return re.compile(rf"(?:{text}|\{{\{{|\}}\}}|\{{\w+\}}|{escape}{inside})*", re.DOTALL)


_LITERALS = {
    (quote, is_raw): _literal(quote, is_raw=is_raw)
    for quote in ("'''", '"""', "'", '"')
    for is_raw in (False, True)
}
_FORMATS = {
    quote: re.compile(
        rf"(?:[^{{}}{quote[0]}]|{quote[0]}(?!{quote[0] * 2}))*"
        if len(quote) == 3
        else rf"[^{{}}{quote}\r\n]*"
    )
    for quote in ("'''", '"""', "'", '"')
}
"""What the format of a field matches, up to a field in it or its end."""


class _FString:
    """An open f-string, and its fields that are open: one, and those in its format."""

    def __init__(self, quote: str, *, is_raw: bool) -> None:
        self.quote, self.is_raw = quote, is_raw
        self.fields: list[_Field] = []


class _Field:
    """An open field of an f-string. `in_format`: its format has begun."""

    def __init__(self, index: int) -> None:
        self.index, self.in_format = index, False


class CodeTokens:
    """The tokens of a program.

    texts, starts  of each token: its characters, and the position of the first
    inside         the index of the innermost bracket that is open around it, -1 for none
    closed_by      by the index of an opening bracket that of its closing one
    fields         by the index of the `{` of a field of an f-string that of the first token behind its value
                   and conversion: of what its format has, or its `}`
    breaks         the indices of the line ends, and of the `;` between statements
    """

    def __init__(self, code: str) -> None:
        self.code = code
        self.texts: list[str] = []
        self.starts: list[int] = []
        self.inside: list[int] = []
        self.closed_by: dict[int, int] = {}
        self.fields: dict[int, int] = {}
        self.breaks: list[int] = []

    def end(self, index: int) -> int:
        """Return the position after a token."""
        return self.starts[index] + len(self.texts[index])

    def text(self, index: int) -> str:
        """Return a token; "" for one before the first or after the last."""
        return self.texts[index] if 0 <= index < len(self.texts) else ""

    def line(self, index: int) -> int:
        """Return the number of the line in which a token begins."""
        return bisect_right(self._line_ends, self.starts[index]) + 1

    @cached_property
    def _line_ends(self) -> list[int]:
        return [match.end() for match in _LINE_END_CHARS.finditer(self.code)]

    def statements(self) -> Iterator[tuple[int, int]]:
        """Yield the index of the first token of each statement, and that after its last. The head of a
        compound statement, such as `if x:`, is one of its own."""
        begin = 0
        for index in [*self.breaks, len(self.texts)]:
            if begin < index:
                body = self._body(begin, index)
                yield begin, body
                if body < index:
                    yield body, index
            begin = index + 1

    def _body(self, begin: int, end: int) -> int:
        """Return the index of the first token after the head of a compound statement; `end` for others."""
        if self.texts[begin] in COMPOUND:
            lambdas, index = 0, begin
            while index < end:
                text = self.texts[index]
                lambdas += text == "lambda"
                if text == ":":
                    if not lambdas:
                        return index + 1
                    lambdas -= 1
                index = self.closed_by.get(index, index) + 1
        return end

    def last_statement(self) -> tuple[int, int, int]:
        """Return the index of the first token of the last line, that of its last statement, and that after
        it; the latter two are equal if there is none."""
        line = begin = last = end = 0
        is_new = True
        for index in [*self.breaks, len(self.texts)]:
            if begin < index:
                line, last, end = begin if is_new else line, begin, index
                is_new = False
            is_new = is_new or self.text(index) != ";"
            begin = index + 1
        return line, last, end

    def level(self, begin: int, end: int) -> Iterator[str]:
        """Yield the tokens from an index to before another without those in brackets."""
        index = begin
        while index < end:
            yield self.texts[index]
            index = self.closed_by.get(index, index) + 1

    def arguments(self, opening: int) -> Iterator[tuple[int, int]]:
        """Yield the index of the first token of each argument in these brackets, and that after its last."""
        closing = self.closed_by[opening]
        begin = index = opening + 1
        while index < closing:
            if self.texts[index] == ",":
                yield begin, index
                begin = index + 1
            index = self.closed_by.get(index, index) + 1
        if begin < closing:
            yield begin, closing


def tokens_of(code: str) -> CodeTokens | None:
    """Return the tokens; None for code that has none, because a string or a bracket is not closed, or that
    is nested too deeply.

    >>> tokens_of("x = f'{a.b}'  # c").texts
    ['x', '=', "f'", '{', 'a.b', '}', "'"]
    """
    reader = _Reader(code)
    return reader.tokens if reader.read() else None


class _Reader:
    """Reads the tokens of some code."""

    def __init__(self, code: str) -> None:
        self.code = code
        self.tokens = CodeTokens(code)
        self._open: list[int] = [-1]
        self._strings: list[_FString] = []

    def read(self) -> bool:
        """Read all. Return whether that was possible."""
        at, size = int(self.code.startswith("\ufeff")), len(self.code)
        while 0 <= at < size:
            string = self._strings[-1] if self._strings else None
            if string is None or (string.fields and not string.fields[-1].in_format):
                at = self._read_code(at, string)
            else:
                at = self._read_text(at, string)
        return at == size and len(self._open) == 1

    def _read_code(self, at: int, string: _FString | None) -> int:
        """Read code to its end, or to that of the field of an f-string. Return the position behind what was
        read, -1 for an error."""
        found, stack = self.tokens, self._open
        closed_by, breaks = found.closed_by, found.breaks
        add_text, add_start, add_inside = found.texts.append, found.starts.append, found.inside.append
        index, around = len(found.texts), stack[-1]
        field = string.fields[-1] if string else None
        of_field = field.index if field else -2
        for match in _token().finditer(self.code, at):
            kind = match.lastindex
            if kind is None or (kind == _LINE_END and around != -1):
                continue
            start, text = match.start(), match[kind]
            if kind == _CLOSING:
                if around == -1 or _CLOSES.get(found.texts[around]) != text:
                    return -1
                closed_by[stack.pop()] = index
                around = stack[-1]
            elif around == -1:
                if kind == _LINE_END or text == ";":
                    breaks.append(index)
            elif around == of_field and text in _FORMAT_BEGINS:
                assert field is not None
                field.in_format = True
                found.fields[field.index] = index
                return start + 1
            add_text(text)
            add_start(start)
            add_inside(around)
            if kind >= _OPENING:
                if kind == _CLOSING:
                    if string is not None and of_field is not None and index == closed_by.get(of_field):
                        string.fields.pop()
                        found.fields[of_field] = index
                        return start + 1
                elif kind == _OTHER or len(stack) > MAX_NESTED:
                    return -1
                else:
                    stack.append(index)
                    around = index
                    if kind == _F_STRING:
                        self._strings.append(_FString(text.lstrip("fFtTrR"), is_raw="r" in text.lower()))
                        return match.end()
            index += 1
        return len(self.code)

    def _add(self, text: str, start: int) -> None:
        found = self.tokens
        found.texts.append(text)
        found.starts.append(start)
        found.inside.append(self._open[-1])

    def _end(self, text: str, start: int) -> None:
        self.tokens.closed_by[self._open.pop()] = len(self.tokens.texts)
        self._add(text, start)

    def _read_text(self, at: int, string: _FString) -> int:
        """Read the text of an f-string or the format of a field of it, as `_read_code` reads code."""
        in_format = bool(string.fields)
        pattern = _FORMATS[string.quote] if in_format else _LITERALS[string.quote, string.is_raw]
        match = pattern.match(self.code, at)
        assert match is not None
        at = match.end()
        if self.code.startswith("{", at) and len(self._open) <= MAX_NESTED:
            index = len(self.tokens.texts)
            self._add("{", at)
            self._open.append(index)
            string.fields.append(_Field(index))
            return at + 1
        if in_format and self.code.startswith("}", at):
            self._end("}", at)
            string.fields.pop()
            return at + 1
        if not in_format and self.code.startswith(string.quote, at):
            self._end(string.quote, at)
            self._strings.pop()
            return at + len(string.quote)
        return -1
