"""The limits of a tree, and how much of them it uses."""

from __future__ import annotations

from msgspec import UnsetType

from fdstore.model.records import Record, TreeRecord
from fdstore.store.trees.ceilings import CEILINGS
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
    """Return every limit of a tree that has a ceiling."""
    used = {
        "tree_depth": max((member.id.count(".") + 1 for member in tree.members), default=0),
        "tree_live": tree.live,
        "tree_processes": tree.processes,
        "tree_fds": tree.fds,
        "tree_bytes": tree.bytes,
        "tree_export_bytes": tree.export_bytes,
        "tree_model_calls": tree.all_model_calls,
        "tree_token_budget": tree.all_tokens,
        "tree_model_calls_per_day": tree.model_calls,
        "tree_tokens_per_day": tree.tokens,
    }
    day = moment(tree.usage_day * DAY_S).partition("T")[0] if tree.usage_day else None
    return [
        LimitStatus(
            tree=tree.id,
            name=name,
            value=value_or_none(getattr(tree.limits, name)),
            used=count,
            unit=CEILINGS[name].unit,
            day=day if name.endswith("_per_day") else None,
        )
        for name, count in used.items()
    ]


def budgets_of_tree(tree: TreeRecord) -> list[LimitStatus]:
    """Return the budgets that a tree has, of tokens and of model calls in all."""
    names = ("tree_token_budget", "tree_model_calls")
    return [each for each in limits_of_tree(tree) if each.name in names and each.value is not None]


def value_or_none(limit: int | UnsetType | None) -> int | None:
    """Return a limit; None if a tree has none of this name."""
    return None if isinstance(limit, UnsetType) else limit
