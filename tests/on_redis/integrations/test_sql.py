"""SQL over a descriptor: what is read, and what cannot be reached."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from pathlib import Path

import duckdb
import pytest

import fdstore
from fdstore.errors import InvalidArgument, NotFound, NotText, TimedOut
from fdstore.integrations.sql import sql_fd
from fdstore.sql import duckdb_query
from tests.elements import only
from tests.thorough import sample

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


@pytest.mark.parametrize("value", sample(SCALARS, 9, "more types"))
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


@pytest.mark.thorough("many megabytes")
def test_one_object_of_json_may_be_larger_than_the_buffers_of_the_reader(proc: fdstore.Process) -> None:
    content = json.dumps({"lines": ["x" * 1023] * 17_000, "name": "large"})

    found = sql_fd(proc, proc.create(content).fd, "SELECT name, len(lines) AS n FROM content")

    assert proc.read(found.fd).text == "name,n\nlarge,17000\n"


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


@pytest.fixture
def tools(proc: fdstore.Process) -> fdstore.Toolset:
    return fdstore.Toolset(proc, enabled=["read_fd", "sql_fd"])


def test_a_result_of_the_tool_beyond_its_memory_is_stored(
    proc: fdstore.Process, tools: fdstore.Toolset
) -> None:
    proc.create(TABLE)

    said = tools.call("sql_fd", {"fd": 1, "query": "SELECT repeat('x', 999) AS t FROM range(10000)"})

    assert only(said.content)["total_chars"] == "10000002"
    assert proc.read("fd:2#L10001").text == "x" * 999 + "\n"


@pytest.mark.thorough("many rows")
def test_a_model_gets_a_long_result_as_a_descriptor(proc: fdstore.Process, tools: fdstore.Toolset) -> None:
    rows = io.StringIO()
    print("n,square", *(f"{n},{n * n}" for n in range(20_000)), sep="\n", file=rows)
    table = proc.create(rows.getvalue())

    def ask(query: str) -> fdstore.ToolResult:
        return tools.call("sql_fd", {"fd": table.fd, "query": query}, call_id=query)

    short = ask("SELECT max(square) AS m FROM content")
    long = ask("FROM content WHERE n >= 10000")
    again = ask("FROM content WHERE n >= 10000")
    wrong = ask("FROM nothing")

    assert short.content == "m\n399960001\n"
    assert long.content.startswith('<fd_result fd="fd:2"')
    assert proc.read("fd:2#L2").text == "10000,100000000\n"
    assert (proc.stat("fd:2").media_type, proc.stat("fd:2").source) == ("text/csv", "sql_fd")
    assert only(again.content)["fd"] == "fd:2"
    assert wrong.is_error
    assert "nothing does not exist" in wrong.content


def test_several_contents_are_tables_by_their_names(proc: fdstore.Process, tools: fdstore.Toolset) -> None:
    proc.create(TABLE)
    proc.put(
        "countries.json", '{"rows": [{"name": "Paris", "country": "FR"}, {"name": "Rome", "country": "IT"}]}'
    )

    joined = tools.call(
        "sql_fd",
        {
            "query": "SELECT country, people FROM cities JOIN countries ON city = name",
            "fds": {"cities": 1, "countries": "name:countries.json#J/rows"},
        },
    )

    assert joined.content == "country,people\nFR,2103778\n"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "give fd, whose table is content, or fds"),
        ({"fd": 1, "fds": {"a": "fd:1"}}, "give fd, whose table is content, or fds"),
        ({"fds": {"a b": "fd:1"}}, "'a b' is no name of a table"),
        ({"fds": {"1a": "fd:1"}}, "'1a' is no name of a table"),
        ({"fds": {"a": "fd:1", "A": "fd:1"}}, "differ by more than case"),
        ({"fds": {f"t{n}": "fd:1" for n in range(21)}}, "21 tables are more than 20"),
        ({"fds": {"a": "city"}}, "'city' names no descriptor"),
    ],
)
def test_tables_are_given_in_one_way(
    proc: fdstore.Process, tools: fdstore.Toolset, arguments: dict[str, object], problem: str
) -> None:
    proc.create(TABLE)

    refused = tools.call("sql_fd", {"query": "SELECT 1", **arguments})

    assert only(refused.content)["type"] == "invalid_argument"
    assert problem in refused.content


@pytest.mark.parametrize(
    "query", ["SELECT town FROM content", "SELECT city FROM contents", "SELECT c.x FROM content c"]
)
def test_an_unknown_column_is_answered_with_those_that_there_are(
    proc: fdstore.Process, tools: fdstore.Toolset, query: str
) -> None:
    proc.create(TABLE)

    refused = tools.call("sql_fd", {"fd": 1, "query": query})

    assert "content has the columns: city VARCHAR, people BIGINT" in refused.content
    assert "/tmp" not in refused.content


@pytest.mark.parametrize(
    ("content", "selector", "query", "expected"),
    [
        (TABLE, "#L1-3", "SELECT sum(people) AS n FROM content", "n\n2624552\n"),
        ('{"a": [{"n": 1}, {"n": 2}]}', "#J/a", "SELECT sum(n) AS n FROM content", "n\n3\n"),
        ('{"n": 1}\n{"n": 2}\n', "#J/1", "FROM content", "n\n2\n"),
        ("a b\nc\r\n\n\x00\td", "#L2-", "FROM content", 'line,text\n1,"c\r"\n2,""\n3,\x00\td\n'),
    ],
)
def test_a_part_is_a_table(
    proc: fdstore.Process, content: str, selector: str, query: str, expected: str
) -> None:
    found = sql_fd(proc, proc.create(content).fd + selector, query)

    assert proc.read(found.fd).text == expected


def test_a_long_text_has_a_row_for_each_line(proc: fdstore.Process) -> None:
    lines = [f"{number}: {'é' * (number % 50)}" for number in range(30_000)]
    log = proc.create("\n".join(lines))

    found = sql_fd(proc, log.fd, "SELECT line, text FROM content WHERE line % 10000 = 0 ORDER BY line")
    count = sql_fd(proc, log.fd, "SELECT count(*) AS n, max(line) AS last, min(text) AS text FROM content")

    expected = [["line", "text"], *([str(n), lines[n - 1]] for n in (10_000, 20_000, 30_000))]
    assert list(csv.reader(io.StringIO(proc.read(found.fd).text))) == expected
    assert proc.read(count.fd).text == f"n,last,text\n30000,30000,{min(lines)}\n"


@pytest.mark.thorough("its size takes long")
def test_a_query_that_needs_more_memory_writes_to_its_directory(
    proc: fdstore.Process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duckdb_query, "MEMORY_MB", 60)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    table = proc.create(TABLE)

    query = "SELECT md5(range::VARCHAR) AS x FROM range(3000000) ORDER BY x DESC"
    found = sql_fd(
        proc, table.fd, f"WITH t AS MATERIALIZED ({query}) SELECT count(*) AS n, max(x) AS x FROM t"
    )

    assert proc.read(found.fd).text.startswith("n,x\n3000000,fffff")
    assert list(tmp_path.iterdir()) == []


GROWING = (
    "id,msg\n" + "".join(f"{n},hello\n" for n in range(1000)) + "".join(f"{n},bye,x\n" for n in range(2000))
)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a,b\n1,2\n3,4,5,6\n", "the first 2 lines of content have other columns"),
        (GROWING, "the first 1,001 lines of content have other columns"),
        (GROWING.replace(",", "\t"), "the first 1,001 lines of content have other columns"),
        ("id,msg\n" + "1,hello\n" * 1000 + "7,he,llo\n2,x\n", "different numbers of columns"),
        ("a,b\n" + "1,2\n" * 30_000 + "7,8,9\n", "Expected Number of Columns: 2 Found: 3"),
    ],
)
def test_no_row_of_a_table_is_left_out_without_a_word(proc: fdstore.Process, text: str, problem: str) -> None:
    d = proc.create(text, media_type="text/csv")

    with pytest.raises(InvalidArgument, match="query a part whose lines are alike") as caught:
        sql_fd(proc, d.fd, "SELECT count(*) FROM content")
    assert problem in caught.value.problem
    found = sql_fd(proc, f"{d.fd}#L1-2", "SELECT count(*) AS n FROM content")
    assert proc.read(found.fd).text == "n\n1\n"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("The cities of France\nin 2024\na,b,c\n1,2,3\n4,5,6\n", 2),
        ("Figures of 2024\n1,2\n3,4\n", 2),
        ("# made by a tool\na,b\n1,2\n", 1),
        ("a\n1\n2\n", 2),
        ('"a,b"\n1\n2\n', 2),
    ],
)
def test_a_title_above_a_table_is_none_of_its_rows(proc: fdstore.Process, text: str, count: int) -> None:
    d = proc.create(text, media_type="text/csv")

    assert proc.read(sql_fd(proc, d.fd, "SELECT count(*) AS n FROM content").fd).text == f"n\n{count}\n"


def test_a_late_row_of_another_type_makes_its_column_a_text(proc: fdstore.Process) -> None:
    rows = "".join(f"{n},{n}\n" for n in range(30_000))
    d = proc.create(f"id,v\n{rows}oops,2\n", media_type="text/csv")

    found = sql_fd(proc, d.fd, "SELECT max(id) AS id, sum(v) AS v FROM content")

    assert proc.read(found.fd).text == f"id,v\noops,{sum(range(30_000)) + 2}\n"


@pytest.mark.parametrize(
    ("text", "media_type"),
    [
        ('{"a":1}\n{"a":3}\nnoise\n{"a":2}\n', "application/json"),
        ("a,b\n" + "1,2\n" * 30_000 + "7\n", "text/csv"),
    ],
)
def test_an_error_of_the_text_advises_what_is_possible(
    proc: fdstore.Process, text: str, media_type: str
) -> None:
    d = proc.create(text, media_type=media_type)

    with pytest.raises(InvalidArgument, match="query a part whose lines are alike") as caught:
        sql_fd(proc, d.fd, "FROM content")

    said = str(caught.value)
    assert [word for word in ("Possible", "table0", "COPY", "read_csv", "=true") if word in said] == []
    assert proc.read(sql_fd(proc, f"{d.fd}#L1-2", "SELECT count(*) AS n FROM content").fd).text


def test_an_error_names_the_table_and_keeps_the_words_of_its_value(proc: fdstore.Process) -> None:
    whole = proc.create('{"a": 1}\n').fd
    bad = proc.create('{"a": 1}\nnoise\n', media_type="application/json").fd
    fds = {f"t{number}": whole for number in range(12)}

    with pytest.raises(InvalidArgument, match=r"^fd: t10 cannot be read as a table: .*file \"t10\""):
        sql_fd(proc, fds | {"t10": bad}, "FROM t0")
    with pytest.raises(InvalidArgument, match="LINE 5: Possible fixes: none"):
        sql_fd(proc, whole, "SELECT CAST('LINE 5: Possible fixes: none' AS INT)")
