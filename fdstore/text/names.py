"""Names: a process's own keys for its contents.

    name:notes/plan.md          KEY is any text of 1-1024 bytes of UTF-8 without control characters
    name:notes/plan.md#L1-9     the last "#" begins a selector if what follows is one
    name:found.json#J/a/b       the first "#J/" begins a pointer, which takes all that follows

So a key that itself ends in a selector, or has "#J/" in it, is refused: reading it would read a part of
another one.
"""

from __future__ import annotations

import re
import unicodedata

from fdstore.errors import InvalidArgument, quoted

NAME = "name:"
MAX_KEY_BYTES = 1024

SELECTOR = re.compile(r"J(/.*)?|([PLC])([0-9]{1,16})(?:(-)([0-9]{1,16})?)?", re.DOTALL)
"""The part of a selector after its "#"."""

_SELECTOR_AT_END = re.compile(rf"#({SELECTOR.pattern})\Z", re.DOTALL)


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
    found = _SELECTOR_AT_END.search(value)
    name = value[: found.start()] if found else value
    return NAME + _checked(name.removeprefix(NAME)), found[1] if found else None


def escape_key(path: str) -> str:
    r"""Return the key for a path: what no key can hold is written as the \xNN of its bytes. A path from the
    operating system may have bytes that are not UTF-8, as lone surrogates.

    >>> print(escape_key("a\nb/caf\udce9"), escape_key("notes#L1-9"), escape_key("name:x"))
    a\x0ab/caf\xe9 notes\x23L1-9 name\x3ax
    """
    shown = path
    if not (path.isascii() and path.isprintable()):
        shown = "".join(
            _escaped(char) if unicodedata.category(char) in ("Cc", "Cs") else char for char in path
        )
    before, hash_sign, after = shown.rpartition("#")
    if hash_sign and SELECTOR.fullmatch(after):
        shown = f"{before}{_escaped(hash_sign)}{after}"
    if shown.startswith(NAME):
        shown = shown.replace(":", _escaped(":"), 1)
    return shown


def _escaped(char: str) -> str:
    try:
        data = char.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        data = char.encode("utf-8", "surrogatepass")
    return "".join(f"\\x{byte:02x}" for byte in data)


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
    if not ends_in_selector and (found := _SELECTOR_AT_END.search(key)):
        problem = f"ends in {quoted(found[0])[1:-1]}, which would be read as a part; choose another key"
        raise InvalidArgument(argument, f"{quoted(key)} {problem}")
    return key
