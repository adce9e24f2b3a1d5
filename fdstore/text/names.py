"""Names: a process's own keys for its contents.

    name:notes/plan.md          KEY is any text of 1-1024 bytes of UTF-8 without control characters
    name:notes/plan.md#L1-9     the last "#" begins a selector if what follows is one

So a key that itself ends in a selector is refused: reading it would read a part of another one.
"""

from __future__ import annotations

import re
import unicodedata

from fdstore.errors import InvalidArgument, quoted

NAME = "name:"
MAX_KEY_BYTES = 1024

SELECTOR = re.compile(r"([PLC])([0-9]{1,16})(?:(-)([0-9]{1,16})?)?")
"""The part of a selector after its "#"."""


def name_id(key: object) -> str:
    """Return the descriptor id of a key.

    >>> name_id("notes/plan.md")
    'name:notes/plan.md'

    Raises `InvalidArgument`.
    """
    if not isinstance(key, str):
        raise InvalidArgument("key", f"a text is needed, not {quoted(key)}")
    if key.startswith(NAME):
        raise InvalidArgument("key", f"{quoted(key)}: give the key alone, without {NAME!r}")
    return NAME + _checked(key)


def split_name(value: str) -> tuple[str, str | None]:
    """Split `name:KEY` or `name:KEY#SELECTOR` into the id and the text of the selector, if there is one.

    >>> split_name("name:issue#7"), split_name("name:notes#L1-9")
    (('name:issue#7', None), ('name:notes', 'L1-9'))

    Raises `InvalidArgument`.
    """
    before, hash_sign, after = value.rpartition("#")
    part = after if hash_sign and SELECTOR.fullmatch(after) else None
    name = value if part is None else before
    return NAME + _checked(name.removeprefix(NAME)), part


def check_prefix(prefix: object) -> str:
    """Return a valid beginning of keys, which may be empty. Raises `InvalidArgument`."""
    if prefix == "":
        return ""
    if not isinstance(prefix, str):
        raise InvalidArgument("prefix", f"a text is needed, not {quoted(prefix)}")
    return _checked(prefix, "prefix", ends_in_selector=True)


def _checked(key: str, argument: str = "key", *, ends_in_selector: bool = False) -> str:
    try:
        size = len(key.encode("utf-8"))
    except UnicodeEncodeError as error:
        raise InvalidArgument(
            argument, f"{quoted(key)} has a lone surrogate, which UTF-8 cannot store"
        ) from error
    if not 1 <= size <= MAX_KEY_BYTES:
        raise InvalidArgument(argument, f"it has {size} bytes of UTF-8; 1-{MAX_KEY_BYTES} are allowed")
    for char in key:
        if unicodedata.category(char) == "Cc":
            raise InvalidArgument(argument, f"{quoted(key)} has a control character (U+{ord(char):04X})")
    _, hash_sign, after = key.rpartition("#")
    if hash_sign and not ends_in_selector and SELECTOR.fullmatch(after):
        raise InvalidArgument(
            argument, f"{quoted(key)} ends in #{after}, which would be read as a part; choose another key"
        )
    return key
