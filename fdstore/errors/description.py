"""Exceptions of any kind as a text: of a tool for a model, or of a writer as the reason of its stream."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TypeAlias, TypeGuard, TypeVar

T = TypeVar("T")
E = TypeVar("E", bound=BaseException)

Logged: TypeAlias = tuple[type[BaseException], BaseException, TracebackType | None]
"""What `logging` takes as `exc_info`."""

MAX_CAUSES = 20
"""The maximum number of exceptions of a group that are described."""

MAX_DEPTH = 10
"""The depth of groups within groups that is described."""

MAX_NOTES = 20
"""The maximum number of notes of one exception that are described."""


def describe_error(error: BaseException) -> str:
    r"""Return the type, the text and the notes of an exception; of a group also the exceptions that it holds,
    indented. What raises when it is read, as a `__str__` may, is left out.

    >>> print(describe_error(ExceptionGroup("2 pages", [ValueError("no page 1"), KeyError("page 2")])))
    ExceptionGroup: 2 pages (2 sub-exceptions)
      ValueError: no page 1
      KeyError: 'page 2'
    """
    return "\n".join(_lines_of(error, 0, iter(range(MAX_CAUSES))))


def notes_of(error: BaseException) -> list[str]:
    """Return the texts that were added to an exception with `add_note`; none if they cannot be read."""

    def read() -> list[str]:
        notes = getattr(error, "__notes__", ())
        if not isinstance(notes, (list, tuple)):
            return []
        return [str.__str__(note) for note in notes[:MAX_NOTES] if isinstance(note, str)]

    return read_or(read, [])


def is_a(error: BaseException, kind: type[E] | tuple[type[E], ...]) -> TypeGuard[E]:
    """Return whether an exception is of this class. `isinstance` reads `__class__`, which may raise."""
    return issubclass(type(error), kind)


def logged(error: BaseException) -> Logged:
    """Return the argument `exc_info` of a log call. An exception whose traceback cannot be formatted, because
    one of its attributes raises when it is read, is replaced by one with its description."""
    place: TracebackType | None = vars(BaseException)["__traceback__"].__get__(error)
    if read_or(lambda: bool(traceback.format_exception(type(error), error, place)), False):
        return type(error), error, place
    shown = RuntimeError(describe_error(error))
    return RuntimeError, shown, place


def read_or(read: Callable[[], T], otherwise: T) -> T:
    """Return what `read` returns, or `otherwise` if it raises: the classes of exceptions are of any code."""
    try:
        return read()
    except BaseException as error:  # as of sys.exit
        if is_a(error, KeyboardInterrupt):
            raise
        return otherwise


def _lines_of(error: BaseException, depth: int, left: Iterator[int]) -> Iterator[str]:
    indent = "  " * depth
    for text in (_type_and_text(error), *notes_of(error)):
        yield indent + text.replace("\n", "\n" + indent)
    if not is_a(error, BaseExceptionGroup):
        return
    causes: tuple[BaseException, ...] = vars(BaseExceptionGroup)["exceptions"].__get__(error)
    described = 0
    if depth < MAX_DEPTH:
        for cause in causes:
            if next(left, None) is None:
                break
            described += 1
            yield from _lines_of(cause, depth + 1, left)
    if described < len(causes):
        yield f"{indent}  ... and {len(causes) - described} more"


def _type_and_text(error: BaseException) -> str:
    name, message = type(error).__name__, read_or(lambda: str.__str__(str(error)), "")
    return f"{name}: {message}" if message else name
