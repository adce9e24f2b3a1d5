"""Queries over descriptors have the results that DuckDB itself has over the same files."""

from __future__ import annotations

import csv
import io
import json
import random
from pathlib import Path

import duckdb
import pytest

import fdstore
from fdstore.integrations.sql import sql_fd
from tests.properties import examples
from tests.thorough import thorough

COLUMNS = ("id", "city", "n", "x", "day", "flag")
CITIES = ("Paris", "Lyon", "São Paulo", 'the "old" town', "a, b", "", None)
READERS = {
    "csv": "read_csv",
    "tsv": "read_csv",
    "json": "read_json",
    "jsonl": "read_json",
    "parquet": "read_parquet",
}
FIRST, *OTHERS = READERS
TYPES = {"csv": "text/csv", "tsv": "text/tab-separated-values"}
AGGREGATES = ("sum(n)", "avg(x)", "count(*)", "count(DISTINCT city)", "max(day)", "min(id)", "bool_or(flag)")
QUERIES_EACH = examples(100)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same rows in a file of each format."""
    folder = tmp_path_factory.mktemp("tables")
    rng = random.Random(7)
    rows = [
        (
            number,
            rng.choice(CITIES),
            rng.choice([None, rng.randrange(-1000, 10**6)]),
            round(rng.uniform(-5, 5), 3),
            f"2026-{rng.randrange(1, 13):02}-{rng.randrange(1, 29):02}",
            rng.random() < 0.5,
        )
        for number in range(400)
    ]
    objects = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
    for suffix, mark in (("csv", ","), ("tsv", "\t")):
        with (folder / f"rows.{suffix}").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, delimiter=mark, lineterminator="\n")
            writer.writerow(COLUMNS)
            writer.writerows(rows)
    (folder / "rows.json").write_text(json.dumps(objects, indent=1), "utf-8")
    (folder / "rows.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in objects), "utf-8")
    duckdb.execute(f"COPY (FROM '{folder}/rows.jsonl') TO '{folder}/rows.parquet'")
    return folder


def generate(rng: random.Random) -> str:
    """Return a query over the table `content` whose rows have one order."""
    where = " AND ".join(
        rng.choice(
            [
                f"n > {rng.randrange(10**6)}",
                f"x BETWEEN {rng.uniform(-5, 0):.2f} AND {rng.uniform(0, 5):.2f}",
                "city LIKE '%a%'",
                "city IS NULL",
                f"day >= DATE '2026-{rng.randrange(1, 13):02}-01'",
                "NOT flag",
                f"id % {rng.randrange(2, 9)} = 0",
            ]
        )
        for _ in range(rng.randrange(1, 4))
    )
    match rng.randrange(4):
        case 0:
            columns = ", ".join(rng.sample(COLUMNS, rng.randrange(1, 6)))
            return (
                f"SELECT {columns} FROM content WHERE {where} ORDER BY id {rng.choice(['', 'DESC'])} LIMIT 99"
            )
        case 1:
            chosen = ", ".join(rng.sample(AGGREGATES, rng.randrange(1, 4)))
            key = rng.choice(["city", "flag", "month(day)", "id % 3"])
            return f"SELECT {key} AS k, {chosen} FROM content WHERE {where} GROUP BY 1 ORDER BY 1 NULLS FIRST"
        case 2:
            over = f"OVER (PARTITION BY {rng.choice(['city', 'flag'])} ORDER BY id)"
            columns = f"id, row_number() {over} AS r, lag(n) {over} AS p"
            return f"SELECT {columns} FROM content WHERE {where} ORDER BY id"
    kind = rng.choice(
        ["{'a': n, 'b': [city, day::VARCHAR], 'c': flag}", "[n, id]", "MAP {coalesce(city, '-'): x}"]
    )
    return f"SELECT id, {kind} AS v FROM content WHERE {where} ORDER BY id"


@pytest.mark.thorough("many generated queries")
@pytest.mark.parametrize("suffix", [FIRST, *thorough("other kinds of files", *OTHERS)])
def test_a_query_has_the_result_that_duckdb_has_over_the_same_file(
    store: fdstore.Store, folder: Path, suffix: str
) -> None:
    proc = store.process()
    data = (folder / f"rows.{suffix}").read_bytes()
    table = proc.create(data if suffix == "parquet" else data.decode(), media_type=TYPES.get(suffix))
    rng = random.Random(suffix)

    with duckdb.connect() as plain:
        plain.execute(f"CREATE VIEW content AS FROM {READERS[suffix]}('{folder}/rows.{suffix}')")
        for _ in range(QUERIES_EACH):
            query = generate(rng)

            found = sql_fd(proc, table.fd, query)

            text = proc.read(found.fd, read_all=True).text
            head, *rows = (row or [""] for row in csv.reader(io.StringIO(text, newline="")))
            assert head == plain.sql(query).columns
            assert rows == [list(map(as_text, row)) for row in printed(plain, query)], query


def printed(connection: duckdb.DuckDBPyConnection, query: str) -> list[tuple[object, ...]]:
    """Return the rows as DuckDB prints them, what is nested as JSON."""
    kinds = connection.sql(query).types
    columns = [
        f"CAST({'to_json' if kind.id in ('struct', 'list', 'map') else ''}(#{n}) AS VARCHAR)"
        for n, kind in enumerate(kinds, 1)
    ]
    return connection.sql(query).project(", ".join(columns)).fetchall()


def as_text(value: object) -> str:
    return "" if value is None else str(value)
