"""The limits of a tree, its retention, and fresh names."""

from __future__ import annotations

import re
import secrets
from typing import Any

import msgspec

from fdstore.errors import InvalidArgument, quoted
from fdstore.model.fields import TreeLimit, said_of
from fdstore.model.records import Days, Ordinal, TreeLimits
from fdstore.text.quantities import DAY_S

LIMITS = said_of(TreeLimits, TreeLimit)
"""What is said of each limit, in the order in which people read them."""

NAME_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"


_GENERATED = re.compile(r".*-(?=[a-z]*[2-7])(?=[2-7]*[a-z])[a-z2-7]{6}", re.ASCII)


def fresh_name(program: str) -> str:
    """Return a new root name: `<program>-<6 random base32 letters>`, of which one at least is a digit and one
    is not, so that few words and numbers of people have this form."""
    while True:
        name = f"{program[:41]}-{''.join(secrets.choice(NAME_ALPHABET) for _ in range(6))}"
        if is_generated(name):
            return name


def is_generated(name: str) -> bool:
    """Return whether a root name has the form of `fresh_name`; lua/common.lua computes the same.

    >>> is_generated("proc-k3xab7"), is_generated("web-server"), is_generated("run-234567")
    (True, False, False)
    """
    return _GENERATED.fullmatch(name) is not None


_COUNT = (Ordinal, "a whole number, 1 or more, is needed")
_DAYS = (Days, "a number of days is needed, 0 to keep for ever")


def check_limits(limits: TreeLimits) -> TreeLimits:
    """Return `limits` as they are stored. Raises `InvalidArgument` for an invalid value."""
    if not isinstance(limits, TreeLimits):
        raise InvalidArgument("limits", f"fdstore.TreeLimits(...) is needed, not {quoted(limits)}")
    checked: dict[str, Any] = {}
    for name in limits.__struct_fields__:
        value, (kind, needed) = getattr(limits, name), _COUNT if name in LIMITS else _DAYS
        if value is msgspec.UNSET:
            continue
        try:
            # days become a float: equal limits must encode to equal texts
            checked[name] = msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            raise InvalidArgument(name, needed) from error
    return TreeLimits(**checked)


def due_at(limits: TreeLimits, now_s: float) -> str:
    """Return when a tree used at `now_s` may be collected, as a score of the `trees` key."""
    return f"{now_s + limits.retention_days * DAY_S:.3f}" if limits.retention_days else "+inf"
