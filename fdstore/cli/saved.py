"""The verb saved: what descriptors kept out of the contexts of models, and what was read back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click

from fdstore.cli import output
from fdstore.cli.session import CliSession, verb
from fdstore.cli.tables import Table, key, number
from fdstore.text.quantities import format_count, format_number

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fdstore.store.processes.savings import Saved

By = Literal["tool", "session", "day", "process"]
# trailing blanks tell columns of the same heading apart
COLUMNS = {
    "stored_chars": number("STORED", drop=3),
    "stored_tokens": number("~TOKENS   ", drop=4),
    "shown_chars": number("SHOWN", drop=1),
    "shown_tokens": number("~TOKENS  ", drop=2),
    "kept": number("KEPT", drop=10),
    "kept_chars": number("CHARS", drop=8),
    "kept_tokens": number("~TOKENS"),
    "read": number("READ", drop=9),
    "read_chars": number("CHARS ", drop=7),
    "read_tokens": number("~TOKENS "),
    "cleared": number("CLEARED", drop=5),
    "cleared_chars": number("CHARS  ", drop=6),
    "cleared_tokens": number("~TOKENS    ", drop=11),
}
COUNTS = tuple(COLUMNS)
OF_AGENTS = (*COUNTS[:4], *COUNTS[10:])
"""The counts of agents alone; no column where there is none."""


@verb
@click.argument("process", metavar="[PROC|TREE]", required=False)
@click.option(
    "--by",
    type=click.Choice(["tool", "session", "day", "process"]),
    default="tool",
    show_default=True,
    help="What a line stands for.",
)
def saved(session: CliSession, process: str | None, by: By) -> None:
    """Show what was kept out of the contexts of models, and what they read back.

    KEPT is the outputs that were stored and shown as a descriptor, less what the model saw instead; READ is
    what fdstore's own tools showed to it, as read_fd. Tokens are estimates, offline and for no model in
    particular. Counted are the hooks of coding hosts, `fdstore mcp`, `fdstore gateway`, and each
    `Toolset(meter=...)`, of all processes, or of PROC and all below it. Days are UTC.

    Agents are counted from their journals, which takes a moment where there are thousands: STORED and SHOWN
    (the texts, and what the model saw instead), and CLEARED, what was taken out of the conversation later.
    An agent counts on the day that it started.

    \b
    fdstore saved
    fdstore saved my-project --by day
    fdstore saved triage --by process
    """
    from fdstore.agents.loop.context_savings import read_agent_savings
    from fdstore.store.processes import savings
    from fdstore.store.processes.savings import Savings

    with session.store(use="look") as store:
        found = store.run(savings.read_savings(store.prefix, process))
        agents = store.run(read_agent_savings(store.prefix, process))
        damaged = {each.what: each for each in (*found.unreadable, *agents.unreadable)}
        found = Savings(rows=[*found.rows, *agents.rows], unreadable=[*damaged.values()])
    groups = _grouped(found.rows, by)
    if session.as_json:
        for name, counts in groups:
            output.document({by: name, **counts, "net_tokens": _net(counts)})
    elif groups:
        total = _summed(found.rows)
        columns = [name for name in COUNTS if total[name] or name not in OF_AGENTS]
        rows = [_cells(name, counts, columns) for name, counts in groups]
        if len(rows) > 1:
            rows.append(_cells("total", total, columns))
        heads = (key(by.upper()), *(COLUMNS[name] for name in columns), number("NET ~TOKENS"))
        output.table(Table(heads), rows)
        output.line()
        output.line(_sentence(total, found.rows))
    else:
        output.say(
            "fdstore: nothing was counted. Hooks, `fdstore mcp`, `fdstore gateway` and agents count by "
            "themselves; your own loop does with Toolset(meter=NAME)"
        )
    output.report_unreadable(found.unreadable, as_json=session.as_json)


def _grouped(rows: Iterable[Saved], by: By) -> list[tuple[str, dict[str, int]]]:
    """Return the sums by name: days in order, else what saved most first."""
    groups: dict[str, list[Saved]] = {}
    for row in rows:
        groups.setdefault(getattr(row, by) or "-", []).append(row)
    summed = [(name, _summed(some)) for name, some in groups.items()]
    if by == "day":
        return sorted(summed, key=lambda group: (group[0][0].isdigit(), group[0]))
    return sorted(summed, key=lambda group: (-_net(group[1]), group[0]))


def _summed(rows: Iterable[Saved]) -> dict[str, int]:
    totals = dict.fromkeys(COUNTS, 0)
    for row in rows:
        for name in COUNTS:
            totals[name] += getattr(row, name)
    return totals


def _net(counts: dict[str, int]) -> int:
    return counts["kept_tokens"] - counts["read_tokens"]


def _cells(name: str, counts: dict[str, int], columns: list[str]) -> list[str]:
    cells = (format_number(counts[each]) if counts[each] else "-" for each in columns)
    return [name, *cells, format_number(_net(counts))]


def _sentence(total: dict[str, int], rows: Iterable[Saved]) -> str:
    """Return the line to show to a colleague.

    >>> total = {"kept": 1, "kept_tokens": 482_000, "read_tokens": 3_100}
    >>> _sentence(total, [])
    'About 482,000 tokens of 1 output kept out of the context, 3,100 read back (0.6 %).'
    """
    kept, read = total["kept_tokens"], total["read_tokens"]
    share = f" ({100 * read / kept:.1f} %)" if kept else ""
    days = sorted(row.day for row in rows if row.day[0].isdigit())
    since = f", since {days[0]}" if days else ""
    of = f"{format_count(kept, 'token')} of {format_count(total['kept'], 'output')}"
    return f"About {of} kept out of the context, {format_number(read)} read back{share}{since}."
