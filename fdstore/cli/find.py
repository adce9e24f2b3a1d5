"""The verb find: find processes and descriptors by name, and by words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fdstore.cli import output, tables
from fdstore.cli.colours import paint
from fdstore.cli.progress import progress
from fdstore.cli.session import NOTHING_FOUND, CliSession, verb, where_else
from fdstore.cli.tables import Column, Table, key
from fdstore.text.layout import show_controls
from fdstore.text.quantities import format_size

if TYPE_CHECKING:
    from fdstore.store.views.finding import Findings
    from fdstore.store.views.word_search import WordMatch
    from fdstore.text.excerpts import WordExcerpt

INDENT = "    "
"""What the line of an excerpt begins with, below that of its match."""

MIN_EXCERPT = 20

PROCESSES = Table((key("PROCESS"), Column("STATE"), Column("PROGRAM", least=10)), whole="fdstore log PROC")
DESCRIPTORS = Table(
    (
        key("PROCESS"),
        key("FD"),
        Column("STATE"),
        Column("SIZE", drop=1),
        Column("SOURCE", least=12),
    ),
    whole="fdstore stat PROC FD",
)
WORDS = Table(
    (key("PROCESS"), Column("STATE"), key("FOUND IN"), Column("PROGRAM", least=10)), whole="fdstore log PROC"
)


@verb
@click.argument("pattern", metavar="PATTERN")
def find(session: CliSession, pattern: str) -> None:
    """Find runs by words of their tasks, answers and errors, processes by id, and texts by source or name.

    Words are found in tasks, answers, errors (why a process ended, or a call or an ask of it failed) and
    sources of the 500 trees used last: in processes that have all the words, or words that begin so; the text
    around them is below each. Words within a text: `fdstore search`.

    A name is found by a part of it: ids of processes and their programs, sources, the KEY of name:KEY. With
    `*`, `?` or `[` PATTERN is a glob for the whole name; case is ignored. A content is listed under each
    process that holds it. A URL (fdstore://PROCESS/fd:3) finds the process or descriptor that it names. The
    exit code is 0 if something was found, else 1.

    \b
    fdstore find build.log
    fdstore find '*.log'
    fdstore find 'refund policy'
    """
    from fdstore.store.tree_facts import tree_names
    from fdstore.store.views import finding

    with session.store(use="look") as store, progress("find", None, "tree") as tell:
        found = store.run(finding.find(store.prefix, pattern, tell or (lambda done: None)))
        is_empty = not (found.processes or found.descriptors or found.words)
        has_trees = not is_empty or bool(store.run(tree_names(store.prefix, [])))
        elsewhere = None if has_trees else where_else(store)
    if session.as_json:
        output.documents((*found.processes, *found.descriptors, *found.words))
    else:
        _print(pattern, found)
    output.report_unreadable(found.unreadable, as_json=session.as_json)
    if is_empty:
        if not session.as_json:
            output.say("fdstore: nothing found")
            if elsewhere:
                output.say(f"fdstore: {elsewhere}")
        click.get_current_context().exit(NOTHING_FOUND)


def _print(pattern: str, found: Findings) -> None:
    if found.processes:
        rows = [[each.id, each.state, each.program or "-"] for each in found.processes]
        output.table(PROCESSES, rows)
    if found.descriptors:
        if found.processes:
            output.line()
        rows = [
            [each.process, each.fd, each.state, format_size(each.bytes), each.source]
            for each in found.descriptors
        ]
        output.table(DESCRIPTORS, rows)
    if found.words:
        if found.processes or found.descriptors:
            output.line()
        rows = [[each.process, each.state, _place(each), each.program or "-"] for each in found.words]
        columns, coloured = output.columns(), output.use_colours()
        below = [
            each.excerpt.text and INDENT + _excerpt(pattern, each.excerpt, columns, coloured=coloured)
            for each in found.words
        ]
        output.table(WORDS, rows, below)


def _place(found: WordMatch) -> str:
    return f"{found.found_in} of {found.fd}" if found.fd else found.found_in


def _excerpt(query: str, excerpt: WordExcerpt, columns: int | None, *, coloured: bool) -> str:
    """Return an excerpt as one line, as wide as the terminal, its marks coloured if colours are on."""
    from fdstore.text.excerpts import excerpt_around

    room = None if columns is None else max(MIN_EXCERPT, columns - len(INDENT))
    if room is not None and tables.width(excerpt.text) > room:
        chars = room * len(excerpt.text) // tables.width(excerpt.text)
        excerpt = excerpt_around(query, excerpt.text, chars - 2)
    return "".join(
        paint(shown, "match") if is_marked and coloured else shown
        for part, is_marked in excerpt.parts
        for shown in [show_controls(part, keep="")]
    )
