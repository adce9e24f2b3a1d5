"""Code as the interpreter takes it: what it lacks and has an exact equivalent for is replaced.

    asyncio.gather(*tasks, return_exceptions=True)    asyncio.gather(*_fdstore_settled(True, *tasks, *()))
    datetime.now(), .utcnow()                         the same: the local zone of programs is UTC
    asyncio.TimeoutError                              TimeoutError
    sys.exit(1)                                       exit(1)
    del d[key]                                        d.pop(key)
    from fdstore import ask                           pass
    for line in log                                   for line in _fdstore_lines((log))
    x in log                                          x in _fdstore_whole((log))
    log[a:b]                                          _fdstore_cut(log, a, b, None)
    f"{x in log=}"                                    f"{'x in log='}{x in _fdstore_whole((log))!r}"
    the last expression                               _fdstore_shown((...), 1000000), which is its repr

Special methods of a class, as `in` and slices call them, cannot wait for the host, so a `Text` needs the
three before the last; anything else is what it was. Each replacement is within its lines, so line numbers
stay. It goes by the tokens of the code: what is not written as above is left, and so is code that has none,
of which the interpreter says what is wrong.
"""

from __future__ import annotations

import keyword
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from fdstore.programs.interpreter.code_tokens import COMPOUND, CodeTokens, tokens_of
from fdstore.programs.interpreter.prelude import HOST, NAMES

Edit = tuple[int, int, str, int]
"""Replace the characters from the first position to before the second. The rank orders edits that begin at
one position, see `_around`."""

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
    last = _last_expression(tokens)
    shown = _around(tokens, *last, f"{HOST}shown((", f"), {max_value})") if last else ()
    edits = [*_in_expressions(tokens), *_in_statements(tokens), *_over_texts(tokens)]
    edits += _as_written(tokens, sorted(start for start, *_ in edits))
    return _apply(code, [*shown, *edits]), last is not None


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
            yield starts[index], tokens.end(index), "TimeoutError", 0
        elif text == "sys.exit" and after == "(" and before != ".":
            yield starts[index], tokens.end(index), "exit", 0
        elif (
            text.rpartition(".")[2] == "utcnow"
            and ("." in text or before == ".")
            and tokens.closed_by.get(index + 1) == index + 2
        ):
            yield tokens.end(index) - len("utcnow"), tokens.end(index), "now", 0


_REPLACED = ("return_exceptions", "asyncio.TimeoutError", "sys.exit", "utcnow")


def _opens_call(tokens: CodeTokens, opening: int) -> bool:
    return tokens.text(opening) == "(" and tokens.text(opening - 2) != "def"


def _end_of_argument(tokens: CodeTokens, index: int, opening: int) -> int:
    """Return the index after the last token of the argument that begins at `index` in these brackets."""
    closing = tokens.closed_by[opening]
    while index < closing and tokens.texts[index] != ",":
        index = tokens.closed_by.get(index, index) + 1
    return index


def _settled(tokens: CodeTokens, flag_at: int, end: int, opening: int) -> Iterator[Edit]:
    """Settle the awaitables before they are gathered: the interpreter's gather takes no keywords."""
    if end < flag_at + 3:
        return
    first, last = tokens.starts[flag_at + 2], tokens.end(end - 1)
    flag = tokens.code[first:last]
    if "\n" in flag or "\r" in flag or "#" in flag:
        return
    begin, closing = tokens.end(opening), tokens.starts[tokens.closed_by[opening]]
    yield begin, begin, f"*{HOST}settled({flag}, ", -closing
    yield tokens.starts[flag_at], last, "*()", 0
    yield closing, closing, ")", -_MOST - begin


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
        yield start, last, "pass", 0


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
        yield starts[begin], starts[begin + 1], "", 0
        yield starts[opening], starts[opening] + 1, ".pop(", 0
        yield starts[closing], starts[closing] + 1, ")", 0


def _over_texts(tokens: CodeTokens) -> Iterator[Edit]:
    """Read a text before it is iterated, searched with `in`, or cut."""
    texts, breaks = tokens.texts, {*tokens.breaks}
    targets = Counter[int]()
    primaries, assigned_until = _primaries(tokens), _assigned_until(tokens)
    for index, text in enumerate(texts):
        around = tokens.inside[index]
        if text == "for":
            targets[around] += 1
        elif text == "in":
            is_loop = targets[around] > 0
            targets[around] -= is_loop
            begin, end = index + 1, _end_of_operand(tokens, index, breaks, is_loop=is_loop)
            if is_loop and texts[begin : begin + 2] == ["enumerate", "("]:
                begin, end = next(tokens.arguments(begin + 1), (begin, begin))
            if begin < end and not _is_no_text(tokens, begin, end):
                read = "lines" if is_loop else "whole"
                yield from _around(tokens, begin, end, f"{HOST}{read}((", "))")
        elif text == "[" and not targets[around] and index > assigned_until[index]:
            yield from _cut(tokens, index, primaries[index - 1] if index else None)


_ENDS_LOOP = frozenset({":", "if", "for", "async", ";"})
_ENDS_OPERAND = _ENDS_LOOP | {
    *("else", "and", "or", "not", "in", "is", "as", ",", "!", "=", ":="),
    *("==", "!=", "<", ">", "<=", ">="),
}
"""What an expression behind `in` ends before, outside of brackets."""


def _end_of_operand(tokens: CodeTokens, index: int, breaks: set[int], *, is_loop: bool) -> int:
    """Return the index after the last token of what stands behind the `in` at `index`."""
    around = tokens.inside[index]
    stop = len(tokens.texts) if around == -1 else tokens.fields.get(around, tokens.closed_by[around])
    ends = _ENDS_LOOP if is_loop else _ENDS_OPERAND
    index += 1
    while index < stop and index not in breaks and tokens.texts[index] not in ends:
        index = tokens.closed_by.get(index, index) + 1
    return index


def _is_no_text(tokens: CodeTokens, begin: int, end: int) -> bool:
    """Return whether an operand is a str, or a list, a dict or a set in brackets."""
    first = tokens.texts[begin]
    is_bracketed = first in "[{" and tokens.closed_by.get(begin) == end - 1
    return is_bracketed or first[-1] in "'\"" or first == "lambda"


def _assigned_until(tokens: CodeTokens) -> list[int]:
    """Return for each token the index of the last assignment in its statement, outside of brackets: what
    stands before that is assigned to. That of a `del` is its end."""
    found = [-1] * len(tokens.texts)
    for begin, end in tokens.statements():
        last, index = -1, begin
        while index < end:
            last = index if tokens.texts[index] in ("=", ">>=", "<<=") else last
            index = tokens.closed_by.get(index, index) + 1
        found[begin:end] = [end if tokens.texts[begin] == "del" else last] * (end - begin)
    return found


def _primaries(tokens: CodeTokens) -> list[int | None]:
    """Return for each token where the name, call or subscript begins that ends with it; None if none does, as
    with a str or a list in brackets."""
    texts = tokens.texts
    found: list[int | None] = [None] * len(texts)
    opened_by = {closing: opening for opening, closing in tokens.closed_by.items()}
    for index, text in enumerate(texts):
        if text in (")", "]"):
            opening = opened_by[index]
            before = found[opening - 1] if opening else None
            found[index] = opening if before is None and text == ")" else before
        elif text.replace(".", "").isidentifier() and text not in _KEYWORDS:
            is_attribute = index > 1 and texts[index - 1] == "."
            found[index] = found[index - 2] if is_attribute else index
    return found


_KEYWORDS = frozenset(keyword.kwlist) - {"None", "True", "False"}


def _cut(tokens: CodeTokens, opening: int, begin: int | None) -> Iterator[Edit]:
    """Cut what begins at `begin` by a function, if these brackets have a slice of it."""
    texts, closing = tokens.texts, tokens.closed_by[opening]
    colons, index = [], opening + 1
    while index < closing:
        if texts[index] in (",", "lambda", ":="):
            return
        if texts[index] == ":":
            colons.append(index)
        index = tokens.closed_by.get(index, index) + 1
    is_assigned = tokens.text(closing + 1) == "=" and tokens.inside[opening] not in tokens.fields
    if begin is None or not 1 <= len(colons) <= 2 or is_assigned:
        return
    first = tokens.starts[begin]
    yield first, first, f"{HOST}cut(", -tokens.end(closing)
    for at, following in pairwise([opening, *colons, closing]):
        yield tokens.starts[at], tokens.end(at), ", None" if following == at + 1 else ", ", 0
    yield tokens.starts[closing], tokens.end(closing), ", None)" if len(colons) == 1 else ")", 0


def _as_written(tokens: CodeTokens, edited: list[int]) -> Iterator[Edit]:
    """Show the code of a field such as `{x in log=}` as it was written, if it is edited: `edited` are the
    positions of all edits."""
    code = tokens.code
    for field, end in tokens.fields.items():
        begin, index = tokens.end(field), field + 1
        while index < end and tokens.texts[index] != "=":
            index = tokens.closed_by.get(index, index) + 1
        if index >= end:
            continue
        equals = tokens.starts[index]
        if bisect_left(edited, begin) < bisect_right(edited, equals):
            after = _blanks(code, tokens.end(index))
            yield begin - 1, begin - 1, f"{{{code[begin:after]!r}}}", 0
            yield equals, after, "" if code[after] in ":!" else "!r", 0


def _blanks(code: str, at: int) -> int:
    """Return the position behind blanks and line ends."""
    while code[at : at + 1] in _BLANKS:
        at += 1
    return at


_BLANKS = frozenset(" \t\f\r\n")


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


def _around(tokens: CodeTokens, begin: int, end: int, opening: str, closing: str) -> Iterator[Edit]:
    """Put something around the tokens from an index to before another. What begins at one position is opened
    from the outside in, and what ends there is closed before that, from the inside out."""
    first, last = tokens.starts[begin], tokens.end(end - 1)
    yield first, first, opening, -last
    yield last, last, closing, -_MOST - first


_MOST = 1 << 40
"""More than any position."""


def _apply(code: str, edits: list[Edit]) -> str:
    parts, at = [], 0
    for start, end, text, _ in sorted(edits, key=lambda edit: (edit[0], edit[3])):
        if start >= at:  # else it is in what was replaced
            parts += [code[at:start], text]
            at = end
    return "".join([*parts, code[at:]])
