"""The texts of a list of content blocks that are stored, alone or together: one rule for all interfaces.

A long text is stored alone, and short ones stay inline where they are, in order. Short ones that are long
together do not: neighbours become one text, and if what then stays inline is still long, the rest becomes one
too. So no more stays inline of many blocks than of one text.

    short  LONG  short  short  short        short  fd:1  [short short short] = fd:2

Pure, and imported by programs that must start fast.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, TypeVar

T = TypeVar("T")


def groups_to_store(
    texts: Sequence[T | None], is_long: Callable[[T], bool], join: Callable[[Sequence[Any]], Any] = "\n".join
) -> list[tuple[int, ...]]:
    r"""Return the positions of the texts to store, in the order of the first of each group: those of a group
    are stored as one text, joined by LF. None stands for a block without a text, which separates neighbours;
    empty texts are in no group with others. A caller that has only the sizes of the texts says how they
    `join`.

    >>> groups_to_store(["a", "long", "b"], lambda text: len(text) > 3)
    [(1,)]
    >>> groups_to_store(["a", "long", "bc", "d"], lambda text: len(text) > 3)
    [(1,), (2, 3)]
    >>> groups_to_store(["ab", None, "cd"], lambda text: len(text) > 3)
    [(0, 2)]
    """
    alone = [number for number, text in enumerate(texts) if text is not None and is_long(text)]
    is_alone = frozenset(alone)

    def are_long(group: Sequence[int]) -> bool:
        members: list[Any] = [texts[number] for number in group]
        return len(group) > 1 and is_long(join(members))

    def is_short(number: int) -> bool:
        return texts[number] is not None and number not in is_alone

    joined: list[tuple[int, ...]] = []
    rest: list[int] = []
    for may_join, run in groupby(range(len(texts)), is_short):
        group = [number for number in run if may_join and texts[number]]
        if are_long(group):
            joined.append(tuple(group))
        else:
            rest += group
    if are_long(rest):
        joined.append(tuple(rest))
    return sorted([(number,) for number in alone] + joined)


def join_groups(
    texts: Sequence[object], groups: Sequence[tuple[int, ...]]
) -> tuple[dict[int, str], frozenset[int]]:
    r"""Return the text of each group by the position of its first, and the positions of the others.

    >>> join_groups(["a", "long", "bc", "d"], [(1,), (2, 3)])
    ({1: 'long', 2: 'bc\nd'}, frozenset({3}))
    """
    joined = {group[0]: "\n".join(str(texts[number]) for number in group) for group in groups}
    return joined, frozenset(number for group in groups for number in group[1:])
