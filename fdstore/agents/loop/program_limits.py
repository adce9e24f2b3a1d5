"""`[limits]` of a program file: what a process may use, and the tree of all that it spawns.

The keys of a process are here, with those of its pipelines from `pipeline_limits`. Those of the tree are the
limits of `TreeLimits` that programs may ask for: each key has its type, its bounds, its default and its
description from there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, TypeVar, get_type_hints

import msgspec

from fdstore.model.fields import about
from fdstore.model.msgspec_types import prepare
from fdstore.model.pipeline_limits import DEFAULTS, STREAM_IDLE, WALL_SECONDS, Seconds, StreamBytes
from fdstore.model.records import Ordinal, TreeLimits
from fdstore.store.processes.leases import MAX_LOSSES
from fdstore.store.tree_limits import LIMITS

S = TypeVar("S", bound=msgspec.Struct)


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of all sections."""


class Limits(Section, frozen=True, kw_only=True):
    """The limits of one process of a program, stored with it. None means unlimited."""

    max_turns: Annotated[Ordinal, about("The most answers of the model.")] = 50
    wall_seconds: Annotated[Seconds, WALL_SECONDS] = DEFAULTS.wall_seconds
    token_budget: Annotated[
        Ordinal | None, about("The most tokens, in and out. Default: no limit.", 1_000_000)
    ] = None
    max_losses: Annotated[Ordinal, about("How often it may crash its worker before it fails.")] = MAX_LOSSES
    forks_may_spawn: Annotated[bool, about("Whether its forks may spawn and fork.")] = False
    stream_bytes: StreamBytes = DEFAULTS.stream_bytes
    stream_idle_seconds: Annotated[Seconds, STREAM_IDLE] = DEFAULTS.stream_idle_seconds


def _keys_of_tree() -> Iterator[tuple[str, Any, Any]]:
    """Yield the name, the type and the default of each key that is a limit of the tree."""
    for name, hint in get_type_hints(TreeLimits, include_extras=True).items():
        limit, default = LIMITS.get(name), getattr(TreeLimits(), name)
        if limit is None:
            yield name, hint, default
        elif limit.used and default is msgspec.UNSET:
            said = about(f"{limit.description} Default: no limit.", limit.example)
            yield name, Annotated[Ordinal | None, said], None
        elif limit.used:
            yield name, Annotated[Ordinal, about(limit.description)], default


def _with_keys_of_tree(section: type[S]) -> type[S]:
    names = {"__doc__": section.__doc__, "__module__": section.__module__}
    return msgspec.defstruct(  # type: ignore[return-value]
        section.__name__,
        list(_keys_of_tree()),
        bases=(section,),
        namespace=names,
        frozen=True,
        kw_only=True,
        forbid_unknown_fields=True,
    )


@_with_keys_of_tree
class LimitsSection(Limits, frozen=True, kw_only=True):
    """Limits of one process, and of the tree of all that it spawns: tree_... and retention_days, which
    count in the program that is run."""

    @property
    def of_process(self) -> Limits:
        return msgspec.convert(self, Limits, from_attributes=True)

    @property
    def of_tree(self) -> TreeLimits:
        values = {name: getattr(self, name, None) for name in TreeLimits.__struct_fields__}
        return TreeLimits(**{name: value for name, value in values.items() if value is not None})


prepare(Limits)
