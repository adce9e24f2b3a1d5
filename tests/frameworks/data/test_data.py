"""pandas, PyArrow and DuckDB read and write descriptors by URL, as docs/how-to/data.md says."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import fsspec
import pandas as pd
import pyarrow as pa
import pytest
import redis
from pyarrow import csv, dataset, parquet
from pyarrow.fs import FSSpecHandler, PyFileSystem

from fdstore.client import Process, Store
from fdstore.integrations.fsspec import FdstoreFileSystem
from fdstore.integrations.sql import sql_fd

CITIES = "city,people\nParis,2103778\nLyon,520774\nNice,357737\n"


@pytest.fixture
def proc(store: Store) -> Process:
    """A process whose fd:1 is a table."""
    proc = store.process("triage")
    proc.create(CITIES, media_type="text/csv")
    return proc


@pytest.fixture
def fs(proc: Process) -> Iterator[FdstoreFileSystem]:
    filesystem = fsspec.filesystem("fdstore", url=proc.store.url, skip_instance_cache=True)
    yield filesystem
    filesystem.close()


@pytest.fixture
def frame() -> pd.DataFrame:
    return pd.DataFrame({"city": ["Paris", "Lyon", "Nice"], "people": [2103778, 520774, 357737]})


def test_pandas_reads_a_csv(proc: Process, frame: pd.DataFrame) -> None:
    for url in ("fdstore://triage/fd:1", "fdstore://triage/fd:1.csv"):
        pd.testing.assert_frame_equal(pd.read_csv(url), frame)


def test_pandas_fetches_little_of_a_long_csv_for_its_first_rows(proc: Process) -> None:
    long = proc.create("number,text\n" + "".join(f"{number},{'x' * 80}\n" for number in range(300_000)))
    with redis.Redis.from_url(proc.store.url) as client:
        before = client.info("stats")["total_net_output_bytes"]

        head = pd.read_csv(f"fdstore://triage/{long.fd}", nrows=5)

        sent = client.info("stats")["total_net_output_bytes"] - before
    assert list(head.number) == [0, 1, 2, 3, 4]
    assert sent < 6_000_000 < long.bytes / 4  # fsspec fetches 5 MB at a time


def test_what_pandas_writes_as_csv_is_text_that_a_model_can_read(proc: Process, frame: pd.DataFrame) -> None:
    frame.to_csv("fdstore://triage/tables/cities.csv", index=False)

    assert proc.read("name:tables/cities.csv").text == CITIES
    pd.testing.assert_frame_equal(pd.read_csv("fdstore://triage/tables/cities.csv"), frame)


def test_pandas_writes_and_reads_parquet(proc: Process, frame: pd.DataFrame) -> None:
    frame.to_parquet("fdstore://triage/tables/cities.parquet")

    assert proc.stat("name:tables/cities.parquet").kind == "bytes"
    pd.testing.assert_frame_equal(pd.read_parquet("fdstore://triage/tables/cities.parquet"), frame)
    columns = pd.read_parquet("fdstore://triage/tables/cities.parquet", columns=["people"])
    assert list(columns.columns) == ["people"]


def test_pandas_reads_and_writes_json_lines(proc: Process, frame: pd.DataFrame) -> None:
    url = "fdstore://triage/cities.jsonl"
    frame.to_json(url, orient="records", lines=True)

    assert proc.read("name:cities.jsonl").text.splitlines()[1] == '{"city":"Lyon","people":520774}'
    pd.testing.assert_frame_equal(pd.read_json(url, lines=True), frame)


def test_pandas_takes_the_store_as_an_option(proc: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FDSTORE_URL")

    read = pd.read_csv("fdstore://triage/fd:1", storage_options={"url": proc.store.url})

    assert len(read) == 3


def test_pyarrow_reads_and_writes(proc: Process, fs: FdstoreFileSystem) -> None:
    files = PyFileSystem(FSSpecHandler(fs))
    with files.open_input_stream("triage/fd:1") as opened:
        table = csv.read_csv(opened)

    parquet.write_table(table, "triage/tables/cities.parquet", filesystem=files)

    assert table.column("city").to_pylist() == ["Paris", "Lyon", "Nice"]
    assert parquet.read_table("triage/tables/cities.parquet", filesystem=files) == table


def test_pyarrow_reads_a_directory_of_names_as_one_dataset(proc: Process, fs: FdstoreFileSystem) -> None:
    files = PyFileSystem(FSSpecHandler(fs))
    for number in range(3):
        part = pa.table({"number": [number]})
        parquet.write_table(part, f"triage/parts/{number}.parquet", filesystem=files)

    found = dataset.dataset("triage/parts", filesystem=files, format="parquet").to_table()

    assert sorted(found.column("number").to_pylist()) == [0, 1, 2]


def test_duckdb_reads_what_pandas_wrote(proc: Process, fs: FdstoreFileSystem, frame: pd.DataFrame) -> None:
    frame.to_parquet("fdstore://triage/cities.parquet")
    with duckdb.connect() as connection:
        connection.register_filesystem(fs)

        found = connection.sql("SELECT city FROM 'fdstore://triage/cities.parquet' WHERE people > 400000")

        assert found.fetchall() == [("Paris",), ("Lyon",)]


def test_sql_over_the_parquet_of_pandas_makes_a_descriptor(proc: Process, frame: pd.DataFrame) -> None:
    frame.to_parquet("fdstore://triage/cities.parquet")

    found = sql_fd(proc, "name:cities.parquet", "SELECT sum(people) AS people FROM content")

    assert proc.read(found.fd).text == "people\n2982289\n"
