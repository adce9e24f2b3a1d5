"""Calls of scripts with made-up arguments, for tests of what carries them."""

from __future__ import annotations

from typing import Any

from fdstore.wire.operation import Command
from fdstore.wire.scripts import name_of, script


def script_call(name: str, **given: Any) -> Command:
    """Return a call in which every key and argument that is not `given` is its own name."""
    found = script(name)
    return found(**{each: f"{{t}}:{each}" for each in found.keys} | {e: e for e in found.arguments} | given)


def arguments_of(call: Command) -> dict[str, Any]:
    """Return the keys and arguments of a call by their names, and the rest as a list."""
    found = script(name_of(call))
    _, _, _, *values = call
    names = (*found.keys, *found.arguments)
    return dict(zip(names, values, strict=False)) | {found.rest: values[len(names) :]}
