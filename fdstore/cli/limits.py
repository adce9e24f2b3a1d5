"""The verb limits: show and set the operator's ceilings."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

import click

from fdstore.cli import output
from fdstore.cli.session import CliSession, verb
from fdstore.cli.tables import Column, Table, number
from fdstore.model.records import Record, TreeLimits
from fdstore.text.quantities import format_bound, format_count, format_number

if TYPE_CHECKING:
    from fdstore.client import Store
    from fdstore.model.records import TreeRecord
    from fdstore.store.trees.limit_usage import LimitStatus

ACTIONS = {"show": ((0, 1), "[TREE]"), "set": ((2,), "NAME VALUE"), "unset": ((1,), "NAME")}
"""Action -> (possible numbers of arguments, their syntax)."""

CEILINGS_TABLE = Table(
    (
        Column("NAME"),
        number("CEILING"),
        Column("DEFAULT", least=10, drop=2),
        number("A TREE ASKS FOR", drop=1),
        number("USED"),
        Column("OF", least=12),
    ),
    whole="fdstore limits --help",
)
LIMITS_TABLE = Table((Column("NAME"), number("LIMIT"), number("USED"), Column("DAY")))


class CeilingStatus(Record, frozen=True, kw_only=True):
    """One ceiling.

    `value` is the current ceiling (None: no ceiling), of a setting of cold contents its text, `set` whether
    the operator set it, `default` a text. `asked` is the limit of a tree whose program names none. `used` is
    the sum over all trees, if counted.
    """

    name: str
    value: int | str | None
    unit: str
    default: str
    set: bool
    asked: int | None = None
    used: int | None = None
    of: str


class LimitsCommand(click.Command):
    """A command whose help lists every ceiling, from the table that the store itself uses."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        from fdstore.store.objects.settings import COLD_SETTINGS

        for before, word in pairwise(["", *args]):
            if re.fullmatch(r"-[0-9.].*", word):
                said = f"{word} is not a ceiling: 0 allows nothing, `none` means no ceiling"
                of_cold = f"{before} is not negative" if before in COLD_SETTINGS else ""
                raise click.UsageError(of_cold or said, ctx)
        return super().parse_args(ctx, args)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from fdstore.store.objects.settings import COLD_SETTINGS
        from fdstore.store.trees.ceilings import CEILINGS

        with formatter.section("Names"):
            formatter.write_dl(
                [(name, f"{limit.of} [default: {limit.top}]") for name, limit in CEILINGS.items()]
            )
        with formatter.section("Settings of cold contents"):
            formatter.write_dl(
                [(name, f"{each.sets} [default: {each.default}]") for name, each in COLD_SETTINGS.items()]
            )
        super().format_epilog(ctx, formatter)


@verb
@click.argument("action", type=click.Choice(list(ACTIONS)), default="show", metavar="[show|set|unset]")
@click.argument("words", nargs=-1, metavar="[TREE|NAME] [VALUE]")
def limits(session: CliSession, action: str, words: tuple[str, ...]) -> None:
    """Show, set or unset the ceilings: limits of all trees, whatever their programs ask for.

    VALUE is a whole number (64, 20k, 500M), for bytes one with a unit (4GiB, 500MB). 0 allows nothing; none
    means no ceiling, even if there is a default. unset restores the default; that of tree_bytes bounds the
    trees that are created under it.

    A tree that asks for more gets the ceiling; existing trees follow immediately. Requests over a ceiling of
    all trees together fail with quota_exceeded. `set cold URL` (file:///dir, s3://bucket/prefix, gs://, az://)
    moves contents there that nobody reads; they are read as before. Days are UTC days of Redis' clock. If
    Redis has users, only the operator's may set ceilings. `show TREE` shows the limits of one tree, and what
    it uses.
    """
    counts, syntax = ACTIONS[action]
    if len(words) not in counts:
        raise click.UsageError(f"usage: fdstore limits {action} {syntax}")
    from fdstore.store.trees import ceilings

    with session.store(use="look" if action == "show" else "make") as store:
        if action == "show":
            if words:
                _show_tree(session, store.tree(words[0]))
            else:
                _show(session, store)
            return
        name, value = words[0], words[1] if action == "set" else None
        changed = store.run(ceilings.put(store.prefix, name, value))
        [now] = [each for each in found(store) if each.name == name]
    trees = f"; {format_count(changed, 'tree')} changed" if changed else ""
    said = f"{name} is {_in_force(now)} now{trees}"
    session.show({"ceiling": now, "trees_changed": changed}, said)


limits = LimitsCommand(
    name="limits", callback=limits.callback, params=limits.params, help=limits.help, no_args_is_help=False
)


def _in_force(ceiling: CeilingStatus) -> str:
    """Return what holds now; of a setting of cold contents that is not set, its default."""
    from fdstore.store.objects.settings import COLD_SETTINGS

    if ceiling.value is None and ceiling.name in COLD_SETTINGS:
        return ceiling.default
    return format_value(ceiling.value, ceiling.unit)


def _show(session: CliSession, store: Store) -> None:
    rows = found(store)
    if session.as_json:
        output.documents(rows)
        return
    cells = [
        [
            each.name,
            _in_force(each),
            each.default,
            "" if each.asked is None else format_value(each.asked, each.unit),
            "" if each.used is None else format_value(each.used, each.unit),
            each.of,
        ]
        for each in rows
    ]
    output.table(CEILINGS_TABLE, cells)


def format_budget(budget: LimitStatus) -> str:
    """Format one budget.

    >>> from fdstore.store.trees.limit_usage import LimitStatus
    >>> format_budget(LimitStatus(tree="triage", name="tree_model_calls", value=1000, used=12, unit=""))
    'triage: tree_model_calls 12 of 1,000'
    """
    used, value = (format_value(each, budget.unit) for each in (budget.used, budget.value))
    return f"{budget.tree}: {budget.name} {used} of {value}"


def _show_tree(session: CliSession, tree: TreeRecord) -> None:
    from fdstore.store.trees.limit_usage import limits_of_tree

    rows = limits_of_tree(tree)
    if session.as_json:
        output.documents(rows)
        return
    cells = [
        [each.name, format_value(each.value, each.unit), format_value(each.used, each.unit), each.day or ""]
        for each in rows
    ]
    output.table(LIMITS_TABLE, cells)


def found(store: Store) -> list[CeilingStatus]:
    """Return the current state of every ceiling."""
    from fdstore.store.doctor.check import primaries
    from fdstore.store.trees import ceilings, export_quota
    from fdstore.store.trees.limit_usage import value_or_none

    held, defaults = store.run(ceilings.read(store.prefix)), TreeLimits()
    trees, size_bytes = store.run(ceilings.stored_bytes(store.prefix))
    used = {
        "trees": trees,
        "bytes": size_bytes,
        "export_bytes_per_day": store.run(export_quota.read_exported_today(store.prefix)),
    }
    limits_of_memory = [
        int(each.info.get("maxmemory", 0)) for each in store.run(primaries("memory")) if not each.error
    ]
    bounded = [each for each in limits_of_memory if each]
    by_default = {"tree_bytes": ceilings.half_of(min(bounded))} if bounded else {}
    return [
        CeilingStatus(
            name=name,
            value=held.get(name) if name in held.values else by_default.get(name),
            unit=limit.unit,
            default=limit.top,
            set=name in held.values,
            asked=value_or_none(getattr(defaults, name, None)),
            used=used.get(name),
            of=limit.of,
        )
        for name, limit in ceilings.CEILINGS.items()
    ] + _cold_settings(store)


def _cold_settings(store: Store) -> list[CeilingStatus]:
    from fdstore.store.objects.settings import COLD_SETTINGS, written_settings
    from fdstore.store.trees.cold_place import cold_totals

    written = store.run(written_settings(store.prefix))
    contents, size_bytes = store.run(cold_totals(store.prefix))
    return [
        CeilingStatus(
            name=name,
            value=written.get(name),
            unit="bytes" if name == "cold" else "",
            default=each.default,
            set=name in written,
            used=size_bytes if name == "cold" and contents else None,
            of=each.sets,
        )
        for name, each in COLD_SETTINGS.items()
    ]


def format_value(value: int | str | None, unit: str) -> str:
    if value is None:
        return "none"
    if isinstance(value, str):
        return value
    return format_bound(value) if unit == "bytes" else format_number(value)
