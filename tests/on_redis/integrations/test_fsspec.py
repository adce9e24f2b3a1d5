"""Descriptors as files of fsspec: the suite of fsspec itself, and what it does not ask for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest
from fsspec.tests import abstract
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fdstore
from fdstore.integrations.fsspec import MEMORY_BYTES, FdstoreFileSystem
from tests.properties import examples


def opened(url: str) -> Iterator[FdstoreFileSystem]:
    filesystem = FdstoreFileSystem(url=url, skip_instance_cache=True)
    yield filesystem
    filesystem.close()


@pytest.fixture
def fs(redis_url: str) -> Iterator[FdstoreFileSystem]:
    """The filesystem over an empty store."""
    yield from opened(redis_url)


class Fixtures(abstract.AbstractFixtures):
    """The facts of this filesystem that the suite of fsspec needs."""

    @pytest.fixture
    def fs(self, redis_url: str) -> Iterator[FdstoreFileSystem]:
        yield from opened(redis_url)

    @pytest.fixture
    def fs_path(self) -> str:
        return "suite/base"

    @pytest.fixture
    def supports_empty_directories(self) -> bool:
        return False


@pytest.mark.thorough("the suite of fsspec itself")
class TestCopy(abstract.AbstractCopyTests, Fixtures):
    pass


@pytest.mark.thorough("the suite of fsspec itself")
class TestGet(abstract.AbstractGetTests, Fixtures):
    pass


@pytest.mark.thorough("the suite of fsspec itself")
class TestPut(abstract.AbstractPutTests, Fixtures):
    pass


class TestPipe(abstract.AbstractPipeTests, Fixtures):
    pass


class TestOpen(abstract.AbstractOpenTests, Fixtures):
    pass


def test_a_descriptor_is_read_by_number_and_by_name(store: fdstore.Store, fs: Any) -> None:
    proc = store.process("triage")
    text = proc.create("one\ntwö\n")
    proc.put("data/a.png", b"\x89PNG\xff")

    assert fs.cat_file(f"fdstore://triage/{text.fd}") == "one\ntwö\n".encode()
    assert fs.cat_file("triage/fd:1.csv", start=-3) == "ö\n".encode()
    assert fs.info("triage/data/a.png")["media_type"] == "image/png"
    assert sorted(fs.find("triage")) == ["triage/data/a.png", "triage/fd:1"]
    assert fs.ls("", detail=False) == ["triage"]


def test_what_is_written_is_text_if_it_can_be_read(store: fdstore.Store, fs: Any) -> None:
    proc = store.process("triage")
    long = "a long line of the log\n" * (MEMORY_BYTES // 20)

    large = b"\xff" + b"x" * 9_000_000
    for name, content in (("a.csv", b"a,b\n"), ("long.log", long.encode()), ("b", large)):
        with fs.open(f"triage/{name}", "wb") as file:
            file.write(content)

    assert [(d.kind, d.media_type, d.bytes) for d in proc.list(prefix="")] == [
        ("text", "text/csv", 4),
        ("bytes", "application/octet-stream", 9_000_001),
        ("text", "text/plain", len(long)),
    ]
    assert proc.read("name:long.log#L7").text == "a long line of the log\n"


def test_a_reader_of_a_file_that_is_replaced_is_told(store: fdstore.Store, fs: Any) -> None:
    fs.pipe("triage/a", b"old " * 1000)
    with fs.open("triage/a", block_size=16) as file:
        assert file.read(4) == b"old "
        fs.pipe("triage/a", b"new")
        with pytest.raises(fdstore.errors.Conflict):
            file.read()


def test_what_is_not_there_or_there_already(store: fdstore.Store, fs: Any) -> None:
    fs.pipe("triage/dir/a", b"1")

    for missing in ("nobody/fd:1", "triage/fd:9", "triage/dir/b", "triage/di"):
        with pytest.raises(FileNotFoundError):
            fs.cat_file(missing)
        with pytest.raises(FileNotFoundError):
            fs.rm_file(missing)
        assert not fs.exists(missing)
    assert [tree.id for tree in store.trees()] == ["triage"]
    with pytest.raises(FileExistsError), fs.open("triage/dir/a", "xb"):
        pass
    with pytest.raises(FileExistsError):
        fs.pipe("triage/fd:1", b"")
    for directory in ("triage", "triage/dir"):
        with pytest.raises(IsADirectoryError):
            fs.open(directory)
    with pytest.raises(fdstore.errors.InvalidArgument):
        fs.pipe("triage/a\nb", b"")


def test_a_rename_is_one_step_and_appending_keeps_what_was_there(store: fdstore.Store, fs: Any) -> None:
    proc = store.process("triage")
    plan = proc.put("draft", "one\n")

    fs.mv("triage/draft", "triage/final")
    with fs.open("triage/final", "ab") as file:
        file.write(b"two\n")

    assert [d.fd for d in proc.list()] == ["name:final"]
    assert proc.read("name:final").text == "one\ntwo\n"
    assert proc.find("draft") is None
    assert plan.fd == "name:draft"


@settings(max_examples=examples(50), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(), start=st.integers(-40, 40), end=st.none() | st.integers(-40, 40))
def test_a_range_is_that_of_a_slice(fs: Any, text: str, start: int, end: int | None) -> None:
    data = text.encode()

    fs.pipe("triage/any", data)

    assert fs.cat_file("triage/any", start, end) == data[start:end]
    assert fs.cat("triage/any") == data


def test_duckdb_reads_and_writes_urls(store: fdstore.Store, fs: Any) -> None:
    proc = store.process("triage")
    proc.create("city,people\nParis,2\nLyon,3\n")

    with duckdb.connect() as connection:
        connection.register_filesystem(fs)
        found = connection.execute("SELECT sum(people) FROM 'fdstore://triage/fd:1.csv'").fetchone()
        connection.execute("COPY (SELECT 7 AS a) TO 'fdstore://triage/out.csv'")

    assert found == (5,)
    assert proc.read("name:out.csv").text == "a\n7\n"
