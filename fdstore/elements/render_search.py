"""Render the hits of a search as `grep -n` prints them."""

from __future__ import annotations

from collections.abc import Sequence

from fdstore.elements.build import Rendered, render
from fdstore.elements.kinds import FdSearch
from fdstore.model.records import Hit, SearchResult
from fdstore.text.quantities import format_count

LINE_CHARS = 400
"""The maximum characters of one line in search results."""


def fd_search(result: SearchResult, more: str | None = None) -> Rendered:
    """Render hits as `grep -n` prints them; a line longer than `LINE_CHARS` is cut around its first match.
    `more` says where to continue if hits were left out."""
    search = FdSearch(
        fd=result.fd,
        pattern=result.pattern,
        matches=result.matches,
        hits=_hits(result),
        shown=result.shown,
        lines_searched=result.lines_searched,
        more=more,
    )
    return render(search, "\n".join(grep_lines(result.hits)))


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
    before = f"[{format_count(missing_before, 'character')} left out]" if missing_before else ""
    after = f"[{format_count(missing_after, 'character')} left out]" if missing_after else ""
    return f"{before}{text[begin : begin + LINE_CHARS]}{after}"
