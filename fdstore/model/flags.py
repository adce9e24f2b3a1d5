"""Flags that permit what cannot be taken back: a call, a file that is replaced, a tree that is removed.

Python takes each text for true, `"no"` and `"false"` too, as they come from forms and variables. So such a
flag is a bool, and nothing else is taken for one.
"""

from __future__ import annotations

from fdstore.errors import InvalidArgument, quoted


def check_flag(name: str, value: object) -> bool:
    """Return a flag. Raises `InvalidArgument` for everything but `True` and `False`.

    >>> check_flag("exist_ok", False)
    False
    """
    if not isinstance(value, bool):
        raise InvalidArgument(name, f"must be True or False, not {quoted(value)}")
    return value
