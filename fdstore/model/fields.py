"""What is said of a field of a Struct beside its type and its default.

It stands in the annotation, so schemas, pages and the command line derive what they show:

    max_turns: Annotated[Ordinal, about("The most answers of the model.")] = 50
    tree_live: Annotated[Count, TreeLimit("processes of a tree that have not ended", "live")] = 64
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar, get_type_hints

import msgspec

T = TypeVar("T")


def about(description: str, example: object = None, **schema: object) -> msgspec.Meta:
    """Return what the schema and the file of `fdstore init` say about a key. Nothing of it is checked."""
    examples = None if example is None else [example]
    return msgspec.Meta(description=description, examples=examples, extra_json_schema=schema or None)


class TreeLimit(msgspec.Struct, frozen=True):
    """What is said of a limit of a tree, or of all trees together.

    of       what is limited, after "the most"
    used     the attribute of `TreeRecord` that says how much is used; "" for a limit that operators alone
             set, which is no key of program files
    unit     of its values
    note     what counts
    example  a value, if it has no default
    least    the least ceiling that an operator may set
    top      the ceiling if the operator sets none
    beyond   what happens there
    budget   whether it is of all that a tree ever does: what is left of it is shown
    """

    of: str
    used: str = ""
    unit: Literal["", "bytes", "tokens"] = ""
    note: str = ""
    example: int | None = None
    least: int = 0
    top: str = "none"
    beyond: str = "`quota_exceeded`"
    budget: bool = False

    @property
    def description(self) -> str:
        """The limit in a sentence.

        >>> TreeLimit("stored text of a tree", unit="bytes", note="in UTF-8").description
        'The most bytes of stored text of a tree: in UTF-8.'
        """
        note = f": {self.note}" if self.note else ""
        return f"The most {'bytes of ' if self.unit == 'bytes' else ''}{self.of}{note}."


class CountOf(msgspec.Struct, frozen=True):
    """What a count of a tree is the sum of, over its contents or its processes, those of kind `asks` left
    out: `adds` returns how much one adds, of a content whose record may be damaged: fields are None then.
    Doctor compares the count with the sum."""

    of: Literal["contents", "processes"]
    adds: Callable[[Any], int] = lambda _: 1


def said_of(kind: type[msgspec.Struct], what: type[T]) -> dict[str, T]:
    """Return what the fields of a Struct have of this class in their annotations, by the name of the field.

    >>> from fdstore.model.records import TreeLimits
    >>> said_of(TreeLimits, TreeLimit)["tree_live"].of
    'processes of a tree that have not ended'
    """
    hints = get_type_hints(kind, include_extras=True)
    return {
        name: each
        for name, hint in hints.items()
        for each in getattr(hint, "__metadata__", ())
        if isinstance(each, what)
    }
