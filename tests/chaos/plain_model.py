"""A model of the store in plain Python, strings in dictionaries, to compare random runs with."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

LETTERS = [
    "a",
    "b",
    " ",
    "\n",
    "\r\n",
    "é",
    "漢",
    "🙂",
    "e\u0301",
    "\u2028",
    "\x00",
    "<fd_result>",
    "0123456789",
]


def random_text(rng: random.Random) -> str:
    """Return a text of any script with 0 to some hundred thousand characters and short or long lines."""
    size = rng.choice([0, 1, 5, 200, 3000, 30_000, 200_000])
    letters = rng.sample(LETTERS, rng.randint(1, len(LETTERS)))
    words = ["".join(rng.choices(letters, k=rng.randint(1, 60))) for _ in range(20)]
    return "".join(rng.choices(words, k=1 + size // 40))[:size]


@dataclass(eq=False)
class Text:
    """A content: the text written to it, and whether it is still open."""

    text: str
    state: str = "sealed"

    @property
    def lines(self) -> list[str]:
        found = self.text.split("\n")
        return [line + "\n" for line in found[:-1]] + ([found[-1]] if found[-1] else [])


@dataclass(eq=False)
class Member:
    """A process: its descriptors and the number of its next one."""

    id: str
    table: dict[str, Text] = field(default_factory=dict)
    next_fd: int = 1
    next_child: int = 1
    ended: bool = False

    @property
    def depth(self) -> int:
        """The number of its ancestors, plus one."""
        return self.id.count(".") + 1

    def add(self, text: Text) -> str:
        fd = f"fd:{self.next_fd}"
        self.next_fd += 1
        self.table[fd] = text
        return fd

    def child(self, shared: list[str]) -> Member:
        """Return a child that holds these descriptors under the same numbers and continues the numbering."""
        made = Member(f"{self.id}.{self.next_child}", {fd: self.table[fd] for fd in shared}, self.next_fd)
        self.next_child += 1
        return made

    def fork(self) -> Member:
        return self.child(list(self.table))


def held(members: list[Member]) -> set[Text]:
    """Return the contents that some process holds."""
    return {text for member in members if not member.ended for text in member.table.values()}
