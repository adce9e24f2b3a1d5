"""The tables of `top`: rows of a snapshot, selected and in order.

Cells hold names and reasons of strangers: whatever shows them escapes them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from fdstore.cli.processes import as_trees, process_details
from fdstore.cli.tables import Column, Table, key, number, reason, shorten
from fdstore.model.lifecycle import PROCESS_MOVES, ProcessState
from fdstore.model.records import ProcessRecord
from fdstore.text.quantities import duration, format_count, format_number, format_size, moment

if TYPE_CHECKING:
    from fdstore.store.views.live import LiveSnapshot, LiveWorker

URGENCY: tuple[ProcessState, ...] = ("failed", "ready", "running", "waiting", "open", "cancelled", "exited")
"""The states in the order in which people should look at them; of one, processes in trouble are first."""

ORDERS: dict[str, Callable[[ProcessRecord], Any]] = {
    "tree": lambda process: (),
    "state": lambda process: (URGENCY.index(process.state), not process.trouble, process.id),
    "program": lambda process: (process.program or "", process.id),
    "age": lambda process: (-(process.started_at or 0.0), process.id),
    "tokens": lambda process: (-process.tokens, process.id),
    "losses": lambda process: (-process.losses, process.id),
}
"""Orders of processes; `tree` shows children below their parents."""

MAX_COMMANDS = 48
"""Columns of the description of a sandbox."""

TABLES = {
    "processes": Table(
        (
            key("PROCESS", least=16),
            Column("STATE"),
            Column("PROGRAM", least=10, drop=1),
            number("AGE"),
            number("TOKENS"),
            reason("DETAIL"),
        ),
        whole="fdstore log PROC",
    ),
    "trees": Table(
        (
            key("TREE"),
            number("LIVE"),
            number("ALL", drop=2),
            number("CONTENTS", drop=1),
            number("SIZE"),
            number("TOKENS"),
            number("AGE", drop=3),
            number("USED"),
        )
    ),
    "streams": Table(
        (
            key("CONTENT", least=16),
            Column("WRITER", least=10, drop=1),
            number("LENGTH"),
            number("AGE"),
            Column("SOURCE", least=12),
        ),
        whole="fdstore stat PROC FD",
    ),
    "workers": Table(
        (
            key("WORKER"),
            number("RUNS"),
            Column("BUSY", least=8),
            Column("AGENTS", least=8, drop=2),
            Column("COMMANDS", least=8, drop=1),
            reason("PROCESSES", least=12),
        ),
        whole="fdstore status",
    ),
}
VIEWS = tuple(TABLES)


class TopRow(msgspec.Struct, frozen=True):
    """A row of a table: what it is about (the id of a process, tree, content or worker), and its cells."""

    key: str
    cells: tuple[str, ...]

    def has(self, words: str) -> bool:
        """Return whether its cells contain all these words, in any case."""
        text = " ".join(self.cells).casefold()
        return all(word in text for word in words.casefold().split())


def rows_of(view: str, snapshot: LiveSnapshot, *, order: str = "tree", words: str = "") -> list[TopRow]:
    """Return the rows of a view that contain `words`; processes in an order of `ORDERS`."""
    match view:
        case "trees":
            rows = _trees(snapshot)
        case "streams":
            rows = _streams(snapshot)
        case "workers":
            rows = _workers(snapshot)
        case _:
            rows = _processes(snapshot, order)
    return [row for row in rows if row.has(words)]


def _processes(snapshot: LiveSnapshot, order: str) -> list[TopRow]:
    if order == "tree":
        ordered = list(as_trees(sorted(snapshot.processes, key=lambda each: each.id.partition(".")[0])))
    else:
        ordered = [("", each) for each in sorted(snapshot.processes, key=ORDERS[order])]
    return [TopRow(each.id, _process(branch, each, snapshot.now)) for branch, each in ordered]


def _process(branch: str, process: ProcessRecord, now: float) -> tuple[str, ...]:
    until = process.ended_at or now
    age = "-" if process.started_at is None else duration(until - process.started_at)
    return (
        branch + process.id,
        process.state,
        process.program or "-",
        age,
        format_number(process.tokens) if process.tokens else "-",
        "; ".join(process_details(process, now)),
    )


def _trees(snapshot: LiveSnapshot) -> list[TopRow]:
    tokens: dict[str, int] = {}
    for process in snapshot.processes:
        tree = process.id.partition(".")[0]
        tokens[tree] = tokens.get(tree, 0) + process.tokens
    return [
        TopRow(
            each.id,
            (
                each.id,
                format_number(each.live),
                format_number(each.processes),
                format_number(each.fds),
                format_size(max(0, each.bytes)),
                format_number(tokens[each.id]) if tokens.get(each.id) else "-",
                duration(snapshot.now - each.created_at),
                duration(snapshot.now - each.used_at),
            ),
        )
        for each in snapshot.trees
    ]


def _streams(snapshot: LiveSnapshot) -> list[TopRow]:
    return [
        TopRow(
            each.content,
            (
                f"{each.process} {each.fd}",
                each.process,
                format_size(each.bytes),
                duration(snapshot.now - each.created_at),
                each.source,
            ),
        )
        for each in snapshot.streams
    ]


def _workers(snapshot: LiveSnapshot) -> list[TopRow]:
    return [
        TopRow(
            each.name,
            (
                each.name,
                format_number(len(each.runs)),
                _busy(each),
                each.no_agents or "taken"
                if each.vanished_at is None
                else f"not seen since {moment(each.vanished_at)}",
                shorten(each.commands or "-", MAX_COMMANDS),
                ", ".join(each.runs),
            ),
        )
        for each in snapshot.workers
    ]


def _busy(worker: LiveWorker) -> str:
    load = worker.load
    if load is None or worker.vanished_at is not None:
        return "-"
    return f"{load.busy} of {load.slots}" + (f", {load.lost} lost" if load.lost else "")


def asking_line(snapshot: LiveSnapshot) -> str:
    """Return which processes wait for people, and how to answer; "" if none does."""
    from fdstore.store.views.health_rule import people_finding

    return "".join(f"{each.said}; {each.advice}" for each in people_finding(snapshot.asking))


def headline(snapshot: LiveSnapshot) -> str:
    """Return the counts of a snapshot in one line; those that ask a model for another process are none of the
    processes of its tree."""
    states: dict[str, int] = {}
    members = [process for process in snapshot.processes if process.kind != "asks"]
    for process in members:
        states[process.state] = states.get(process.state, 0) + 1
    counted = ", ".join(f"{states[state]} {state}" for state in PROCESS_MOVES if state in states)
    of_all = f" of {snapshot.total_trees}" if snapshot.total_trees > len(snapshot.trees) else ""
    parts = [
        f"{format_count(len(snapshot.trees), 'tree')}{of_all}",
        format_count(len(members), "process", "processes") + (f" ({counted})" if counted else ""),
        format_count(len(snapshot.streams), "stream"),
        format_count(sum(each.vanished_at is None for each in snapshot.workers), "worker"),
    ]
    parts += [f"not shown: {each}" for each in snapshot.left_out]
    if snapshot.unreadable:
        parts.append(f"{len(snapshot.unreadable)} damaged: fdstore doctor")
    return ", ".join(parts)
