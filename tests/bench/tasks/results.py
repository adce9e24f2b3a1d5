"""The measured results, and the bars that they must hold.

    fdstore is right in each task
    focused    at most 1.1 of the tokens of the best other way that is right
    short      at most 2.1 of them: the tools weigh as much as the text, and `whole_chars` is 0
    whole      at most 1.3 of them: the text is announced, and then read
    large      at most 0.2 of the tokens of everything inline

All bars are for the tokens without and with a prompt cache.
"""

from __future__ import annotations

from collections.abc import Iterable

from fdstore.records import Record
from tests.bench.tasks.hosts import COLUMNS, Column
from tests.bench.tasks.task import Kind

LIMITS: dict[Kind, float] = {"focused": 1.1, "short": 2.1, "whole": 1.3, "large": 0.2}

HEADINGS: dict[Column, str] = {
    "inline": "all inline",
    "codex": "as Codex",
    "claude": "as Claude Code",
    "fdstore": "fdstore",
}


class Result(Record, frozen=True, kw_only=True):
    """One task in one column. `cached_tokens` are those paid for with a prompt cache; `why` says why it
    cannot be right, "" if it is."""

    task: str
    kind: Kind
    column: Column
    tokens: int
    cached_tokens: int
    turns: int
    is_right: bool
    why: str


class Verdict(Record, frozen=True, kw_only=True):
    """A task in all columns: the tokens of fdstore divided by those that its bar names (None: nothing is
    right to compare with), without and with a prompt cache."""

    task: str
    kind: Kind
    results: tuple[Result, ...]
    ratio: float | None
    cached_ratio: float | None
    limit: float
    ok: bool


def judge(results: Iterable[Result]) -> Verdict:
    """Return the verdict on the results of one task in all columns."""
    of = {result.column: result for result in results}
    ours = of["fdstore"]
    if ours.kind == "large":
        others = [of["inline"]]
    else:
        others = [each for each in of.values() if each is not ours and each.is_right]
    ratio = cached = None
    if others:
        ratio = ours.tokens / min(each.tokens for each in others)
        cached = ours.cached_tokens / min(each.cached_tokens for each in others)
    limit = LIMITS[ours.kind]
    holds = all(each is None or each <= limit for each in (ratio, cached))
    return Verdict(
        task=ours.task,
        kind=ours.kind,
        results=tuple(of[column] for column in COLUMNS),
        ratio=ratio,
        cached_ratio=cached,
        limit=limit,
        ok=ours.is_right and holds,
    )


HEADER = ["TASK", "RESULTS", "TOKENS", "CACHED", "TURNS", "ANSWER", "RATIO", "BAR", ""]
RIGHT = ["TOKENS", "CACHED", "TURNS"]


def rows(verdicts: Iterable[Verdict]) -> list[list[str]]:
    """Return the cells of a table, a row for each task in each column."""
    cells = []
    for verdict in verdicts:
        for result in verdict.results:
            is_ours = result.column == "fdstore"
            cells.append(
                [
                    verdict.task if result is verdict.results[0] else "",
                    HEADINGS[result.column],
                    f"{result.tokens:,}",
                    f"{result.cached_tokens:,}",
                    str(result.turns),
                    "right" if result.is_right else f"cannot: {result.why}",
                    f"{ratio_text(verdict.ratio)} {ratio_text(verdict.cached_ratio)}" if is_ours else "",
                    f"<= {verdict.limit}x" if is_ours else "",
                    ("ok" if verdict.ok else "MISSED") if is_ours else "",
                ]
            )
    return cells


def markdown(verdicts: Iterable[Verdict]) -> str:
    """Return the short table of docs/how-to/costs.md: a row for each task, tokens without a cache."""
    lines = [
        f"| task | {' | '.join(HEADINGS.values())} | ratio, with cache |",
        "|---|" + "---:|" * (len(HEADINGS) + 1),
    ]
    for verdict in verdicts:
        cells = [_short(result) for result in verdict.results]
        ratios = f"{ratio_text(verdict.ratio)}, {ratio_text(verdict.cached_ratio)}"
        lines.append(f"| {verdict.task} | {' | '.join(cells)} | {ratios} |")
    return "\n".join(lines)


def ratio_text(value: float | None) -> str:
    """Return a ratio with two digits."""
    return "-" if value is None else f"{value:.3f}" if value < 0.1 else f"{value:.2f}"


def rounded(tokens: int) -> str:
    """Return a number of tokens with two digits, in groups of three."""
    unit = 10 ** max(len(str(tokens)) - 2, 0)
    return f"{round(tokens / unit) * unit:,}".replace(",", " ")


def _short(result: Result) -> str:
    """Return the tokens of a result, and whether it cannot be right."""
    tokens = rounded(result.tokens)
    return tokens if result.is_right else f"{tokens}, cannot"
