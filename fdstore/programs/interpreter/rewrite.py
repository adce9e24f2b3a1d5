"""Code as the interpreter takes it: what it lacks and has an exact equivalent for is replaced.

    asyncio.gather(*tasks, return_exceptions=True)    asyncio.gather(*_fdstore_settled(True, *tasks, *()))
    datetime.now(), .utcnow()                         the same: the local zone of programs is UTC
    asyncio.TimeoutError                              TimeoutError
    sys.exit(1)                                       exit(1)
    del d[key]                                        d.pop(key)
    from fdstore import ask                           pass
    the last expression                               _fdstore_shown((...), 1000000), which is its repr

Each replacement is within its lines, so line numbers stay. It goes by the tokens of the code: what is not
written as above is left, and so is code that has none, of which the interpreter says what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator

from fdstore.programs.interpreter.code_tokens import COMPOUND, CodeTokens, tokens_of
from fdstore.programs.interpreter.prelude import HOST, NAMES

Edit = tuple[int, int, str]
"""Replace the characters from the first position to before the second."""

_NO_EXPRESSIONS = frozenset(
    {"assert", "break", "continue", "del", "from", "global", "import", "nonlocal", "pass", "raise", "return"}
)
"""The beginnings of simple statements, beside those that assign."""


def rewrite(code: str, max_value: int) -> tuple[str, bool]:
    """Return the code to feed, and whether its value is the repr of its last expression, None or a str.

    >>> rewrite("x = 1\\nx + 1", 100)
    ('x = 1\\n_fdstore_shown((x + 1), 100)', True)
    """
    tokens = tokens_of(code)
    if tokens is None:
        return code, False
    edits = [*_in_expressions(tokens), *_in_statements(tokens)]
    if (last := _last_expression(tokens)) is not None:
        start, end = tokens.starts[last[0]], tokens.end(last[1] - 1)
        edits += [(start, start, f"{HOST}shown(("), (end, end, f"), {max_value})")]
    return _apply(code, edits), last is not None


def _in_expressions(tokens: CodeTokens) -> Iterator[Edit]:
    texts, starts = tokens.texts, tokens.starts
    kept_until = 0
    for index, text in enumerate(texts):
        if index < kept_until or not text.endswith(_REPLACED):
            continue
        after, before = tokens.text(index + 1), tokens.text(index - 1)
        if text == "return_exceptions" and after == "=" and before in ("(", ","):
            opening = tokens.inside[index]
            if _opens_call(tokens, opening) and tokens.text(opening - 1).rpartition(".")[2] == "gather":
                # the flag is evaluated where it comes first, as it stands
                kept_until = _end_of_argument(tokens, index, opening)
                yield from _settled(tokens, index, kept_until, opening)
        elif text == "asyncio.TimeoutError" and after != "=" and before != ".":
            yield starts[index], tokens.end(index), "TimeoutError"
        elif text == "sys.exit" and after == "(" and before != ".":
            yield starts[index], tokens.end(index), "exit"
        elif (
            text.rpartition(".")[2] == "utcnow"
            and ("." in text or before == ".")
            and tokens.closed_by.get(index + 1) == index + 2
        ):
            yield tokens.end(index) - len("utcnow"), tokens.end(index), "now"


_REPLACED = ("return_exceptions", "asyncio.TimeoutError", "sys.exit", "utcnow")


def _opens_call(tokens: CodeTokens, opening: int) -> bool:
    return tokens.text(opening) == "(" and tokens.text(opening - 2) != "def"


def _end_of_argument(tokens: CodeTokens, index: int, opening: int) -> int:
    """Return the index after the last token of the argument that begins at `index` in these brackets."""
    closing = tokens.closed_by[opening]
    while index < closing and tokens.texts[index] != ",":
        index = tokens.closed_by.get(index, index) + 1
    return index


def _settled(tokens: CodeTokens, keyword: int, end: int, opening: int) -> Iterator[Edit]:
    """Settle the awaitables before they are gathered: the interpreter's gather takes no keywords."""
    if end < keyword + 3:
        return
    first, last = tokens.starts[keyword + 2], tokens.end(end - 1)
    flag = tokens.code[first:last]
    if "\n" in flag or "\r" in flag or "#" in flag:
        return
    begin, closing = tokens.end(opening), tokens.starts[tokens.closed_by[opening]]
    yield begin, begin, f"*{HOST}settled({flag}, "
    yield tokens.starts[keyword], last, "*()"
    yield closing, closing, ")"


def _in_statements(tokens: CodeTokens) -> Iterator[Edit]:
    for begin, end in tokens.statements():
        if tokens.texts[begin] == "del":
            yield from _popped(tokens, begin, end)
        elif tokens.texts[begin] == "from":
            yield from _imported(tokens, begin, end)


def _imported(tokens: CodeTokens, begin: int, end: int) -> Iterator[Edit]:
    start, last = tokens.starts[begin], tokens.end(end - 1)
    names = [text for text in tokens.texts[begin + 3 : end] if text not in ("(", ",", ")")]
    is_ours = tokens.texts[begin + 1 : begin + 3] == ["fdstore", "import"] and {*names} <= {*NAMES}
    if is_ours and names and len(tokens.code[start:last].splitlines()) == 1:
        yield start, last, "pass"


def _popped(tokens: CodeTokens, begin: int, end: int) -> Iterator[Edit]:
    """Pop an item from a dict or a list. A slice and several targets have no equivalent."""
    texts, starts, closing = tokens.texts, tokens.starts, end - 1
    opening = tokens.inside[closing - 1] if texts[closing] == "]" else -1
    if opening < begin + 2 or tokens.closed_by[opening] != closing or texts[opening + 1] == "*":
        return
    if {",", ":"}.intersection(tokens.level(opening + 1, closing)) or "," in tokens.level(begin, opening):
        return
    between = tokens.code[starts[begin] : starts[begin + 1]]
    if len(between.splitlines()) == 1:
        yield starts[begin], starts[begin + 1], ""
        yield starts[opening], starts[opening] + 1, ".pop("
        yield starts[closing], starts[closing] + 1, ")"


def _last_expression(tokens: CodeTokens) -> tuple[int, int] | None:
    """Return the index of the first token of the last statement, and that after its last, if it is an
    expression and in no block."""
    line, begin, end = tokens.last_statement()
    if begin == end or tokens.texts[begin] in _NO_EXPRESSIONS or tokens.texts[line].startswith("@"):
        return None
    start = tokens.starts[line]
    is_indented = start > 0 and tokens.code[start - 1] not in "\r\n\ufeff"
    if is_indented or tokens.texts[line] in COMPOUND:
        return None
    lambdas = 0
    for text in tokens.level(begin, end):
        lambdas += text == "lambda"
        if text == ":" and lambdas:
            lambdas -= 1
        elif text in _ASSIGNS and not lambdas:
            return None
    return begin, end


_ASSIGNS = frozenset({"=", ">>=", "<<=", ":", ":=", "for"})
"""What an expression has in brackets only: it would become one in those that are put around it."""


def _apply(code: str, edits: list[Edit]) -> str:
    parts, at = [], 0
    for start, end, text in sorted(edits):
        parts += [code[at:start], text]
        at = end
    return "".join([*parts, code[at:]])
