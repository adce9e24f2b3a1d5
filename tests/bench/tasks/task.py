"""A task: a question, what the agent may call, the true answer, and what proves it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from tests.bench.tasks.plans import Hand, Plan

Kind = Literal["focused", "short", "whole", "large"]
"""focused: what must be read stays inline, so that descriptors can only cost. short: all of a text
of some pages must be read. whole: the same of a long one. large: most of it is not needed."""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """One task.

    tools      functions of `host_tools` that the agent has in every column
    documents  what `fetch` returns, by name
    files      what `read_file` and `search_file` find, by path
    pasted     what the user adds to the question
    parts      what a running build prints, a part before each answer of the model, to be read as fd:1 or
               from `build_output`
    reporters  whether `documents` are the answers of child agents, which fdstore spawns
    plan       the model
    truth      the answer
    is_proved  whether what the model saw proves the answer; of another text than the truth's it must be False
    """

    name: str
    kind: Kind
    question: str
    tools: tuple[str, ...]
    plan: Callable[[Hand], Plan]
    truth: Callable[[], str]
    is_proved: Callable[[str], bool]
    documents: dict[str, Callable[[], str]] = {}
    files: dict[str, Callable[[], str]] = {}
    pasted: Callable[[], str] | None = None
    parts: Callable[[], tuple[str, ...]] | None = None
    reporters: bool = False

    @property
    def whole_question(self) -> str:
        """The question with what was pasted."""
        return f"{self.question}\n\n{self.pasted()}" if self.pasted else self.question


def shows(*texts: str) -> Callable[[str], bool]:
    """All of these texts must have been seen."""
    return lambda seen: all(text in seen for text in texts)


def shows_lines(text: Callable[[], str]) -> Callable[[str], bool]:
    """All lines of a text must have been seen."""

    def is_proved(seen: str) -> bool:
        lines = frozenset(seen.splitlines())
        return lines.issuperset(text().splitlines())

    return is_proved


def shows_count(count: Callable[[], int], lines: Callable[[], list[str]]) -> Callable[[str], bool]:
    """A search must have stated this number of matches, or all matching lines must have been seen."""

    def is_proved(seen: str) -> bool:
        stated = (f'matches="{count()}"', f"{count()} matching lines")
        return any(words in seen for words in stated) or frozenset(seen.splitlines()).issuperset(lines())

    return is_proved
