"""The pane of a process page: its steps as rows, one of them chosen, whose input and output are shown. Pure.

The URL says which step is chosen (`at=POS-PART`, those of any of its entries). Without it that is the first
error of a process that failed, or where only errors are listed, and else the last step before its end, so the
page of a run that goes on follows it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from fdstore.errors import InvalidArgument, quoted
from fdstore.inspector.reading.describe_result import describe_result
from fdstore.inspector.reading.narrate import narrate
from fdstore.inspector.reading.result_card import make_cards
from fdstore.inspector.reading.steps import Fold, Step, StepOrFold
from fdstore.inspector.web.timeline import Axis, Box
from fdstore.text.layout import show_controls

MAX_HINT_CHARS = 80

SHORTEST_AXIS_S = 0.001

_AT = re.compile(r"([0-9]{1,10})-([0-9]{1,10})")


def position_in(at: str) -> int | None:
    """Return the position of the record that the argument `at` names; None without it. Raises
    `InvalidArgument`.

    >>> position_in("12-3"), position_in("")
    (12, None)
    """
    found = _AT.fullmatch(at)
    if at and found is None:
        raise InvalidArgument("at", f"{quoted(at)} is not a step; use POSITION-PART, such as 12-0")
    return None if found is None else int(found[1])


def choose(steps: Sequence[Step], at: str, *, errors_first: bool) -> Step | None:
    """Return the step with the entry `at`; None if there is none. Without `at`, return the first error if
    there is one and `errors_first`, and else the last step, if possible one that is not the end of the
    process."""
    if at:
        named = tuple(map(int, at.split("-")))
        return next(
            (step for step in steps if any((each.position, each.part) == named for each in step.entries)),
            None,
        )
    errors = (step for step in steps if errors_first and step.is_error)
    before_end = (step for step in reversed(steps) if step.entry.kind != "end")
    return next(errors, None) or next(before_end, None) or (steps[-1] if steps else None)


def in_rows(steps: Sequence[StepOrFold]) -> list[Step]:
    """Return the steps in the order of their rows: of a fold, those that failed are first."""
    return [
        step
        for each in steps
        for step in ((*each.failed, *each.others) if isinstance(each, Fold) else (each,))
    ]


class Moves(msgspec.Struct, frozen=True):
    """The keys of the steps to which one can go from the chosen one; "" where there is none."""

    previous: str = ""
    next: str = ""
    previous_error: str = ""
    next_error: str = ""


def moves_from(rows: Sequence[Step], at: str) -> Moves:
    """Return where one can go from the step `at`. From one that has no row, the next is the first."""
    here = next((number for number, step in enumerate(rows) if step.key == at), -1)
    before, after = rows[: max(here, 0)], rows[here + 1 :]
    return Moves(
        previous=before[-1].key if before else "",
        next=after[0].key if after else "",
        previous_error=next((step.key for step in reversed(before) if step.is_error), ""),
        next_error=next((step.key for step in after if step.is_error), ""),
    )


def title_of(step: Step) -> str:
    """Return what a row calls a step.

    >>> from fdstore.inspector.reading.entries import ConversationEntry
    >>> title_of(Step(entry=ConversationEntry(position=3, kind="answer", number=2)))
    'Answer 2'
    """
    line = step.line if step.earlier_call is None else narrate(step.earlier_call)
    return " ".join(filter(None, (line.title, step.subject)))


def hint_of(step: Step) -> str:
    """Return a short description of a step on one line: the first argument of its call other than the
    program, or the beginning of its text."""
    entry = step.call or step.entry
    text = entry.text
    if step.call is None and step.line.has_elements and (cards := make_cards(entry)):
        text = f"{describe_result(entry.facts)} {cards[0].message or cards[0].body}"
    if isinstance(entry.arguments, dict):
        values = (
            value for name, value in entry.arguments.items() if name != "program_name" and value is not None
        )
        first = next(values, "")
        text = first if isinstance(first, str) else msgspec.json.encode(first).decode("utf-8", "replace")
    return " ".join(show_controls(text[: 4 * MAX_HINT_CHARS], keep="\n\t").split())[:MAX_HINT_CHARS]


def axis_of_steps(steps: Sequence[Step], now_s: float) -> Axis | None:
    """Return the time axis of these steps; None if no time of theirs is known."""
    begins = [at for step in steps if (at := step.began_at) is not None]
    ends = [at for step in steps if (at := step.ended_at(now_s)) is not None]
    if not begins or not ends:
        return None
    begin = min(begins)
    return Axis(begin, max(*ends, begin + SHORTEST_AXIS_S))


def box_of(step: Step, axis: Axis | None, now_s: float) -> Box | None:
    """Return the place of a step on the axis; None if its time is not known."""
    begin, end = step.began_at, step.ended_at(now_s)
    return None if axis is None or begin is None or end is None else axis.box(begin, max(begin, end))
