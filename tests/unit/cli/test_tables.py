"""Every table fits every terminal, whatever its cells hold."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from importlib import import_module

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import fdstore.cli
from fdstore.cli.processes import TABLE, as_trees, process_details
from fdstore.cli.tables import Column, Table, draw, facts, key, number, reason, width, wrap
from fdstore.model.records import ProcessRecord
from fdstore.text.layout import show_controls

WIDTHS = (60, 80, 120, 200)

DEEP = "a-name-that-is-as-long-as-names-are-permitted-48" + ".1" * 6
REASON = " ".join(f"word{number}" for number in range(1, 40))[:300]
NASTY = {
    "key": ["│  " * 6 + "└─ " + DEEP, "name:" + "漢字/" * 30 + "log", "fd:1"],
    "reason": [REASON, "模型拒绝了这个请求 " * 20, "😀" * 150, ""],
    "cut": [
        "grep -n 'ERROR' | sort -k 2 | head -n 20 " * 40,
        "\x1b[31m\u202e" * 20,
        "e\u0301" * 200,
    ],
    "number": ["1,234,567,890,123", "-", "999.9 MB"],
    "short": ["1970-01-01T00:00:00Z", "cancelled", "-"],
}


def declared() -> Iterator[tuple[str, Table]]:
    """Yield every table that a module of the command line declares."""
    for module in pkgutil.iter_modules(fdstore.cli.__path__, "fdstore.cli."):
        if module.ispkg:
            continue
        for name, found in vars(import_module(module.name)).items():
            for label, each in found.items() if isinstance(found, dict) else [("", found)]:
                if isinstance(each, Table):
                    yield f"{module.name.rpartition('.')[2]} {name} {label}", each


TABLES = {name: table for name, table in declared() if table.columns}


def nasty(column: Column) -> list[str]:
    match column:
        case Column(spill="before"):
            return NASTY["key"]
        case Column(spill="after"):
            return NASTY["reason"]
        case Column(right=True):
            return NASTY["number"]
        case Column(least=least) if least:
            return NASTY["cut"]
    return NASTY["short"]


def test_the_tables_of_all_verbs_are_found() -> None:
    verbs = {name.split()[0] for name in TABLES}

    assert verbs >= {
        "processes",
        "contents",
        "limits",
        "space",
        "token",
        "bench",
        "top_rows",
        "upkeep",
        "find",
    }


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("name", TABLES)
def test_no_line_of_a_table_is_wider_than_the_terminal(name: str, columns: int) -> None:
    table = TABLES[name]
    cells = [nasty(column) for column in table.columns]
    rows = [[of_one[i % len(of_one)] for of_one in cells] for i in range(4)]

    drawn = draw(table, rows, columns=columns)

    assert all(width(line) <= columns for line in drawn.lines)
    assert not drawn.is_cut or any("..." in line for line in drawn.lines)
    said = " ".join(" ".join(drawn.lines).split())
    joined = "".join("".join(drawn.lines).split())
    for column, of_one in zip(table.columns, cells, strict=True):
        if column.spill == "before":
            assert all("".join(show_controls(cell, keep="").split()) in joined for cell in of_one)
        elif column.spill == "after":
            assert REASON in said


@given(
    st.lists(st.lists(st.text(max_size=60), min_size=4, max_size=4), max_size=4),
    st.integers(20, 120),
)
def test_a_table_of_any_text_fits_any_terminal(rows: list[list[str]], columns: int) -> None:
    table = Table((key("PROCESS", least=8), Column("STATE"), number("TOKENS"), reason("DETAIL", least=6)))

    assert all(width(line) <= columns for line in draw(table, rows, columns=columns).lines)


def test_where_there_is_no_terminal_a_table_is_whole() -> None:
    for name, table in TABLES.items():
        rows = [[nasty(column)[0] for column in table.columns]]

        drawn = draw(table, rows)

        assert len(drawn.lines) == 2, name
        assert all(show_controls(cell, keep="").strip() in drawn.lines[1] for cell in rows[0])
        assert not drawn.is_cut


def test_the_reason_of_a_deep_process_is_whole_at_any_width() -> None:
    names = [DEEP[: len(DEEP) - 2 * below] for below in range(6, -1, -1)]
    processes = [ProcessRecord(id=name, state="failed", program="triage", reason=REASON) for name in names]
    rows = [
        [
            *(
                branch + process.id,
                process.state,
                "triage",
                "2 min ago",
                "now",
                "9,000 in, 300 out",
                "1.0 MB",
            ),
            "; ".join(process_details(process, 0.0)),
        ]
        for branch, process in as_trees(processes)
    ]

    for columns in WIDTHS:
        drawn = draw(TABLE, rows, columns=columns)
        said = " ".join(" ".join(drawn.lines).split())

        assert all(width(line) <= columns for line in drawn.lines)
        assert said.count(REASON) == len(rows)
        assert said.count(" failed ") == len(rows)


@given(st.text(alphabet="ab 漢e\u0301😀", max_size=200), st.integers(4, 60))
@example("aa漢  漢", 4)
@example("    漢", 4)
def test_a_wrapped_text_fits_and_keeps_its_words(text: str, columns: int) -> None:
    lines = wrap(text, columns, indent="  ")

    assert all(width(line) <= columns for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


@given(st.lists(st.tuples(st.sampled_from(["store", "budget"]), st.text(max_size=200)), max_size=3))
def test_facts_fit_the_terminal(pairs: list[tuple[str, str]]) -> None:
    assert all(width(line) <= 40 for line in facts(pairs, columns=40).split("\n"))
