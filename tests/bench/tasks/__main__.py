"""`python -m tests.bench.tasks`: run the tasks, and print what they cost. Exits with 1 if a bar is missed."""

from __future__ import annotations

import sys

import click
import msgspec

from fdstore.cli.tables import draw, uncut
from tests.bench.tasks.reading import (
    READING_HEADER,
    READING_RIGHT,
    ReadingVerdict,
    measure_reading,
    reading_markdown,
    reading_rows,
)
from tests.bench.tasks.reading_tasks import READING_TASKS
from tests.bench.tasks.results import HEADER, RIGHT, Verdict, markdown, rows
from tests.bench.tasks.running import TASKS, measure_tasks


@click.command
@click.option("--task", "names", metavar="NAME", multiple=True, type=click.Choice([*TASKS, *READING_TASKS]))
@click.option("--markdown", "as_markdown", is_flag=True, help="Print them for the documentation.")
@click.option("--json", "as_json", is_flag=True, help="Print a line of JSON for each task.")
def main(names: tuple[str, ...], as_markdown: bool, as_json: bool) -> None:
    """Count the tokens that whole tasks cost an agent that sees everything, one whose host cuts long results
    as Codex does, one whose host puts them in files as Claude Code does, and one with fdstore; and say
    whether what it saw proves the answer. Then those of tasks that need every line: inline, by pages, by
    children, by a program. Its model is a script."""
    verdicts: list[Verdict] = []
    readings: list[ReadingVerdict] = []
    if not names or not TASKS.keys().isdisjoint(names):
        for verdict in measure_tasks(names):
            verdicts.append(verdict)
            _report(verdict, as_json=as_json)
    if not names or not READING_TASKS.keys().isdisjoint(names):
        for reading in measure_reading(names):
            readings.append(reading)
            _report(reading, as_json=as_json)
    if not as_json:
        tables = []
        if verdicts:
            shown = str(draw(uncut(HEADER, RIGHT), rows(verdicts)))
            tables.append(markdown(verdicts) if as_markdown else shown)
        if readings:
            shown = str(draw(uncut(READING_HEADER, READING_RIGHT), reading_rows(readings)))
            tables.append(reading_markdown(readings) if as_markdown else shown)
        click.echo("\n\n".join(tables))
    sys.exit(not all(verdict.ok for verdict in (*verdicts, *readings)))


def _report(verdict: Verdict | ReadingVerdict, *, as_json: bool) -> None:
    if as_json:
        click.echo(msgspec.json.encode(verdict))
    else:
        click.echo(f"{verdict.task}: {'ok' if verdict.ok else 'MISSED'}", err=True)


if __name__ == "__main__":
    main()
