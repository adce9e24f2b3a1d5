"""`[limits]` of a program file: what a process may use, and the tree of all that it spawns.

Each key has its type, its bounds, its default and its description here, as in `program_file`, with which it
shares the base of sections.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from fdstore.model.pipeline_limits import DEFAULTS
from fdstore.model.records import TreeLimits
from fdstore.text.numbers import MAX_INTEGER

Size = Annotated[int, Meta(ge=1, le=MAX_INTEGER)]
# bounded where clocks and waits still work: a lock refuses a time-out of more than 292 years
Seconds = Annotated[float, Meta(ge=1, le=1e9)]
Days = Annotated[float, Meta(ge=0, le=1e6)]


def about(description: str, example: object = None, **schema: object) -> Meta:
    """Return what the schema and the file of `fdstore init` say about a key. Nothing of it is checked."""
    examples = None if example is None else [example]
    return Meta(description=description, examples=examples, extra_json_schema=schema or None)


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of all sections."""


class Limits(Section, frozen=True, kw_only=True):
    """The limits of one process of a program, stored with it. None means unlimited."""

    max_turns: Annotated[Size, about("The most answers of the model.")] = 50
    wall_seconds: Annotated[Seconds, about("The most seconds from its start to its end.")] = (
        DEFAULTS.wall_seconds
    )
    token_budget: Annotated[
        Size | None, about("The most tokens, in and out. Default: no limit.", 1_000_000)
    ] = None
    max_losses: Annotated[Size, about("How often it may crash its worker before it fails.")] = 3
    forks_may_spawn: Annotated[bool, about("Whether its forks may spawn and fork.")] = False
    stream_bytes: Annotated[Size, about("The most bytes that one stream may store.")] = DEFAULTS.stream_bytes
    stream_idle_seconds: Annotated[Seconds, about("The most seconds a stream may be silent.")] = (
        DEFAULTS.stream_idle_seconds
    )


_TREE = TreeLimits()


class LimitsSection(Limits, frozen=True, kw_only=True):
    """Limits of one process, and of the tree of all that it spawns: tree_... and retention_days, which
    count in the program that is run."""

    tree_depth: Annotated[Size, about("The most generations of processes.")] = _TREE.tree_depth
    tree_live: Annotated[Size, about("The most processes that have not ended.")] = _TREE.tree_live
    tree_processes: Annotated[Size, about("The most processes, ended ones too.")] = _TREE.tree_processes
    tree_fds: Annotated[Size, about("The most contents; shared descriptors cost nothing.")] = _TREE.tree_fds
    tree_bytes: Annotated[Size, about("The most bytes of text.")] = _TREE.tree_bytes
    tree_export_bytes: Annotated[Size, about("The most bytes that fd_to_file may write.")] = (
        _TREE.tree_export_bytes
    )
    tree_model_calls_per_day: Annotated[Size, about("The most answers of models in a UTC day.")] = (
        _TREE.tree_model_calls_per_day
    )
    tree_tokens_per_day: Annotated[Size, about("The most tokens in a UTC day: in, out and cached.")] = (
        _TREE.tree_tokens_per_day
    )
    retention_days: Annotated[Days, about("Days that the tree is kept after its last use; 0 for ever.")] = (
        _TREE.retention_days
    )

    tree_token_budget: Annotated[
        Size | None, about("The most tokens of all its agents, in and out. Default: no limit.", 10_000_000)
    ] = None
    tree_model_calls: Annotated[
        Size | None, about("The most answers of models of all its agents. Default: no limit.", 1000)
    ] = None

    @property
    def of_process(self) -> Limits:
        return Limits(**{name: getattr(self, name) for name in Limits.__struct_fields__})

    @property
    def of_tree(self) -> TreeLimits:
        # those of run_python are operators' alone; programs have [python]
        values = {name: getattr(self, name, None) for name in TreeLimits.__struct_fields__}
        return TreeLimits(**{name: value for name, value in values.items() if value is not None})
