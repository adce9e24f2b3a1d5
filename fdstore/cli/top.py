"""The verb top: live trees, processes, streams and workers, on a screen that refreshes itself."""

from __future__ import annotations

import click

from fdstore.cli import output
from fdstore.cli.session import CliSession, verb
from fdstore.cli.top_rows import ORDERS, TABLES, asking_line, headline, rows_of
from fdstore.errors import InvalidArgument
from fdstore.setup.optional_packages import require


@verb
@click.option("--once", is_flag=True, help="Print it once; with --json as one JSON document.")
@click.option("--ended", is_flag=True, help="Show processes and trees that have ended, too.")
@click.option(
    "--sort",
    "order",
    type=click.Choice(list(ORDERS)),
    default="tree",
    show_default=True,
    help="Order of the processes; by state, those to look at first: failed, without a worker, running.",
)
@click.option("--filter", "words", metavar="WORDS", default="", help="Only rows with all these words.")
@click.option(
    "--every",
    "every_s",
    type=click.FloatRange(0.5, 3600),
    metavar="SECONDS",
    default=2.0,
    show_default=True,
    help="Pause between refreshes.",
)
def top(session: CliSession, once: bool, ended: bool, order: str, words: str, every_s: float) -> None:
    """Show live trees, processes, streams and workers; look into them, follow them, kill them.

    Enter shows the conversation of a process, d its descriptors, Enter the text of one; k kills a process
    after a question. Each refresh is eleven requests to Redis, six more while a process waits for a worker,
    whatever is stored. Needs the extra `tui`, except with --once.

    \b
    fdstore top --sort tokens
    fdstore top --once --json
    """
    if once or session.as_json:
        if session.as_json and not once:
            raise click.UsageError("--json needs --once")
        _print_once(session, ended=ended, order=order, words=words)
        return
    require(("textual",), "tui")
    if not (output.stdout_is_terminal() and output.stdin_is_terminal()):
        raise InvalidArgument("top", "it needs a terminal; fdstore top --once prints the same once")
    from fdstore.cli.tui.app import TopApp

    with session.store(use="look") as store:
        TopApp(store, session, ended=ended, order=order, words=words, every_s=every_s).run()


def _print_once(session: CliSession, *, ended: bool, order: str, words: str) -> None:
    from fdstore.agents.runtime.eligibility import live_explained
    from fdstore.store.views.health_rule import summary

    with session.store(use="look") as store:
        snapshot = store.run(live_explained(store.prefix, ended=ended))
    if session.as_json:
        output.document(snapshot)
        return
    output.sentence(headline(snapshot))
    output.sentence(summary(snapshot.health))
    if snapshot.asking:
        output.sentence(asking_line(snapshot))
    for view, table in TABLES.items():
        rows = [row.cells for row in rows_of(view, snapshot, order=order, words=words)]
        if not rows:
            continue
        output.line()
        output.table(table, rows)
    output.report_unreadable(snapshot.unreadable, as_json=False)
