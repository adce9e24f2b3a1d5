"""Values between host and code: the arguments of host calls, and the answers."""

from __future__ import annotations

import datetime
from typing import Any

from fdstore.programs.interpreter.events import Answer, Raise

MAX_DEPTH = 100

VALUE_ERRORS = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""The exceptions of Python for a value that is not what was expected: an int of too many digits, a nan, a
list that is nested too deeply. What the host makes of a value of a program is guarded by these: they are
errors of the program."""


class NotTaken(Exception):
    """An argument of a host call has a type or a size that hosts do not take."""


def to_json(value: Any, depth: int = 0) -> Any:
    """Return an argument of a host call, with lists for tuples. Raises `NotTaken` for what JSON lacks.

    >>> to_json({"a": (1, None)})
    {'a': [1, None]}
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 64:
            raise NotTaken("an int of more than 64 bits cannot be passed; pass it as a str")
        return value
    if isinstance(value, float):
        if value - value != 0:
            raise NotTaken(f"{value} cannot be passed; pass None or a str")
        return value
    if not isinstance(value, list | tuple | dict):
        raise NotTaken("None, bool, int, float, str, list and dict can be passed")
    if depth == MAX_DEPTH:
        raise NotTaken(f"values nested more than {MAX_DEPTH} deep cannot be passed")
    if not isinstance(value, dict):
        return [to_json(item, depth + 1) for item in value]
    if not all(isinstance(key, str) for key in value):
        raise NotTaken("a dict with keys other than str cannot be passed")
    return {key: to_json(item, depth + 1) for key, item in value.items()}


def to_code(value: Any) -> Any:
    """Return an answer as code gets it: lone surrogates, which its texts cannot have, are U+FFFD.

    Raises TypeError for a value of another type than None, bool, int, float, str, list, tuple and dict.
    """
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return without_surrogates(value)
    if isinstance(value, list | tuple):
        return [to_code(item) for item in value]
    if isinstance(value, dict):
        return {to_code(key): to_code(item) for key, item in value.items()}
    raise TypeError(f"code cannot have a value of type {type(value).__name__}")


def without_surrogates(text: str) -> str:
    r"""Return the text with U+FFFD for each surrogate.

    >>> without_surrogates("a\udcff")
    'a\ufffd'
    """
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in text)
    return text


def to_result(answer: Answer, system_call: str = "", zone: datetime.tzinfo | None = None) -> dict[str, Any]:
    """Return an answer in the interpreter's form. That to a clock is in seconds, and becomes what the call
    `system_call` returns, a datetime in `zone` for instance."""
    if isinstance(answer, Raise):
        return {"exc_type": answer.type, "message": without_surrogates(answer.text)}
    value = to_code(answer)
    match system_call:
        case "time.time":
            value = float(value)
        case "datetime.now":
            value = datetime.datetime.fromtimestamp(value, zone or datetime.UTC)
            value = value if zone else value.replace(tzinfo=None)
        case "date.today":
            value = datetime.datetime.fromtimestamp(value, datetime.UTC).date()
        case "time.sleep" | "asyncio.sleep":
            value = None
    return {"return_value": value}
