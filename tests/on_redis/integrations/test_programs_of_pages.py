"""The programs that pages of the documentation show as a model's, over texts of 5 MB."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path

import pytest

import fdstore
from fdstore.client import Process
from fdstore.hosts.gateway.options import GatewayOptions
from tests.documents import blocks_of
from tests.on_redis.integrations.hosts import CodeHost

DOCS = Path(__file__).parents[3] / "docs"
LINES = 400_000
CITIES = 50_000


def page(name: str) -> str:
    return (DOCS / name).read_text("utf-8")


@pytest.fixture
def tools(proc: Process) -> fdstore.Toolset:
    return fdstore.Toolset(proc, enabled=["run_python"])


@pytest.mark.thorough("texts of megabytes")
def test_the_program_over_files_of_a_server(redis_url: str) -> None:
    found = re.search(r'run_python\(code="""\n(.*?)"""\)', page("how-to/code.md"), re.DOTALL)
    assert found is not None

    with closing(CodeHost(redis_url, GatewayOptions(code="only", name="files"))) as host:
        assert host.run(found[1]) == "a.log 100000\nb.log 100000"


def test_the_programs_over_stored_texts(proc: Process, tools: fdstore.Toolset) -> None:
    proc.create("".join(f"{number} ERROR {number % 7}\n" for number in range(LINES)), source="build.log")
    first, _ = (block.text for block in blocks_of(page("explanation/programs.md")) if block.language == "py")
    looks, asks = first.rsplit("\n\n", 1)
    split = asks.split("answers = ")[0]  # tests of agents ask a model

    looked = tools.call("run_python", {"code": looks})
    parts = tools.call("run_python", {"code": f"{split}sum(len(part) for part in parts)"})

    assert not looked.is_error, looked.text
    assert f"{LINES} build.log\n" in looked.text
    assert re.search(r"\[\('\d', 14\d\), \('\d', 14\d\), \('\d', 14\d\)\]", looked.text), looked.text
    assert str(proc.stat("fd:1").chars) in parts.text


@pytest.mark.thorough("the page has programs that are tested")
def test_the_query_over_two_tables(proc: Process, tools: fdstore.Toolset) -> None:
    for column, count in (("people", LINES), ("rooms", CITIES)):
        rows = "".join(f"city {number % CITIES},{number}\n" for number in range(count))
        proc.create(f"city,{column}\n{rows}", media_type="text/csv")
    [_, sql] = (block.text for block in blocks_of(page("explanation/programs.md")) if block.language == "py")

    done = tools.call("run_python", {"code": f"{sql}len(rows), sum(row['n'] for row in rows)"})

    assert not done.is_error, done.text
    assert str((CITIES, sum(range(LINES)))) in done.text
