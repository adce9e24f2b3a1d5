"""`python -m tests.bench.public`: replay the public tasks, and print what they cost."""

from __future__ import annotations

import click
import msgspec

from fdstore.bench.stage import stage
from fdstore.cli.tables import draw, uncut
from tests.bench.public.measuring import Group, Measured, measure
from tests.bench.public.package import FOLDER, public_tasks
from tests.bench.public.results import GROUPS, RIGHT, UNITS, cells, header, markdown, rows_of

THRESHOLDS = (2000, 4000, 6000, 8000)
TASKS_A_LINE = 20


@click.command
@click.option(
    "--threshold",
    "thresholds",
    metavar="CHARS",
    multiple=True,
    type=click.IntRange(min=1),
    default=THRESHOLDS,
    show_default=True,
    help="Store results longer than this; may be given several times.",
)
@click.option(
    "--group",
    "groups",
    multiple=True,
    type=click.Choice([*GROUPS]),
    default=[*GROUPS],
    show_default=True,
    help="The tasks to add up: all, those with a result over 8000 characters, the others.",
)
@click.option("--markdown", "as_markdown", is_flag=True, help="Print the table for the documentation.")
@click.option("--json", "as_json", is_flag=True, help="Print a line of JSON for each row, with the sums.")
def main(thresholds: tuple[int, ...], groups: tuple[Group, ...], as_markdown: bool, as_json: bool) -> None:
    """Replay 200 public tasks (multi_turn_long_context of bfcl-eval), and print what a model is sent with our
    tools always offered, from the first descriptor on, and deferred, as a ratio to everything inline: the
    characters and the estimated tokens of all requests. CACHED has what a request repeats of an earlier one
    at a tenth of its price; READ has each stored result searched once, and one page of it read."""
    if not (FOLDER / "bfcl_eval").is_dir():
        raise click.ClickException(f"bfcl-eval is missing in {FOLDER}: run `make bench-public`")
    measured: list[Measured] = []
    with stage(quick=True, own_processor=False) as made:
        results = measure(public_tasks(FOLDER), made.process, sorted(set(thresholds)), groups)
        for number, result in enumerate(results, 1):
            measured += result
            if number % TASKS_A_LINE == 0:
                click.echo(f"{number} tasks replayed", err=True)
    rows = rows_of(measured, groups)
    if as_json:
        for row in rows:
            click.echo(msgspec.json.encode(row))
    else:
        tables = (
            markdown(rows, unit) if as_markdown else str(draw(uncut(header(unit), RIGHT), cells(rows, unit)))
            for unit in UNITS
        )
        click.echo("\n\n".join(tables))


if __name__ == "__main__":
    main()
