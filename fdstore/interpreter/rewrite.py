"""Code as the interpreter takes it: what it lacks and has an exact equivalent for is replaced.

    asyncio.gather(*tasks, return_exceptions=True)    asyncio.gather(*_fdstore_settled(True, *tasks, *()))
    datetime.now(), .utcnow()                         the same: the local zone of programs is UTC
    asyncio.TimeoutError                              TimeoutError
    sys.exit(1)                                       exit(1)
    del d[key]                                        d.pop(key)
    from fdstore import ask                           pass
    the last expression                               _fdstore_shown((...), 1000000), which is its repr

Each replacement is within its lines, so line numbers stay. The positions are those of Python's own parser. A
Python before 3.12 does not know an f-string that holds quotes of its own kind, so there a second try reads
the code with its f-strings blanked.
"""

from __future__ import annotations

import ast
import re
import sys
import threading
import warnings
from collections.abc import Iterator

from fdstore.interpreter.prelude import HOST, NAMES

Edit = tuple[int, int, str]
"""Replace the characters from the first position to before the second."""


_parsing = threading.Lock()
"""One thread at a time: the filters of warnings belong to the process, and so does the depth of recursion
that `ast` counts in CPython 3.11, where a second thread makes it raise SystemError."""


def rewrite(code: str, max_value: int) -> tuple[str, bool]:
    """Return the code to feed, and whether its value is the repr of its last expression, None or a str.

    >>> rewrite("x = 1\\nx + 1", 100)
    ('x = 1\\n_fdstore_shown((x + 1), 100)', True)
    """
    parsed = parse(code)
    if parsed is None:
        return code, False
    tree, offsets = parsed
    edits = [edit for node in ast.walk(tree) for edit in _edits(node, code, offsets)]
    if tree.body and isinstance(last := tree.body[-1], ast.Expr):
        start, end = offsets.of(last)
        edits += [(start, start, f"{HOST}shown(("), (end, end, f"), {max_value})")]
    return _apply(code, edits), True


def parse(code: str) -> tuple[ast.Module, Offsets] | None:
    """Return the tree of the code and its positions; None if it has errors, or is too deeply nested."""
    for text in (code, blank_f_strings(code)) if sys.version_info < (3, 12) else (code,):
        try:
            with _parsing, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return ast.parse(text), Offsets(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError, SystemError):
            pass
    return None


class Offsets:
    """Turns lines and columns in bytes, as nodes have them, into positions in characters."""

    def __init__(self, code: str) -> None:
        # as Python counts lines: a form feed ends none
        self._lines = re.split("(?<=\n)|(?<=\r)(?!\n)", code)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    def of(self, node: ast.stmt | ast.expr | ast.keyword) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)

    def _at(self, line: int, column: int) -> int:
        text = self._lines[line - 1]
        if not text.isascii():
            column = len(text.encode()[:column].decode())
        return self._starts[line - 1] + column


def _edits(node: ast.AST, code: str, offsets: Offsets) -> Iterator[Edit]:
    match node:
        case ast.Call(func=ast.Name(id="gather") | ast.Attribute(attr="gather"), keywords=keywords):
            for keyword in keywords:
                if keyword.arg == "return_exceptions":
                    yield from _settled(node, keyword, code, offsets)
        case ast.Call(func=ast.Attribute(value=ast.Name(id="sys"), attr="exit") as function):
            yield (*offsets.of(function), "exit")
        case ast.Attribute(value=ast.Name(id="asyncio"), attr="TimeoutError", ctx=ast.Load()):
            yield (*offsets.of(node), "TimeoutError")
        case ast.Call(func=ast.Attribute(attr="utcnow") as function, args=[], keywords=[]):
            _, end = offsets.of(function)
            yield end - len("utcnow"), end, "now"
        case ast.ImportFrom(module="fdstore", names=names, lineno=line, end_lineno=end) if line == end:
            if all(alias.name in NAMES and alias.asname is None for alias in names):
                yield (*offsets.of(node), "pass")
        case ast.Delete(targets=[ast.Subscript(value=value, slice=index)]):
            yield from _popped(node, value, index, code, offsets)


def _settled(call: ast.Call, keyword: ast.keyword, code: str, offsets: Offsets) -> Iterator[Edit]:
    """Settle the awaitables before they are gathered: the interpreter's gather takes no keywords."""
    first, last = offsets.of(keyword.value)
    flag = code[first:last]
    if "\n" in flag:
        return
    opening = code.find("(", offsets.of(call.func)[1])
    closing = offsets.of(call)[1] - 1
    yield opening + 1, opening + 1, f"*{HOST}settled({flag}, "
    yield (*offsets.of(keyword), "*()")
    yield closing, closing, ")"


def _popped(
    statement: ast.Delete, value: ast.expr, index: ast.expr, code: str, offsets: Offsets
) -> Iterator[Edit]:
    start, end = offsets.of(statement)
    held, held_end = offsets.of(value)
    key, key_end = offsets.of(index)
    between = (code[start:held], code[held_end:key], code[key_end:end])
    # a slice has no equivalent; comments and parentheses in between are left to the interpreter's own error
    if isinstance(index, ast.Slice | ast.Tuple) or ["".join(text.split()) for text in between] != [
        "del",
        "[",
        "]",
    ]:
        return
    if "\n" not in between[0]:
        opening = code.find("[", held_end)
        yield start, held, ""
        yield opening, opening + 1, ".pop("
        yield end - 1, end, ")"


def _apply(code: str, edits: list[Edit]) -> str:
    parts, at = [], 0
    for start, end, text in sorted(edits):
        parts += [code[at:start], text]
        at = end
    return "".join([*parts, code[at:]])


_TOKEN = re.compile(r"""#[^\n]*|(?<!\w)([A-Za-z]{0,2})(\"{3}|'{3}|"|')""")


def blank_f_strings(code: str) -> str:
    """Return the code with the same positions and without what its f-strings hold.

    >>> blank_f_strings("x = f'{d['a']}' + 'b'")
    "x = '_________' + 'b'"
    """
    out, at = [], 0
    while token := _TOKEN.search(code, at):
        start, end = token.span()
        if token[2] is not None:
            end = _string_end(code, end, token[2], "f" in token[1].lower())
        text = code[start:end]
        if token[2] is not None and "f" in token[1].lower():
            text = _blank(text, len(token[1]), token[2])
        out += [code[at:start], text]
        at = end
    return "".join([*out, code[at:]])


def _blank(text: str, prefix: int, quote: str) -> str:
    if len(text) < prefix + 2 * len(quote) or not text.endswith(quote):
        return text
    inner = re.sub(r"[^\n]", "_", text[prefix + len(quote) : -len(quote)])
    if len(quote) == 1:
        inner = inner.replace("_\n", "\\\n")
    return quote + "_" * prefix + inner + quote


def _string_end(code: str, at: int, quote: str, formatted: bool) -> int:
    """Return where the string ends whose quote opened before `at`."""
    while at < len(code):
        if code.startswith(quote, at):
            return at + len(quote)
        if code[at] == "\\" or (formatted and code.startswith(("{{", "}}"), at)):
            at += 2
        elif formatted and code[at] == "{":
            at = _field_end(code, at + 1)
        else:
            at += 1
    return len(code)


def _field_end(code: str, at: int) -> int:
    """Return where the replacement field ends whose brace opened before `at`."""
    depth = 0
    while at < len(code):
        char = code[at]
        if depth == 0 and char == ":":
            return _format_end(code, at + 1)
        if depth == 0 and char == "}":
            return at + 1
        if token := _TOKEN.match(code, at):
            at = (
                token.end()
                if token[2] is None
                else _string_end(code, token.end(), token[2], "f" in token[1].lower())
            )
            continue
        depth += (char in "([{") - (char in ")]}")
        at += 1
    return len(code)


def _format_end(code: str, at: int) -> int:
    while at < len(code) and code[at] != "}":
        at = _field_end(code, at + 1) if code[at] == "{" else at + 1
    return at + 1
