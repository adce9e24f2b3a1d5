"""The verb bench: measure fdstore."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fdstore.cli import output
from fdstore.cli.session import CliSession, verb
from fdstore.cli.tables import Column, Table, number

if TYPE_CHECKING:
    from fdstore.bench.measuring import BenchRow

BAR_MISSED = 1
AREAS = (
    *("reading", "bytes", "names", "writing", "trips", "streams", "memory", "cold", "sharing", "growth"),
    *("spawning", "agents", "crowd", "programs", "starting"),
)

TABLE = Table(
    (
        Column("MEASURED", least=16),
        Column("FDSTORE", right=True, least=10, drop=3),
        Column("REFERENCE", right=True, least=10, drop=2),
        number("RATIO"),
        number("SPREAD", drop=1),
        number("BAR"),
        Column(""),
    ),
    whole="fdstore bench --json",
)


@verb
@click.argument("areas", metavar="[AREA]...", nargs=-1, type=click.Choice(AREAS))
@click.option("--quick", is_flag=True, help="Use at most 10 MB; takes less than half a minute.")
def bench(session: CliSession, areas: tuple[str, ...], quick: bool) -> None:
    """Measure fdstore against plain Redis commands that move the same bytes.

    Runs on a private server; your data is not touched. Every ratio has a bar; the exit code is 1 if one is
    missed. A wide spread means that the machine was busy. AREAS are reading, bytes, names, writing, trips
    (round trips), streams, memory, cold, sharing, growth, spawning, agents, crowd, programs and starting. The
    default is all of them, with --quick all but growth, agents and programs. Where $FDSTORE_BENCH_RLMS names
    a Python that has rlms, `programs` runs the same plan with it.

    \b
    fdstore bench --quick
    fdstore bench reading writing --json
    """
    from fdstore.bench.suite import left_out, measure

    rows = []
    for row in measure(list(areas), quick=quick):
        rows.append(row)
        if session.as_json:
            output.document(row)
        else:
            output.note(f"{row.case}: {_number(row, row.value)}")
    if not session.as_json:
        output.table(TABLE, [cells_of(row) for row in rows])
    for why in left_out(areas):
        output.say(why)
    if not all(row.ok for row in rows):
        click.get_current_context().exit(BAR_MISSED)


def cells_of(row: BenchRow) -> list[str]:
    """Return the cells of a measurement."""
    return [
        row.case,
        row.ours,
        row.theirs,
        _number(row, row.value),
        f"{_number(row, row.low)}-{_number(row, row.high)}" if row.low < row.high else "",
        f"{'>=' if row.bar.at_least else '<='} {_number(row, row.bar.limit)}",
        "ok" if row.ok else "MISSED",
    ]


def _number(row: BenchRow, value: float) -> str:
    match row.bar.unit:
        case "x":
            return f"{value:.2f}x"
        case "trips" | "count":
            return f"{value:.0f}"
        case "%":
            return f"{value:.2g} %" if value < 1 else f"{value:.0f} %" if value >= 10 else f"{value:.1f} %"
        case unit:
            return f"{value:.0f} {unit}" if value >= 10 else f"{value:.1f} {unit}"
