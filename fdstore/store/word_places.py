"""Where a word was written: the members of a tree's words (`keys.TreeKeys.words`), which the scripts add.

    build-log.md source triage fd:3        word kind process [descriptor], separated by blanks
    failed error triage.1

A word has no blank, and the descriptor is the rest: a name (`name:KEY`) may have blanks.
"""

from __future__ import annotations

from typing import Literal, get_args

from fdstore.model.records import Record
from fdstore.store.keys import TreeKeys, member_of

Kind = Literal["task", "answer", "error", "source"]
"""The kind of text that has a word. An error is the reason for which a process ended, or what a call or an
ask of it failed with."""

KINDS: tuple[Kind, ...] = get_args(Kind)


class WordPlace(Record, frozen=True, kw_only=True):
    """The holder of a word: the task, the answer or an error of a process, or the source (or the name) of a
    descriptor of it (`fd`; None for the others)."""

    process: str
    kind: Kind
    fd: str | None = None


def place_of(tree: TreeKeys, member: bytes) -> WordPlace | None:
    """Return the place of a member of a tree's words; None if no script writes such a member.

    >>> place_of(TreeKeys("fdstore", "triage"), b"failed error triage.1")
    WordPlace(process='triage.1', kind='error', fd=None)
    """
    word, *rest = member.decode("utf-8", "backslashreplace").split(" ", 3)
    if not word or len(rest) < 2 or rest[0] not in KINDS or (rest[0] == "source") != (len(rest) == 3):
        return None
    if member_of(tree, rest[1].encode()) is None:
        return None
    return WordPlace(process=rest[1], kind=rest[0], fd=rest[2] if len(rest) == 3 else None)
