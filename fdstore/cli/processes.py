"""The verb ps: show processes."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click
import msgspec

from fdstore.cli import output
from fdstore.cli.durations import DURATION
from fdstore.cli.session import CliSession, verb, where_else
from fdstore.cli.tables import Column, Table, key, number, reason
from fdstore.errors import NotFound
from fdstore.model.ends import in_words
from fdstore.model.lifecycle import ENDED, PROCESS_MOVES, waited_for
from fdstore.model.records import TOKEN_COUNTS, ProcessRecord, Unreadable
from fdstore.text.quantities import ago, format_costs, format_count, format_size, format_tokens

if TYPE_CHECKING:
    from fdstore.client import Store
    from fdstore.model.records import TreeRecord


STATES = tuple(PROCESS_MOVES)
TABLE = Table(
    (
        key("PROCESS", least=16),
        Column("STATE"),
        Column("PROGRAM", least=10, drop=4),
        Column("STARTED", drop=1),
        Column("ENDED", drop=3),
        Column("TOKENS", drop=2),
        number("BYTES", drop=5),
        reason("DETAIL"),
    ),
    whole="fdstore log PROC",
)
LIST_ORDERS = ("id", "started", "ended", "state", "program", "tokens", "bytes")
WATCH_EVERY_S = 2.0


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """The processes to show, and their order: the options of the verb."""

    tree: str | None
    with_ended: bool
    states: tuple[str, ...]
    program: str | None
    since_s: float | None
    order: str

    @property
    def leaves_out_ended(self) -> bool:
        """Return whether processes that have ended are not shown: neither they nor a choice among all were
        asked for."""
        return not (self.with_ended or self.tree or self.states or self.program or self.since_s is not None)

    def selects(self, process: ProcessRecord, now_s: float) -> bool:
        """Return whether a process is shown."""
        if self.leaves_out_ended and process.state in ENDED:
            return False
        times = [at for at in (process.started_at, process.ended_at) if at is not None]
        return (
            (not self.states or process.state in self.states)
            and (self.program is None or process.program == self.program)
            and (self.since_s is None or any(at >= now_s - self.since_s for at in times))
        )


@verb
@click.argument("tree", metavar="[TREE]", required=False)
@click.option("-a", "--all", "with_ended", is_flag=True, help="Ended processes, too.")
@click.option(
    "--state", "states", multiple=True, type=click.Choice(STATES), help="Only in this state; repeatable."
)
@click.option("--program", metavar="NAME", help="Only processes of this program.")
@click.option(
    "--since",
    "since_s",
    type=DURATION,
    metavar="TIME",
    help="Only what started or ended in the last TIME: 90s, 30m, 12h, 7d.",
)
@click.option(
    "--sort",
    "order",
    type=click.Choice(LIST_ORDERS),
    default="id",
    help="Order. id, the default: as trees; started, ended: the latest first; tokens, bytes: the most first.",
)
@click.option("--watch", is_flag=True, help=f"Show them again every {WATCH_EVERY_S:g} s until Ctrl-C.")
def ps(session: CliSession, watch: bool, **chosen: Any) -> None:
    """Show the processes that have not ended, of all trees; with -a all of them.

    Of TREE all are shown, and what it uses of its limits. --state, --program and --since choose among ended
    ones, too.

    Damaged records are left out, with a line on standard error; with --json the last document lists them in
    `unreadable`. With TREE each process has `tree_tokens` and `tree_model_calls` too, those of all of them,
    and the tokens by kind: `tree_input_tokens`, `tree_output_tokens`, `tree_cache_read_tokens`,
    `tree_cache_write_tokens`.

    \b
    fdstore ps --state running --state waiting
    fdstore ps --since 1h --sort started
    """
    query = Query(**chosen)
    with session.store(use="look") as store:
        _print(session, _find(store, query))
        if watch:
            output.end_with_reader()
        while watch:
            time.sleep(WATCH_EVERY_S)
            found = _find(store, query)
            output.clear_screen()
            _print(session, found)


class ProcessListing(msgspec.Struct, frozen=True, kw_only=True):
    """The processes to show in order, each with the branch to draw before it. `usage`: of the one tree that
    was asked for. `ended`: how many ended ones are left out. `is_empty`: no process exists,
    and `elsewhere` says where some do."""

    rows: list[tuple[str, ProcessRecord]]
    order: str
    sizes: dict[str, int]
    usage: TreeRecord | None
    ended: int
    is_empty: bool
    elsewhere: str | None
    unreadable: list[Unreadable]
    now_s: float


def _find(store: Store, query: Query) -> ProcessListing:
    from fdstore.agents.runtime.eligibility import explained
    from fdstore.store.clock import redis_now
    from fdstore.store.views.shown_processes import fold_lanes

    one = None if query.tree is None else store.tree(query.tree)
    if one is None:
        survey = store.survey()
        members = [member for each in survey.trees for member in each.members]
        damaged = survey.unreadable
    else:
        members, damaged = list(one.members), list(one.unreadable)
    now = store.run(redis_now())
    folded = store.run(fold_lanes(store.prefix, members))
    found = store.run(explained(store.prefix, [each for each in folded if query.selects(each, now)]))
    sizes = _sizes(store, found) if query.order == "bytes" else {}
    ordered = [("", process) for process in sorted(found, key=lambda each: _rank(each, query.order, sizes))]
    return ProcessListing(
        rows=list(as_trees(found)) if query.order == "id" else ordered,
        order=query.order,
        sizes=sizes,
        usage=one,
        ended=sum(member.state in ENDED for member in members) if query.leaves_out_ended else 0,
        is_empty=not members,
        elsewhere=None if members else where_else(store),
        unreadable=damaged,
        now_s=now,
    )


def _print(session: CliSession, found: ProcessListing) -> None:
    if session.as_json:
        for _, process in found.rows:
            used = {} if found.usage is None else usage_fields(found.usage)
            output.document({**msgspec.to_builtins(process), **used})
    elif found.rows:
        absent = [] if found.sizes else ["BYTES"]
        if not any(process.tokens for _, process in found.rows):
            absent.append("TOKENS")
        table = TABLE.without(*absent).keeping(found.order.upper())
        rows = [_row(branch, process, found) for branch, process in found.rows]
        output.table(table, [[row[name] for name in table.names] for row in rows])
        if found.usage:
            output.line(format_usage(found.usage))
        if found.ended:
            output.note(f"{format_count(found.ended, 'process', 'processes')} ended: fdstore ps -a")
    elif found.ended:
        output.note(f"all have ended: {format_count(found.ended, 'process', 'processes')}; fdstore ps -a")
    elif not found.is_empty:
        output.note("no process matches")
    elif not found.unreadable:
        output.say("there are no processes yet; `fdstore put PROC FILE` creates the first")
        if found.elsewhere:
            output.say(found.elsewhere)
    output.report_unreadable(found.unreadable, as_json=session.as_json)


def _sizes(store: Store, processes: Iterable[ProcessRecord]) -> dict[str, int]:
    """Return the bytes of text behind the descriptors of each process, by id."""
    from fdstore.store.views import usage

    sizes = {}
    for tree in sorted({process.id.partition(".")[0] for process in processes}):
        with suppress(NotFound):  # it was just collected
            for each in store.run(usage.usage_of_tree(store.prefix, tree)).processes:
                sizes[each.process] = each.bytes
    return sizes


def _rank(process: ProcessRecord, order: str, sizes: dict[str, int]) -> tuple[Any, ...]:
    match order:
        case "started":
            return (-(process.started_at or 0.0), process.id)
        case "ended":
            return (-(process.ended_at or 0.0), process.id)
        case "state":
            return (STATES.index(process.state), process.id)
        case "tokens":
            return (-process.tokens, process.id)
        case "bytes":
            return (-sizes.get(process.id, 0), process.id)
        case _:
            return (process.program or "", process.id)


def usage_fields(tree: TreeRecord) -> dict[str, int]:
    """Return what a tree has used in all, as fields of a JSON document about one of its processes."""
    counts = {f"tree_{each}": getattr(tree.usage, each) for each in TOKEN_COUNTS}
    return {"tree_tokens": tree.all_tokens, **counts, "tree_model_calls": tree.all_model_calls}


def format_usage(tree: TreeRecord) -> str:
    """Format what a tree uses of its limits, in one line."""
    from fdstore.cli.limits import format_value
    from fdstore.store.trees.limit_usage import limits_of_tree

    parts = []
    if tree.usage.tokens:
        parts.append(f"tokens {format_tokens(tree.usage)}")
    if cost := format_costs(tree.members):
        parts.append(f"cost {cost}")
    for each in limits_of_tree(tree):
        if each.value is None:
            continue
        used, limit = (format_value(value, each.unit) for value in (each.used, each.value))
        parts.append(f"{each.name.removeprefix('tree_')} {used} of {limit}")
    return f"uses {', '.join(parts)}"


def as_trees(processes: Iterable[ProcessRecord]) -> Iterator[tuple[str, ProcessRecord]]:
    """Yield each process after its parent, children by number, with the branch to draw before its id."""
    known = {process.id: process for process in processes}
    below: dict[str, list[ProcessRecord]] = defaultdict(list)
    for process in known.values():
        parent = process.id.rpartition(".")[0]
        below[parent if parent in known else ""].append(process)

    # a stack instead of recursion, since trees may be deep
    waiting = [("", "", root) for root in reversed(below[""])]
    while waiting:
        branch, under, process = waiting.pop()
        yield branch, process
        children = sorted(below[process.id], key=lambda child: int(child.id.rpartition(".")[2]), reverse=True)
        for i, child in enumerate(children):
            last = i == 0
            waiting.append((under + ("└─ " if last else "├─ "), under + ("   " if last else "│  "), child))


def _row(branch: str, process: ProcessRecord, found: ProcessListing) -> dict[str, str]:
    now_s = found.now_s
    return {
        "PROCESS": branch + process.id,
        "STATE": process.state,
        "PROGRAM": process.program or "-",
        "STARTED": "-" if process.started_at is None else ago(process.started_at, now_s),
        "ENDED": "-" if process.ended_at is None else ago(process.ended_at, now_s),
        "TOKENS": format_tokens(process),
        "BYTES": format_size(found.sizes.get(process.id, 0)),
        "DETAIL": "; ".join(process_details(process, now_s)),
    }


def process_details(process: ProcessRecord, now_s: float) -> Iterator[str]:
    if process.reason:
        yield in_words(process.reason)
    if process.exit_code:
        yield f"exit code {process.exit_code}"
    if process.waiting_for:
        yield f"waits for {', '.join(waited_for(process.waiting_for))}"
    if process.worker and process.state == "running":
        lapsed = process.lease_until is not None and process.lease_until < now_s
        yield f"on {process.worker}{' (its lease has expired)' if lapsed else ''}"
    if process.trouble:
        yield process.trouble
    if process.attempt > 1:
        yield f"attempt {process.attempt}"
    if process.losses:
        yield f"{process.losses} lost"
