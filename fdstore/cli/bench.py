"""The verb bench: measure fdstore."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fdstore.cli import output
from fdstore.cli.session import Session, verb
from fdstore.cli.tables import table

if TYPE_CHECKING:
    from fdstore.bench.measuring import Row
    from fdstore.bench.tasks.results import Verdict

BAR_MISSED = 1
AREAS = (
    "reading",
    "bytes",
    "names",
    "writing",
    "trips",
    "streams",
    "memory",
    "sharing",
    "growth",
    "spawning",
    "agents",
    "crowd",
    "starting",
)
TASKS = "tasks"


@verb
@click.argument("areas", metavar="[AREA]...", nargs=-1, type=click.Choice((*AREAS, TASKS)))
@click.option("--quick", is_flag=True, help="Use at most 10 MB; takes less than half a minute.")
@click.option("--task", "tasks", metavar="NAME", multiple=True, help="Of the area tasks, only this task.")
@click.option("--markdown", is_flag=True, help="Print the tasks as the table of docs/how-to/costs.md.")
def bench(
    session: Session, areas: tuple[str, ...], quick: bool, tasks: tuple[str, ...], markdown: bool
) -> None:
    """Measure fdstore against plain Redis commands that move the same bytes.

    Runs on a private server; your data is not touched. Every ratio has a bar; the exit code is 1 if one is
    missed. A wide spread means that the machine was busy. AREAS are reading, bytes, names, writing, trips
    (round trips), streams, memory, sharing, growth, spawning, agents, crowd and starting. The default is all
    of them, with --quick all but growth and agents.

    The area tasks is another measurement: how many tokens whole tasks cost an agent that sees everything, one
    whose host cuts long results as Codex does, one whose host puts them in files as Claude Code does, and one
    with fdstore; and whether what it saw proves the answer. Its model is a script.

    \b
    fdstore bench --quick
    fdstore bench reading writing --json
    fdstore bench tasks
    fdstore bench tasks --task "quote a function"
    """
    measured = [area for area in areas if area != TASKS]
    if (tasks or markdown) and areas != (TASKS,):
        raise click.UsageError("--task and --markdown are for `fdstore bench tasks`")
    is_ok = True
    if measured or not areas:
        is_ok = _measure_areas(session, measured, quick=quick)
    if TASKS in areas:
        is_ok &= _measure_tasks(session, tasks, markdown=markdown)
    if not is_ok:
        click.get_current_context().exit(BAR_MISSED)


def _measure_areas(session: Session, areas: list[str], *, quick: bool) -> bool:
    from fdstore.bench.suite import measure

    rows = []
    for row in measure(areas, quick=quick):
        rows.append(row)
        if session.as_json:
            output.document(row)
        else:
            output.note(f"{row.case}: {_number(row, row.value)}")
    if not session.as_json:
        output.line(format_rows(rows))
    return all(row.ok for row in rows)


def _measure_tasks(session: Session, names: tuple[str, ...], *, markdown: bool) -> bool:
    from fdstore.bench.tasks import results
    from fdstore.bench.tasks.suite import TASKS, measure_tasks

    for name in names:
        if name not in TASKS:
            raise click.UsageError(f"unknown task {name!r}; the tasks are: {', '.join(TASKS)}")
    verdicts = []
    for verdict in measure_tasks(names):
        verdicts.append(verdict)
        if session.as_json:
            output.document(verdict)
        else:
            output.note(f"{verdict.task}: {'ok' if verdict.ok else 'MISSED'}")
    if markdown:
        output.line(results.markdown(verdicts))
    elif not session.as_json:
        output.line(format_tasks(verdicts))
    return all(verdict.ok for verdict in verdicts)


def format_tasks(verdicts: list[Verdict]) -> str:
    """Format the tasks as a table, a row for each way to show results."""
    from fdstore.bench.tasks import results

    header = ["TASK", "RESULTS", "TOKENS", "CACHED", "TURNS", "ANSWER", "RATIO", "BAR", ""]
    return table(header, results.rows(verdicts), right=["TOKENS", "CACHED", "TURNS"])


def format_rows(rows: list[Row]) -> str:
    """Format the measurements as a table."""
    header = ["MEASURED", "FDSTORE", "REFERENCE", "RATIO", "SPREAD", "BAR", ""]
    cells = [
        [
            row.case,
            row.ours,
            row.theirs,
            _number(row, row.value),
            f"{_number(row, row.low)}-{_number(row, row.high)}" if row.low < row.high else "",
            f"{'>=' if row.bar.at_least else '<='} {_number(row, row.bar.limit)}",
            "ok" if row.ok else "MISSED",
        ]
        for row in rows
    ]
    return table(header, cells, right=["FDSTORE", "REFERENCE", "RATIO", "SPREAD", "BAR"])


def _number(row: Row, value: float) -> str:
    match row.bar.unit:
        case "x":
            return f"{value:.2f}x"
        case "trips":
            return f"{value:.0f}"
        case "%":
            return f"{value:.2g} %" if value < 1 else f"{value:.0f} %" if value >= 10 else f"{value:.1f} %"
        case unit:
            return f"{value:.0f} {unit}" if value >= 10 else f"{value:.1f} {unit}"
