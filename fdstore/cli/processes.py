"""The verb ps: show processes."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click
import msgspec

from fdstore.cli import output
from fdstore.cli.durations import DURATION
from fdstore.cli.session import Session, verb
from fdstore.cli.tables import ago, format_size, table

if TYPE_CHECKING:
    from fdstore.client import Store
    from fdstore.records import ProcessRecord, TreeRecord


STATES = ("open", "ready", "running", "waiting", "exited", "failed", "cancelled")
ORDERS = ("id", "started", "ended", "state", "program", "bytes")
LOOK_EVERY_S = 2.0


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """Which processes to show, and in which order."""

    tree: str | None
    states: tuple[str, ...]
    program: str | None
    since_s: float | None
    order: str

    def selects(self, process: ProcessRecord, now_s: float) -> bool:
        """Return whether a process is shown."""
        times = [at for at in (process.started_at, process.ended_at) if at is not None]
        return (
            (not self.states or process.state in self.states)
            and (self.program is None or process.program == self.program)
            and (self.since_s is None or any(at >= now_s - self.since_s for at in times))
        )


@verb
@click.argument("tree", metavar="[TREE]", required=False)
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
    type=click.Choice(ORDERS),
    default="id",
    help="Order. id, the default: as trees; started, ended: the latest first; bytes: the largest first.",
)
@click.option("--watch", is_flag=True, help=f"Show them again every {LOOK_EVERY_S:g} s until Ctrl-C.")
def ps(
    session: Session,
    tree: str | None,
    states: tuple[str, ...],
    program: str | None,
    since_s: float | None,
    order: str,
    watch: bool,
) -> None:
    """Show the processes of TREE, or of all trees, including ended ones; for one tree also its usage.

    Damaged records are left out, with a line on standard error; with --json the last document lists them in
    `unreadable`.

    \b
    fdstore ps --state running --state waiting
    fdstore ps --since 1h --sort started
    """
    query = Query(tree=tree, states=states, program=program, since_s=since_s, order=order)
    with session.store(use="look") as store:
        _show(session, store, query)
        while watch:
            time.sleep(LOOK_EVERY_S)
            output.clear_screen()
            _show(session, store, query)


def _show(session: Session, store: Store, query: Query) -> None:
    from fdstore.store.clock import redis_now

    one = None if query.tree is None else store.tree(query.tree)
    if one is None:
        survey = store.survey()
        members = [member for each in survey.trees for member in each.members]
        damaged = survey.unreadable
    else:
        members, damaged = list(one.members), list(one.unreadable)
    now = store.run(redis_now())
    found = [member for member in members if query.selects(member, now)]
    sizes = _sizes(store, found) if query.order == "bytes" else {}
    if query.order == "id":
        rows = list(as_trees(found))
    else:
        rows = [("", process) for process in sorted(found, key=lambda each: _rank(each, query.order, sizes))]
    if session.as_json:
        for _, process in rows if query.order != "id" else [("", each) for each in found]:
            output.document(process)
    elif not members:
        if not damaged:
            output.note("there are no processes yet; `fdstore put PROC FILE` creates the first")
    elif not found:
        output.note("no process matches")
    else:
        head = ["PROCESS", "STATE", "PROGRAM", "STARTED", "ENDED", *(["BYTES"] if sizes else []), "DETAIL"]
        output.print_painted(
            table(
                head,
                [_row(branch, process, now, sizes) for branch, process in rows],
                cut="DETAIL",
                columns=output.columns(),
                coloured=output.use_colours(),
            )
        )
        if one is not None:
            output.line(format_usage(one))
    output.report_unreadable(damaged, as_json=session.as_json)


def _sizes(store: Store, processes: Iterable[ProcessRecord]) -> dict[str, int]:
    """Return the bytes of text behind the descriptors of each process, by id."""
    from fdstore.store import usage

    trees = sorted({process.id.partition(".")[0] for process in processes})
    found = [store.run(usage.usage_of_tree(store.prefix, tree)) for tree in trees]
    return {each.process: each.bytes for tree in found for each in tree.processes}


def _rank(process: ProcessRecord, order: str, sizes: dict[str, int]) -> tuple[Any, ...]:
    match order:
        case "started":
            return (-(process.started_at or 0.0), process.id)
        case "ended":
            return (-(process.ended_at or 0.0), process.id)
        case "state":
            return (STATES.index(process.state), process.id)
        case "bytes":
            return (-sizes.get(process.id, 0), process.id)
        case _:
            return (process.program or "", process.id)


def format_usage(tree: TreeRecord) -> str:
    """Format what a tree uses of its limits, in one line."""
    from fdstore.cli.limits import format_value, limits_of_tree

    parts = []
    for each in limits_of_tree(tree):
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


def _row(branch: str, process: ProcessRecord, now_s: float, sizes: dict[str, int]) -> list[str]:
    return [
        branch + process.id,
        process.state,
        process.program or "-",
        "-" if process.started_at is None else ago(process.started_at, now_s),
        "-" if process.ended_at is None else ago(process.ended_at, now_s),
        *([format_size(sizes.get(process.id, 0))] if sizes else []),
        "; ".join(_details(process, now_s)),
    ]


def _details(process: ProcessRecord, now_s: float) -> Iterator[str]:
    if process.reason:
        yield process.reason
    if process.exit_code:
        yield f"exit code {process.exit_code}"
    if process.waiting_for:
        yield f"waits for {', '.join(process.waiting_for)}"
    if process.worker and process.state == "running":
        lapsed = process.lease_until is not None and process.lease_until < now_s
        yield f"on {process.worker}{' (its lease has expired)' if lapsed else ''}"
    if process.trouble:
        yield process.trouble
    if process.attempt > 1:
        yield f"attempt {process.attempt}"
    if process.losses:
        yield f"{process.losses} lost"
