r"""Write what a function returned as JSON: what JSON has no form for as Python's `json` writes it.

JSON has no NaN, and no keys but texts; UTF-8 has no half of a surrogate pair. Values have all of them, and
the function has run: its result must not be lost for their sake. Such a value is written by Python's `json`
(`NaN`, `true` for the key True), with its lone surrogates shown as `\udXXX`; any other by msgspec, which is
faster.

Objects are written as what they hold: models of pydantic, arrays, mappings, and what msgspec knows, such as
dataclasses and dates. Of other objects the text is taken if their class defines one (`__str__`): what `repr`
returns may be cut, or an address in memory.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, MutableSequence, Set, ValuesView
from typing import Any

import msgspec

from fdstore.errors import InvalidArgument
from fdstore.errors.description import describe_error, is_a, read_or
from fdstore.text.surrogates import escape_surrogates

PROBLEM_CHARS = 300
"""The most that is shown of what a value raised."""


def json_text(value: Any) -> str:
    r"""Return a value as the text of JSON. Raises `InvalidArgument` if it has none.

    >>> json_text({"a": [1, None]}), json_text({None: float("nan"), "half": "\ud83d"})
    ('{"a":[1,null]}', '{"null": NaN, "half": "\\ud83d"}')
    """
    # a value may be of any class, whose methods may raise anything
    if (written := read_or(lambda: _strict_json(value), None)) is not None:
        return written
    try:
        return escape_surrogates(_python_json(value))
    except Exception as error:
        raise _no_json(value, error) from error


def json_value(value: Any) -> Any:
    r"""Return a value as JSON has it: lists, dicts with keys that are texts, texts without lone surrogates,
    numbers, booleans, None. Raises `InvalidArgument` if it has none.

    >>> json_value({(1, 2): "\ud83d", True: 1})
    {'(1, 2)': '\\ud83d', 'true': 1}
    """
    try:
        return _with_text_keys(msgspec.to_builtins(value, enc_hook=_content_of), escape_surrogates)
    except Exception as error:
        raise _no_json(value, error) from error


def _strict_json(value: Any) -> str | None:
    """Return a value as msgspec writes it, None if that changes it."""
    written = msgspec.json.encode(value, enc_hook=_content_of)
    return written.decode("utf-8") if b"null" not in written or _is_strict(value) else None


def _is_strict(value: Any) -> bool:
    """Return whether a value that msgspec can write has neither NaN nor an infinity, which become null."""
    try:
        json.dumps(msgspec.to_builtins(value, enc_hook=_content_of), allow_nan=False)
    except ValueError:
        return False
    return True


def _python_json(value: Any) -> str:
    plain = msgspec.to_builtins(value, enc_hook=_content_of)
    try:
        return json.dumps(plain, ensure_ascii=False)
    except TypeError:  # a key that is neither a text nor a number
        return json.dumps(_with_text_keys(plain, str), ensure_ascii=False)


def _with_text_keys(value: Any, shown: Callable[[str], str]) -> Any:
    """Return a value with texts for keys, and each text as `shown`."""
    match value:
        case str():
            return shown(value)
        case dict():
            return {shown(_key(key)): _with_text_keys(each, shown) for key, each in value.items()}
        case list() | tuple():
            return [_with_text_keys(each, shown) for each in value]
    return value


def _key(key: Any) -> str:
    if isinstance(key, str):
        return key
    return json.dumps(key) if key is None or isinstance(key, (bool, int, float)) else str(key)


def _content_of(value: Any) -> Any:
    """Return what an object that msgspec does not know holds, or its text. Raises `TypeError` if it has
    neither."""
    kind = type(value)
    match value:
        case None | True | False:  # a key
            raise TypeError
        case str():  # of a subclass, as the following
            return str.__str__(value)
        case int():
            return int(value)
        case float():
            return float(value)
        case Mapping():
            return dict(value)
        case MutableSequence() | Set() | ValuesView():
            return list(value)
    if callable(getattr(kind, "model_dump", None)):  # a model of pydantic
        return value.model_dump(mode="json")
    if callable(getattr(kind, "tolist", None)):  # an array or a number of numpy, torch, pandas
        return value.tolist()
    if not any("__str__" in vars(each) for each in kind.__mro__[:-1]):
        raise TypeError
    return str(value)


def _no_json(value: object, error: Exception) -> InvalidArgument:
    problem = f"the tool returned a {type(value).__name__}, which is neither text nor JSON"
    if is_a(error, RecursionError):
        problem += ": it is nested too deep, or holds itself; return a text of it"
    elif is_a(error, (ValueError, OverflowError)):
        problem += f": {error}; return a text of it"
    elif not is_a(error, TypeError):
        problem += f": reading it raised {describe_error(error)[:PROBLEM_CHARS]}; return a text of it"
    return InvalidArgument("", problem)
