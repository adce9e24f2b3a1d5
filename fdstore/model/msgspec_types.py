"""Prepare msgspec types before threads use them.

msgspec 0.22 inspects a Struct when it is first decoded or converted, or its schema made, in Python code and
without a lock: two threads that do so at the same time crash the interpreter. A worker whose first two agents
start together would crash. So types that are decoded are prepared under one lock: when their module is
imported; hashes and arguments of tools before they are first decoded, since most programs meet few of them.
"""

from __future__ import annotations

import threading
from typing import Any

import msgspec

_lock = threading.Lock()


def prepare(*kinds: Any) -> None:
    """Make msgspec inspect these types and the types of their fields."""
    with _lock:
        for kind in kinds:
            msgspec.json.Decoder(kind)


_NOTHING: tuple[Any, ...] = (None, "", (), {})


def without_absent(struct: msgspec.Struct) -> dict[str, Any]:
    """Return the fields of a Struct for an encoder, without those that are unset, and those that are None or
    empty if that is their default.

    >>> from fdstore.model.records import ModelPrice
    >>> without_absent(ModelPrice(input=3, output=15))
    {'input': 3, 'output': 15}
    """
    names, defaults = struct.__struct_encode_fields__, struct.__struct_defaults__
    found = {}
    # those without a default are first, or have a marker
    of_names = dict(zip(names[::-1], map(_value_of, defaults[::-1]), strict=False))
    for name, encoded in zip(struct.__struct_fields__, names, strict=True):
        value, default = getattr(struct, name), of_names.get(encoded, msgspec.NODEFAULT)
        if value is msgspec.UNSET or (value == default and default in _NOTHING):
            continue
        found[encoded] = without_absent(value) if isinstance(value, msgspec.Struct) else value
    return found


def _value_of(default: Any) -> Any:
    """Return the value of a default, of which msgspec keeps a mutable one as what makes it."""
    return default.factory() if hasattr(default, "factory") else default
