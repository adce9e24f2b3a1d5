"""`fdstore sql`: tables, CSV and JSON of queries over stored texts."""

from __future__ import annotations

import json

import pytest

from tests.acceptance.conftest import peak_bytes
from tests.waiting import wait_until

CITIES = 'city,people,score\nParis,2103778,1.5\nLyon,520774,\n"a, b",3,-1\n'


@pytest.fixture
def tables(proc):
    proc.create(CITIES, media_type="text/csv")
    proc.put("found.json", '{"rows": [{"name": "Lyon", "tags": ["x"]}, {"name": "Rome", "tags": []}]}')
    return proc


def test_a_result_is_printed_as_a_table(command, tables):
    found = command("sql", "triage", "fd:1", "FROM content ORDER BY people")

    assert (found.code, found.err) == (0, "")
    assert found.out.splitlines() == [
        "city    people  score",
        "a, b         3   -1.0",
        "Lyon    520774",
        "Paris  2103778    1.5",
    ]


def test_several_texts_have_names_and_json_prints_an_object_for_each_row(command, tables):
    query = "SELECT city, people, tags, score IS NULL AS none FROM a JOIN b ON city = name"

    found = command("sql", "triage", "a=fd:1", "b=name:found.json#J/rows", query, "--json")

    assert [json.loads(line) for line in found.out.splitlines()] == [
        {"city": "Lyon", "people": 520774, "tags": ["x"], "none": True}
    ]


@pytest.mark.thorough("another form of one output")
def test_csv_has_all_rows_and_a_table_the_first_ones(command, tables):
    rows = command("sql", "triage", "1", "--csv", "FROM range(2500)")
    shown = command("sql", "triage", "1", "FROM range(2500)")

    assert rows.out == "range\n" + "".join(f"{n}\n" for n in range(2500))
    assert len(shown.out.splitlines()) == 1001
    assert shown.err == "1,500 more rows; --csv and --json print all\n"


def test_a_table_is_as_wide_as_the_terminal(command, tables):
    columns = ", ".join(f"repeat('x', {n * 9}) AS c{n}" for n in range(1, 30))

    shown = command.on_terminal("sql", "triage", "1", f"SELECT {columns} FROM content LIMIT 1", columns=80)

    assert shown.code == 0
    assert max(map(len, shown.out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["fd:1", "SELECT town FROM content"], 1, "content has the columns: city VARCHAR, people BIGINT"),
        (["fd:9", "FROM content"], 1, "fd:9 does not exist"),
        (["FROM content"], 2, "name the text that the query is about"),
        (["fd:1", "fd:2", "FROM content"], 2, "give each of several texts a name"),
        (["fd:1", "FROM content", "--csv", "--json"], 2, "choose one of --csv and --json"),
    ],
)
def test_what_is_wrong_is_said(command, tables, words, code, said):
    found = command("sql", "triage", *words)

    assert found.code == code
    assert said in found.err


@pytest.mark.long
def test_a_hundred_megabytes_are_queried_in_bounded_memory(command, proc, tmp_path):
    rows = 4_000_000
    with (tmp_path / "large.csv").open("w") as file:
        file.write("id,city,people\n")
        for start in range(0, rows, 10_000):
            file.writelines(
                f"{n},city {n % 97},{n * 7919 % 1_000_003}\n" for n in range(start, start + 10_000)
            )
    assert (tmp_path / "large.csv").stat().st_size > 90_000_000
    proc.ingest(tmp_path / "large.csv")
    query = (
        "SELECT city, count(*) AS n, sum(people) AS people FROM content GROUP BY city ORDER BY city LIMIT 1"
    )
    peaks = [0]

    with command.start("sql", "triage", "fd:1", query, "--json", fresh=True) as running:
        wait_until(lambda: peaks.append(peak_bytes(running.pid)) or running.poll() is not None)
        out, err = running.communicate()

    found = [n * 7919 % 1_000_003 for n in range(0, rows, 97)]
    assert json.loads(out) == {"city": "city 0", "n": len(found), "people": sum(found)}, err
    assert 0 < max(peaks) < 500 << 20


def test_a_table_that_does_not_exist_leads_to_those_that_do(command, tables):
    one = command("sql", "triage", "a=fd:1", "SELECT * FROM content").err
    of_duckdb = command("sql", "triage", "a=fd:1", "SELECT * FROM pg_constrain").err
    near = command("sql", "triage", "a=fd:1", "cities=fd:1", "SELECT * FROM citie").err

    assert "Table with name content does not exist; the only table is a; a has the columns: city " in one
    assert "Table with name pg_constrain does not exist; the only table is a; " in of_duckdb
    assert (
        'citie does not exist! Did you mean "cities"? The tables are a, cities; a has the columns: ' in near
    )


def test_a_name_of_a_column_is_shown_as_a_cell_is(command, proc):
    proc.create("name,\x1b]0;owned\x07\x1b[31mcity\n1,Paris\n", media_type="text/csv")

    found = command("sql", "triage", "fd:1", "FROM content")

    assert "\x1b" not in found.out
    assert "city" in found.out


def test_each_of_several_texts_needs_a_name_of_its_own(command, tables):
    found = command("sql", "triage", "a=fd:1", "a=name:found.json", "FROM a")

    assert found.code == 2
    assert "a name of its own" in found.err
