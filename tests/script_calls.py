"""Calls of scripts with made-up arguments, for tests of what carries them."""

from __future__ import annotations

from typing import Any

from fdstore.wire.operation import Command
from fdstore.wire.scripts import script


def script_call(name: str, **given: Any) -> Command:
    """Return a call in which every key and argument that is not `given` is its own name."""
    found = script(name)
    return found(**{each: f"{{t}}:{each}" for each in found.keys} | {e: e for e in found.arguments} | given)
