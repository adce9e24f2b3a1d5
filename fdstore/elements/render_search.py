"""Render the hits of a search as `grep -n` prints them."""

from __future__ import annotations

from collections.abc import Sequence

from fdstore.elements.build import Rendered, render
from fdstore.elements.kinds import FdSearch
from fdstore.model.records import Hit, SearchResult
from fdstore.text.near_misses import NearMiss
from fdstore.text.quantities import plain_count

LINE_CHARS = 400
"""The maximum characters of one line in search results."""


LONG_LINE_CHARS = 4000
"""A line with more characters is read by parts."""

AROUND_CHARS = 2000
"""The characters around a hit in such a line that are named to be read."""


def fd_search(
    result: SearchResult,
    more: str | None = None,
    near: NearMiss | None = None,
    tools: frozenset[str] = frozenset(),
) -> Rendered:
    """Render hits as `grep -n` prints them; a line longer than `LINE_CHARS` is cut around its first match.
    `more` says where to continue if hits were left out, a last line how to continue in a very long line with
    these tools. Without a hit the body says what there is instead, if that is known."""
    search = FdSearch(
        fd=result.fd,
        pattern=result.pattern,
        matches=result.matches,
        hits=_hits(result),
        shown=result.shown,
        lines_searched=result.lines_searched,
        more=more,
    )
    notes = [_instead(result.pattern, near), _ways_on(result, tools)]
    return render(search, "\n".join([*grep_lines(result.hits), *filter(None, notes)]))


def _instead(pattern: str, near: NearMiss | None) -> str:
    if near is None:
        return ""
    if near.ignoring_case:
        return f"No match; ignore_case=true finds {near.ignoring_case}."
    return f'No "{pattern}"; the text has "{near.word}".' if near.word else ""


def _ways_on(result: SearchResult, tools: frozenset[str]) -> str:
    """Return how to continue in the first very long line; "" if there is none. The ways are selectors without
    names of tools, which a host may have changed."""
    hit = next((hit for hit in result.hits if len(hit.text) + sum(hit.left_out) > LONG_LINE_CHARS), None)
    if hit is None:
        return ""
    at = hit.line_start + hit.left_out[0] + hit.column - 1
    line_end = hit.line_start + sum(hit.left_out) + len(hit.text) - 1
    first = max(hit.line_start, at - AROUND_CHARS // 3)
    last = min(first + AROUND_CHARS - 1, line_end)
    ways = [f"read {result.fd}#C{first}-{last} around its first hit"] if "read_fd" in tools else []
    after = max(at, int(hit.chars.partition("-")[2])) + 1
    if "run_python" in tools:
        ways.append("take it apart with Python")
    elif result.total_hits > result.matches and after <= line_end:
        ways.append(f"search {result.fd}#C{after}-{line_end} for the next")
    return f"Line {hit.line} is long: {', or '.join(ways)}." if ways else ""


def _hits(result: SearchResult) -> str | None:
    if result.hits_are_exact:
        return str(result.total_hits) if result.total_hits > result.matches else None
    return f"{result.total_hits}+"


def grep_lines(hits: Sequence[Hit]) -> list[str]:
    """Return the lines as grep prints them: each once, in order, as a hit even if it is also context, with
    `--` between groups only if there is context. Lines are cut to `LINE_CHARS`."""
    context = {near.line: near for hit in hits for near in (*hit.before, *hit.after)}
    matched = {hit.line: hit for hit in hits}
    printed: list[str] = []
    previous: int | None = None
    for number in sorted(context.keys() | matched.keys()):
        if context and previous is not None and number > previous + 1:
            printed.append("--")
        if hit := matched.get(number):
            printed.append(f"{number}:{_cut(hit.text, hit.column, *hit.left_out)}")
        else:
            near = context[number]
            printed.append(f"{number}-{_cut(near.text, 1, 0, near.left_out)}")
        previous = number
    return printed


def _cut(text: str, column: int, missing_before: int, missing_after: int) -> str:
    """Cut a long line, a third of what is kept before `column`, with marks for missing parts, including those
    already missing in `text`."""
    begin = max(0, min(column - 1 - LINE_CHARS // 3, len(text) - LINE_CHARS))
    missing_before += begin
    missing_after += max(0, len(text) - begin - LINE_CHARS)
    before = f"[{plain_count(missing_before, 'character')} left out]" if missing_before else ""
    after = f"[{plain_count(missing_after, 'character')} left out]" if missing_after else ""
    return f"{before}{text[begin : begin + LINE_CHARS]}{after}"
