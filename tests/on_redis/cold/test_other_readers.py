"""Programs, SQL and fsspec read cold contents as hot ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fdstore import Toolset
from fdstore.client import Process
from fdstore.integrations.fsspec import FdstoreFileSystem
from fdstore.integrations.sql import sql_fd
from fdstore.store.cold.moving import Moved
from fdstore.store.trees import ceilings

MoveOut = Callable[[], Moved]
TABLE = "city,people\n" + "".join(f"Orléans {number},{number * 7}\n" for number in range(5000))
PROGRAM = """\
log = fd('fd:1')
parts = log.split(chars=20_000)
[hit] = log.search('Orléans 4321,', max_matches=1)
(len(log.text()), log.line(17), hit.line, sum(part.total_lines for part in parts), parts[2].line(1))
"""


@pytest.fixture
def cold_table(proc: Process, move_out: MoveOut) -> Process:
    """A process with a table that stays cold, as a text and as bytes."""
    for content in (TABLE, TABLE.encode()):
        proc.create(content, media_type="text/csv")
    assert move_out().contents == 2
    proc.store.run(ceilings.put(proc.store.prefix, "cold_after", "none"))
    return proc


def of_a_hot_one(proc: Process, read: Callable[[Process], object]) -> object:
    """Return what is read of the same contents in Redis."""
    hot = proc.store.process("hot")
    for content in (TABLE, TABLE.encode()):
        hot.create(content, media_type="text/csv")
    return read(hot)


def test_a_program_reads_a_cold_content(cold_table: Process) -> None:
    def run(proc: Process) -> str:
        result = Toolset(proc, enabled=["run_python"]).call("run_python", {"code": PROGRAM})
        assert not result.is_error, result.text
        return result.text

    found = run(cold_table)

    assert str(len(TABLE)) in found
    assert found.splitlines()[1:] == of_a_hot_one(cold_table, run).splitlines()[1:]


def test_sql_reads_a_cold_content(cold_table: Process) -> None:
    query = "SELECT count(*) AS n, sum(people) AS people, max(city) AS last FROM content"

    def ask(proc: Process) -> str:
        return proc.read(sql_fd(proc, "fd:1", query).fd, read_all=True).text

    found = ask(cold_table)

    assert "87482500" in found
    assert found == of_a_hot_one(cold_table, ask)


def test_a_file_of_fsspec_reads_a_cold_content(cold_table: Process, redis_url: str) -> None:
    data = TABLE.encode()
    fs = FdstoreFileSystem(url=redis_url, skip_instance_cache=True)
    try:
        for name in ("fd:1", "fd:2"):
            path = f"triage/{name}"
            assert fs.cat_file(path) == data
            assert fs.cat_file(path, start=70_000, end=70_100) == data[70_000:70_100]
            assert fs.info(path)["size"] == len(data)
            with fs.open(path, "rb") as file:
                file.seek(-9, 2)
                assert file.read() == data[-9:]
    finally:
        fs.close()
