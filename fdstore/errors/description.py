"""Exceptions of any kind as a text: of a tool for a model, or of a writer as the reason of its stream."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

MAX_CAUSES = 20
"""The maximum number of exceptions of a group that are described."""

MAX_DEPTH = 10
"""The depth of groups within groups that is described."""

MAX_NOTES = 20
"""The maximum number of notes of one exception that are described."""


def describe_error(error: BaseException) -> str:
    r"""Return the type, the text and the notes of an exception, whose `__str__` may fail too; of a group also
    the exceptions that it holds, indented.

    >>> print(describe_error(ExceptionGroup("2 pages", [ValueError("no page 1"), KeyError("page 2")])))
    ExceptionGroup: 2 pages (2 sub-exceptions)
      ValueError: no page 1
      KeyError: 'page 2'
    """
    return "\n".join(_lines_of(error, 0, iter(range(MAX_CAUSES))))


def notes_of(error: BaseException) -> list[str]:
    """Return the texts that were added to an exception with `add_note`."""
    notes = getattr(error, "__notes__", ())
    if not isinstance(notes, (list, tuple)):
        return []
    return [note for note in notes if isinstance(note, str)][:MAX_NOTES]


def _lines_of(error: BaseException, depth: int, left: Iterator[int]) -> Iterator[str]:
    indent = "  " * depth
    for text in (_type_and_text(error), *notes_of(error)):
        yield indent + text.replace("\n", "\n" + indent)
    if not isinstance(error, BaseExceptionGroup):
        return
    described = 0
    if depth < MAX_DEPTH:
        for cause in error.exceptions:
            if next(left, None) is None:
                break
            described += 1
            yield from _lines_of(cause, depth + 1, left)
    if described < len(error.exceptions):
        yield f"{indent}  ... and {len(error.exceptions) - described} more"


def _type_and_text(error: BaseException) -> str:
    name, message = type(error).__name__, ""
    with suppress(Exception):
        message = str(error)
    return f"{name}: {message}" if message else name
