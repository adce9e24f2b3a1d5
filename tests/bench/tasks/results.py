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
from typing import Any

from fdstore.model.records import Record
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
    why: str

    @property
    def is_right(self) -> bool:
        return not self.why


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
    return [
        row_of(
            verdict,
            result,
            HEADINGS[result.column],
            (result.tokens, result.cached_tokens, result.turns),
            judged=(verdict.ratio, verdict.cached_ratio, verdict.limit)
            if result.column == "fdstore"
            else None,
        )
        for verdict in verdicts
        for result in verdict.results
    ]


def row_of(
    verdict: Any,
    result: Any,
    name: str,
    numbers: Iterable[int],
    *,
    judged: tuple[float | None, float | None, float] | None,
) -> list[str]:
    """Return the cells of one result of a verdict: its task if it is the first, its name, numbers and answer,
    and of ours, which is `judged`, both ratios and their limit."""
    first, other, limit = judged or (None, None, 0.0)
    return [
        verdict.task if result is verdict.results[0] else "",
        name,
        *(f"{number:,}" for number in numbers),
        f"cannot: {result.why}" if result.why else "right",
        *(
            (f"{ratio_text(first)} {ratio_text(other)}", f"<= {limit}x", "ok" if verdict.ok else "MISSED")
            if judged
            else ("", "", "")
        ),
    ]


def markdown(verdicts: Iterable[Verdict]) -> str:
    """Return the short table of task-costs.md: a row for each task, tokens without a cache."""
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
    return f"{round(tokens / unit) * unit:,}"


def _short(result: Result) -> str:
    """Return the tokens of a result, and whether it cannot be right."""
    tokens = rounded(result.tokens)
    return tokens if result.is_right else f"{tokens}, cannot"
