"""SQL over a descriptor: what is read, and what cannot be reached."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import duckdb
import pytest

import fdstore
from fdstore.errors import InvalidArgument, NotFound, NotText, TimedOut
from fdstore.integrations.sql import sql_fd, sql_tool

TABLE = "city,people\nParis,2103778\nLyon,520774\nNice,357737\nLille,238695\nBrest,139619\n"


@pytest.fixture
def proc(store: fdstore.Store) -> fdstore.Process:
    return store.process("data")


def parquet(folder: Path) -> bytes:
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT 7 AS a, 'x' AS b) TO '{folder / 'a.parquet'}'")
    return (folder / "a.parquet").read_bytes()


def test_each_format_is_a_table(proc: fdstore.Process, tmp_path: Path) -> None:
    for content, query, expected in (
        (TABLE, "SELECT sum(people) AS n, count(*) AS rows FROM content", "n,rows\n3360603,5\n"),
        ('[{"a": 1, "b": "x\\ny"}, {"a": 2}]', "FROM content ORDER BY a DESC", 'a,b\n2,\n1,"x\ny"\n'),
        ('{"a": 1}\n{"a": 5}\n', "SELECT max(a) AS a FROM content", "a\n5\n"),
        (parquet(tmp_path), "FROM content", "a,b\n7,x\n"),
        ("", "FROM content", "line,text\n"),
        ('one, "two\n\n  three\n', "FROM content", 'line,text\n1,"one, ""two"\n2,""\n3,  three\n'),
    ):
        found = sql_fd(proc, proc.create(content).fd, query)

        assert (found.media_type, found.source) == ("text/csv", "sql_fd")
        assert proc.read(found.fd).text == expected


@pytest.mark.parametrize(
    "query",
    [
        "FROM read_csv('/etc/passwd')",
        "FROM read_text('fdstore://other')",
        "FROM read_blob('/proc/self/environ')",
        "FROM glob('/*')",
        "COPY content TO '/tmp/fdstore-sql-escape.csv'",
        "ATTACH '/tmp/fdstore-sql-escape.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "RESET allowed_paths",
        "SET memory_limit = '100GB'",
        "EXPORT DATABASE '/tmp/fdstore-sql-escape'",
        "FROM proc",
        "SELEC",
        "",
    ],
)
def test_a_query_reaches_nothing_else(proc: fdstore.Process, query: str) -> None:
    proc.create("secret")

    with pytest.raises(InvalidArgument):
        sql_fd(proc, proc.create(TABLE).fd, query)

    assert [d.fd for d in proc.list()] == ["fd:1", "fd:2"]


def test_each_type_of_a_value_is_told_from_the_others(proc: fdstore.Process) -> None:
    query = r"""
        SELECT {'a': [true, NULL], 'd': DATE '2020-01-02'} AS struct, MAP {'k': 'é'} AS map, a = 1 AS bool,
            NULL AS none, '' AS empty, '\xAA\x00'::BLOB AS blob, TIMESTAMP '2020-01-02 03:04:05' AS at,
            1.50::DECIMAL(9, 2) AS decimal FROM content
    """

    found = sql_fd(proc, proc.create('[{"a": 1}]').fd, query)

    [head, row] = proc.read(found.fd).text.splitlines()
    assert head == "struct,map,bool,none,empty,blob,at,decimal"
    [struct, pairs] = next(csv.reader([row]))[:2]
    assert json.loads(struct) == {"a": [True, None], "d": "2020-01-02"}
    assert json.loads(pairs) == {"k": "é"}
    assert row.endswith(r',true,,"",\xAA\x00,2020-01-02 03:04:05,1.50')


SCALARS = [
    "TIMESTAMP_NS '2024-01-01 00:00:00.123456789'",
    "TIMESTAMP_S '2024-01-01 00:00:00'",
    "TIMESTAMP '2024-01-01 00:00:00.123456'",
    "TIMESTAMPTZ '2024-01-01 00:00:00+00'",
    "TIME '12:00:00.5'",
    "'12:00:00+02:30'::TIMETZ",
    "INTERVAL 1 MONTH",
    "INTERVAL '1 year 2 days 3 hours'",
    "'infinity'::DATE",
    "'-infinity'::TIMESTAMP",
    "DATE '0044-03-15 (BC)'",
    "0.1::FLOAT",
    "'nan'::FLOAT",
    "'-inf'::DOUBLE",
    "1e300::DOUBLE",
    "170141183460469231731687303715884105727::HUGEINT",
    "340282366920938463463374607431768211455::UHUGEINT",
    "12345678901234567890.123456789::DECIMAL(38, 9)",
    "'101'::BIT",
    r"'\xAA\x00ab'::BLOB",
    "'b8ff8f3c-05cd-4bd3-a3fa-0a8f3c05cd4b'::UUID",
    "'b'::ENUM ('a', 'b')",
    "union_value(num := 2)",
    """'{"a": NaN}'::JSON""",
    "true",
    "NULL",
    "''",
    "chr(0) || 'é'",
    "'one' || chr(10) || '\"two\", three'",
]


@pytest.mark.parametrize("value", SCALARS)
def test_a_value_is_what_duckdb_prints(proc: fdstore.Process, value: str) -> None:
    printed = duckdb.execute(f"SELECT ({value})::VARCHAR").fetchone()
    assert printed is not None

    found = sql_fd(proc, proc.create(TABLE).fd, f"SELECT {value} AS a, 1 AS b FROM content LIMIT 1")

    text = proc.read(found.fd).text
    assert list(csv.reader(io.StringIO(text, newline=""))) == [["a", "b"], [printed[0] or "", "1"]]
    assert text.startswith('a,b\n"",1') == (value == "''"), "an empty text is no NULL"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("[0.1::FLOAT, 'nan'::FLOAT, NULL]", "[0.1,null,null]"),
        ("['inf'::DOUBLE, '-inf'::DOUBLE, 1e300]", "[null,null,1e300]"),
        ("{'a': [0.1::FLOAT], 'NaN \"b': 'NaN, Infinity', 'c': {'d': 1::FLOAT}}", None),
        ("MAP {'k': 0.1::FLOAT}", '{"k":0.1}'),
        ("MAP {0.1::FLOAT: 'v'}", '{"0.1":"v"}'),
        ("[0.1::FLOAT, 2]::FLOAT[2]", "[0.1,2.0]"),
        ("[TIMESTAMP_NS '2024-01-01 00:00:00.123456789']", '["2024-01-01 00:00:00.123456789"]'),
        ("[INTERVAL 1 MONTH, INTERVAL 30 DAY]", '["1 month","30 days"]'),
        ("['infinity'::DATE]", '["infinity"]'),
        ("[true, NULL]", "[true,null]"),
        ("[170141183460469231731687303715884105727::HUGEINT]", "[170141183460469231731687303715884105727]"),
        ("[{'a': union_value(num := 2)}]", '[{"a":{"num":2}}]'),
        ("{'a': 0.1::FLOAT, 'b': NULL, 'c': 'x'::ENUM ('x')}", '{"a":0.1,"b":null,"c":"x"}'),
        ("row(1, 'x', 0.1::FLOAT)", None),
    ],
)
def test_lists_structs_and_maps_are_json(proc: fdstore.Process, value: str, written: str | None) -> None:
    stored = sql_fd(proc, proc.create(TABLE).fd, f"SELECT {value} AS a FROM content LIMIT 1")

    [_, [text]] = csv.reader(io.StringIO(proc.read(stored.fd).text))
    json.loads(text, parse_constant=pytest.fail)
    if written is not None:
        assert text == written
    elif value.startswith("row"):  # older versions name the fields
        assert [*(found if isinstance(found := json.loads(text), list) else found.values())] == [1, "x", 0.1]
    else:
        assert json.loads(text) == {"a": [0.1], 'NaN "b': "NaN, Infinity", "c": {"d": 1.0}}


@pytest.mark.parametrize(
    ("query", "written"),
    [
        ('SELECT 1 AS a, 2 AS a, 3 AS "x,y" -- done', 'a,a,"x,y"\n1,2,3\n'),
        ("SELECT 1 AS a; SELECT 'é' AS b;", "b\né\n"),
        ("SELECT city FROM content ORDER BY people LIMIT 2", "city\nBrest\nLille\n"),
        ("WITH a AS (FROM content) SELECT count(*) AS n FROM a", "n\n5\n"),
        ("SELECT column_name FROM (DESCRIBE content)", "column_name\ncity\npeople\n"),
        ("CREATE TEMP TABLE t AS FROM content; SELECT count(*) AS n FROM t", "n\n5\n"),
        (
            "PIVOT (FROM content LIMIT 2) ON city USING sum(people)",
            "Lyon,Paris\n520774,2103778\n",
        ),
        ("CALL range(1)", "range\n0\n"),
    ],
)
def test_any_statement_with_a_result_has_its_columns_and_order(
    proc: fdstore.Process, query: str, written: str
) -> None:
    found = sql_fd(proc, proc.create(TABLE).fd, query)

    assert proc.read(found.fd).text == written


@pytest.mark.parametrize("query", ["", "-- nothing", ";"])
def test_a_query_without_a_statement_is_refused(proc: fdstore.Process, query: str) -> None:
    with pytest.raises(InvalidArgument, match="no result; write a SELECT"):
        sql_fd(proc, proc.create(TABLE).fd, query)


def test_one_object_of_json_may_be_larger_than_the_buffers_of_the_reader(proc: fdstore.Process) -> None:
    content = json.dumps({"lines": ["x" * 1023] * 17_000, "name": "large"})

    found = sql_fd(proc, proc.create(content).fd, "SELECT name, len(lines) AS n FROM content")

    assert proc.read(found.fd).text == "name,n\nlarge,17000\n"


def test_a_result_of_the_tool_beyond_its_memory_is_stored_and_named(proc: fdstore.Process) -> None:
    proc.create(TABLE)

    said = sql_tool(proc)("fd:1", "SELECT repeat('x', 999) AS t FROM range(10000)")

    assert said == "The result is stored as fd:2: 10001 lines, 10000002 characters of CSV."
    assert proc.read("fd:2#L10001").text == "x" * 999 + "\n"


def test_what_cannot_be_queried(proc: fdstore.Process) -> None:
    with pytest.raises(NotText):
        sql_fd(proc, proc.create(b"\xff\0").fd, "FROM content")
    with pytest.raises(NotFound):
        sql_fd(proc, "fd:99", "FROM content")
    with pytest.raises(InvalidArgument, match="cannot be read as a table"):
        sql_fd(proc, proc.create("{not JSON", media_type="application/json").fd, "FROM content")


@pytest.mark.parametrize("timeout_s", [0.0001, 0.01, 0.2])
def test_a_query_is_given_up_whenever_its_time_ends(proc: fdstore.Process, timeout_s: float) -> None:
    table = proc.create(TABLE)

    with pytest.raises(TimedOut):
        sql_fd(
            proc,
            table.fd,
            "FROM range(1000000000000) WHERE md5(range::VARCHAR) = 'none'",
            timeout_s=timeout_s,
        )

    assert [d.fd for d in proc.list()] == [table.fd]


def test_a_model_gets_a_long_result_as_a_descriptor(proc: fdstore.Process) -> None:
    tools = fdstore.Toolset(proc, python=[sql_tool(proc)])
    rows = io.StringIO()
    print("n,square", *(f"{n},{n * n}" for n in range(20_000)), sep="\n", file=rows)
    table = proc.create(rows.getvalue())

    def ask(query: str) -> fdstore.ToolResult:
        return tools.call("sql_fd", {"fd": table.fd, "query": query}, call_id=query)

    short = ask("SELECT max(square) AS m FROM content")
    long = ask("FROM content WHERE n >= 10000")
    wrong = ask("FROM nothing")

    assert short.content == "m\n399960001\n"
    assert long.content.startswith('<fd_result fd="fd:2"')
    assert proc.read("fd:2#L2").text == "10000,100000000\n"
    assert wrong.is_error
    assert "nothing does not exist" in wrong.content
