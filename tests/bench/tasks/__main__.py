"""`python -m tests.bench.tasks`: run the tasks, and print what they cost. Exits with 1 if a bar is missed."""

from __future__ import annotations

import sys

import click
import msgspec

from fdstore.cli.tables import table
from tests.bench.tasks.results import HEADER, RIGHT, markdown, rows
from tests.bench.tasks.suite import TASKS, measure_tasks


@click.command
@click.option("--task", "names", metavar="NAME", multiple=True, type=click.Choice(list(TASKS)))
@click.option("--markdown", "as_markdown", is_flag=True, help="Print the table of docs/how-to/costs.md.")
@click.option("--json", "as_json", is_flag=True, help="Print a line of JSON for each task.")
def main(names: tuple[str, ...], as_markdown: bool, as_json: bool) -> None:
    """Count the tokens that whole tasks cost an agent that sees everything, one whose host cuts long results
    as Codex does, one whose host puts them in files as Claude Code does, and one with fdstore; and say
    whether what it saw proves the answer. Its model is a script."""
    verdicts = []
    for verdict in measure_tasks(names):
        verdicts.append(verdict)
        if as_json:
            click.echo(msgspec.json.encode(verdict))
        else:
            click.echo(f"{verdict.task}: {'ok' if verdict.ok else 'MISSED'}", err=True)
    if as_markdown:
        click.echo(markdown(verdicts))
    elif not as_json:
        click.echo(table(HEADER, rows(verdicts), right=RIGHT))
    sys.exit(not all(verdict.ok for verdict in verdicts))


if __name__ == "__main__":
    main()
