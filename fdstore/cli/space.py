"""The verbs du and rm: show and free space in Redis."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from fdstore.cli import output
from fdstore.cli.progress import progress
from fdstore.cli.session import CliSession, verb
from fdstore.cli.tables import Column, Table, key, number
from fdstore.errors import FDStoreError
from fdstore.text.quantities import ago, format_count, format_number, format_size

if TYPE_CHECKING:
    from fdstore.client import Store
    from fdstore.store.views.usage import UsageReport

TREES = Table(
    (
        key("TREE"),
        number("BYTES"),
        number("COLD", drop=6),
        number("STAGED", drop=4),
        number("CONTENTS", drop=3),
        number("PROCESSES", drop=1),
        number("NOT ENDED", drop=2),
        Column("USED", drop=5),
    )
)
PROCESSES = Table(
    (key("PROCESS"), Column("STATE", drop=2), number("DESCRIPTORS", drop=1), number("BYTES"), number("FREED"))
)
DESCRIPTORS = Table(
    (
        key("FD"),
        number("BYTES"),
        number("HOLDERS", drop=2),
        Column("STATE", drop=1),
        Column("SOURCE", least=12),
    ),
    whole="fdstore stat PROC FD",
)
STAGED = Table((number("STAGED"), key("PROCESS"), Column("SOURCE", least=12)))


@verb
@click.argument("name", metavar="[TREE|PROC]", required=False)
def du(session: CliSession, name: str | None) -> None:
    """Show how many bytes are stored: by tree, by process of TREE, by descriptor of PROC.

    The largest come first. FREED is the space that a process alone holds: dropping its descriptors frees it.
    STAGED is what is being stored now; what a killed client staged expires after 15 minutes, or with
    its tree. For a root, the processes of its tree and its own descriptors are shown. Journals and the
    overhead of Redis are not counted.

    Damaged records are left out, with a line on standard error; with --json the last document lists them in
    `unreadable`.
    """
    from fdstore.store.clock import redis_now

    with session.store(use="look") as store:
        found = _usage(store, name)
        now = store.run(redis_now())
        memory = _memory(store) if name is None and not session.as_json else ""
    if session.as_json:
        output.documents((*found.trees, *found.processes, *found.descriptors))
        output.documents({"staged": each} for each in found.staged)
    elif name is None:
        _print_trees(found, now, memory)
    else:
        _print_parts(name, found)
    output.report_unreadable(found.unreadable, as_json=session.as_json)


def _usage(store: Store, name: str | None) -> UsageReport:
    from fdstore.store.keys import process_keys
    from fdstore.store.views import usage

    if name is None:
        return store.run(usage.usage_of_trees(store.prefix))
    keys = process_keys(store.prefix, name)
    with progress(f"du {name}", None, "content") as tell:
        tell = tell or (lambda done: None)
        if name == keys.tree.tree:
            return store.run(usage.usage_of_tree(store.prefix, name, tell))
        return store.run(usage.usage_of_process(keys, tell))


def _memory(store: Store) -> str:
    """Format the memory usage that Redis reports."""
    from fdstore.store.doctor.check import primaries

    infos = [each.info for each in store.run(primaries("memory")) if not each.error]
    used, most = (sum(int(info.get(name, 0)) for info in infos) for name in ("used_memory", "maxmemory"))
    return f"; Redis uses {format_size(used)}{f' of {format_size(most)}' if most else ''}"


def _print_trees(found: UsageReport, now_s: float, memory: str) -> None:
    cold = sum(each.cold_bytes for each in found.trees)
    if found.trees:
        rows = [
            [
                each.tree,
                format_size(each.bytes),
                *([format_size(each.cold_bytes) if each.cold_bytes else "-"] if cold else []),
                format_size(each.staged) if each.staged else "-",
                format_number(each.contents),
                format_number(each.processes),
                format_number(each.live),
                ago(each.used_at, now_s),
            ]
            for each in found.trees
        ]
        output.table(TREES if cold else TREES.without("COLD"), rows)
    total, staged = (sum(getattr(each, name) for each in found.trees) for name in ("bytes", "staged"))
    being_stored = f", {format_size(staged)} more is being stored" if staged else ""
    in_objects = f", {format_size(cold)} of it cold" if cold else ""
    trees = format_count(len(found.trees), "tree")
    output.line(f"{trees} with {format_size(total)}{in_objects}{being_stored}{memory}")


def _print_parts(name: str, found: UsageReport) -> None:
    processes = [
        [
            each.process,
            each.state,
            format_number(each.descriptors),
            format_size(each.bytes),
            format_size(each.freed),
        ]
        for each in found.processes
    ]
    descriptors = [
        [
            each.fd,
            format_size(each.bytes),
            format_number(each.holders),
            f"{each.state}, {each.tier}" if each.tier else each.state,
            each.source,
        ]
        for each in found.descriptors
    ]
    staged = [[format_size(each.bytes), each.process, each.source] for each in found.staged]
    parts = [(PROCESSES, processes), (DESCRIPTORS, descriptors), (STAGED, staged)]
    if not any(rows for _, rows in parts):
        output.note(f"{name} holds nothing")
    for i, (table, rows) in enumerate((table, rows) for table, rows in parts if rows):
        if i:
            output.line()
        output.table(table, rows)


@verb
@click.argument("process", metavar="PROC", required=False)
@click.argument("fds", metavar="FD...", nargs=-1)
@click.option("--tree", metavar="NAME", help="Remove a whole tree permanently.")
@click.option("-y", "--yes", is_flag=True, help="With --tree: do not ask for confirmation.")
@click.option("--kill", is_flag=True, help="With --tree: first cancel its running and waiting processes.")
def rm(
    session: CliSession, process: str | None, fds: tuple[str, ...], tree: str | None, yes: bool, kill: bool
) -> None:
    """Drop descriptors, also of a process that has ended, or with --tree remove a tree with all its data.

    A content is deleted when no process holds it (`fdstore stat` shows who does). If a descriptor cannot be
    dropped, the others still are; the exit code is then 1.

    A tree with a running or waiting agent or pipeline is removed only with --kill. The command asks for
    confirmation; without a terminal it needs --yes. Both forms work while Redis is full. An interrupted
    removal is completed by the next one.
    """
    if tree is not None:
        if process is not None:
            raise click.UsageError("name either PROC FD... or --tree NAME")
        _remove_tree(session, tree, yes=yes, kill=kill)
    elif process is None or not fds:
        raise click.UsageError("nothing to remove: use fdstore rm PROC FD..., or fdstore rm --tree NAME")
    elif yes or kill:
        raise click.UsageError("--yes and --kill need --tree")
    else:
        _close(session, process, fds)


def _close(session: CliSession, process: str, fds: tuple[str, ...]) -> None:
    from fdstore.text.selection import fd_id

    ids = [fd_id(fd) for fd in fds]  # parse all of them first: after a typo nothing is dropped
    failed: FDStoreError | None = None
    with session.process(process, use="remove") as opened:
        for fd in ids:
            try:
                opened.close(fd)
            except FDStoreError as error:
                if failed is not None:
                    output.report(failed, as_json=session.as_json)
                failed = error
            else:
                session.show({"fd": fd, "closed": True}, f"closed {fd}")
    if failed is not None:
        raise failed


def _remove_tree(session: CliSession, name: str, *, yes: bool, kill: bool) -> None:
    with session.store(use="remove") as store:
        contents, held = _look_at_tree(store, name, kill=kill)
        if not yes and not output.confirm(
            f"Permanently remove the tree {name}, {held}?",
            without_terminal="there is no terminal to ask at, so nothing was removed; "
            "--yes removes without asking",
        ):
            output.say(f"fdstore: {name} is unchanged")
            sys.exit(1)
        with progress(f"rm {name}", contents, "content") as tell:
            dropped = store.drop_tree(name, kill=kill, progress=tell)
    if session.as_json:
        output.document(dropped)
        return
    for each in dropped.cancelled:
        output.line(f"cancelled {each}")
    output.line(f"removed {name}: {format_count(dropped.contents, 'content')}")
    output.say(f"fdstore: a new {name} goes on counting, so that no old fd:1 means another text")


def _look_at_tree(store: Store, name: str, *, kill: bool) -> tuple[int | None, str]:
    """Return the number of contents of a tree and a description of it. Raises `NotFound`, `TreeInUse`."""
    from fdstore.errors import DamagedRecord, NotFound, TreeInUse
    from fdstore.model.lifecycle import BUSY
    from fdstore.store.processes.dropping import is_left

    try:
        tree = store.tree(name)
    except DamagedRecord:
        return None, "which cannot be read"
    except NotFound:
        if not store.run(is_left(store.prefix, name)):
            raise
        return None, "which is partly removed"
    busy = [member for member in tree.members if member.state in BUSY]
    if busy and not kill:
        raise TreeInUse(name, busy[0].id, busy[0].state)
    processes = format_count(tree.processes, "process", "processes")
    running = f" ({len(busy)} running or waiting)" if busy else ""
    contents = f"{format_count(tree.fds, 'content')} with {format_size(tree.bytes)}"
    return tree.fds, f"{processes}{running} and {contents}"
