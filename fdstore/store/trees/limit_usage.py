"""The limits of a tree, and how much of them it uses."""

from __future__ import annotations

from msgspec import UnsetType

from fdstore.model.records import Record, TreeRecord
from fdstore.store.tree_limits import LIMITS
from fdstore.text.quantities import DAY_S, moment


class LimitStatus(Record, frozen=True, kw_only=True):
    """One limit of a tree, its `value` (None: no limit) and how much is `used`; `day` is the UTC day of a
    limit per day."""

    tree: str
    name: str
    value: int | None
    used: int
    unit: str
    day: str | None = None


def limits_of_tree(tree: TreeRecord) -> list[LimitStatus]:
    """Return every limit of a tree of which something can be used up."""
    day = moment(tree.usage_day * DAY_S).partition("T")[0] if tree.usage_day else None
    return [
        LimitStatus(
            tree=tree.id,
            name=name,
            value=value_or_none(getattr(tree.limits, name)),
            used=getattr(tree, limit.used),
            unit=limit.unit,
            day=day if name.endswith("_per_day") else None,
        )
        for name, limit in LIMITS.items()
        if limit.used
    ]


def budgets_of_tree(tree: TreeRecord) -> list[LimitStatus]:
    """Return the budgets that a tree has, of tokens and of model calls in all."""
    return [each for each in limits_of_tree(tree) if LIMITS[each.name].budget and each.value is not None]


def value_or_none(limit: int | UnsetType | None) -> int | None:
    """Return a limit; None if a tree has none of this name."""
    return None if isinstance(limit, UnsetType) else limit
