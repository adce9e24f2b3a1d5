"""The verb ps: show processes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click

from fdstore.cli import output
from fdstore.cli.session import Session, verb
from fdstore.cli.tables import ago, table

if TYPE_CHECKING:
    from fdstore.records import ProcessRecord, TreeRecord


@verb
@click.argument("tree", metavar="[TREE]", required=False)
def ps(session: Session, tree: str | None) -> None:
    """Show the processes of TREE, or of all trees, including ended ones; for one tree also its usage.

    Damaged records are left out, with a line on standard error; with --json the last document lists them in
    `unreadable`.
    """
    from fdstore.store.clock import redis_now

    with session.store(use="look") as store:
        one = None if tree is None else store.tree(tree)
        if one is None:
            survey = store.survey()
            found = [member for each in survey.trees for member in each.members]
            damaged = survey.unreadable
        else:
            found, damaged = list(one.members), list(one.unreadable)
        now = store.run(redis_now())
    if session.as_json:
        for process in found:
            output.document(process)
    elif not found:
        if not damaged:
            output.note("there are no processes yet; `fdstore put PROC FILE` creates the first")
    else:
        output.print_painted(
            table(
                ["PROCESS", "STATE", "PROGRAM", "STARTED", "ENDED", "DETAIL"],
                [_row(branch, process, now) for branch, process in as_trees(found)],
                cut="DETAIL",
                columns=output.columns(),
                coloured=output.use_colours(),
            )
        )
        if one is not None:
            output.line(format_usage(one))
    output.report_unreadable(damaged, as_json=session.as_json)


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


def _row(branch: str, process: ProcessRecord, now_s: float) -> list[str]:
    return [
        branch + process.id,
        process.state,
        process.program or "-",
        "-" if process.started_at is None else ago(process.started_at, now_s),
        "-" if process.ended_at is None else ago(process.ended_at, now_s),
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
