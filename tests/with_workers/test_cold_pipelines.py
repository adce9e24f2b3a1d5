"""Real workers move contents out under their own pipelines, which read and write as ever."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fdstore.store.trees import ceilings
from tests import cold_contents
from tests.cold_contents import Known, long_text
from tests.waiting import wait_until
from tests.with_workers.pipe_bench import Bench

TEXT = Known(long_text(20_000))


@pytest.fixture
def cold_bench(bench: Bench, tmp_path: Path) -> Iterator[Bench]:
    """A bench whose worker moves every content out as soon as it may."""
    cold_contents.use_cold(bench.store, f"file://{tmp_path / 'cold'}", least="1000")
    yield bench
    for member in bench.store.tree(bench.proc.id).members:
        for each in bench.store.process(member.id).list():
            bench.store.process(member.id).close(each.fd)
    cold_contents.tidy(bench.store)
    assert not cold_contents.objects_in(tmp_path / "cold")
    for name in ("cold", "cold_after", "cold_min"):
        bench.store.run(ceilings.put(bench.store.prefix, name, None))


def wait_until_cold(bench: Bench, count: int) -> None:
    wait_until(
        lambda: len(cold_contents.cold_contents_of(bench.store, bench.proc.id)) >= count,
        what=f"a worker that moves {count} contents out",
    )


@pytest.mark.thorough("ten seconds of waiting")
def test_pipelines_read_cold_inputs_and_their_outputs_become_cold(cold_bench: Bench, tmp_path: Path) -> None:
    bench = cold_bench
    given = bench.proc.create(TEXT.text, page_size=TEXT.page_size).fd
    wait_until_cold(bench, 1)
    sevens = "".join(line for line in TEXT.text.splitlines(keepends=True) if "7" in line)

    started = [bench.pipe("cat", "grep 7", in_fd=given) for _ in range(3)]
    counted = bench.pipe("wc -c", in_fd=given)
    for each in (*started, counted):
        bench.wait(each["process"])

    assert bench.show("read_fd", fd=counted["fd"]).body.strip() == str(len(TEXT.text.encode()))
    wait_until_cold(bench, 4)
    for each in started:
        assert bench.proc.read(each["fd"], read_all=True).text == sevens
    TEXT.check(bench.proc, given, tmp_path)
    again = bench.pipe("tail -n 3", in_fd=started[0]["fd"])
    bench.wait(again["process"])
    assert bench.proc.read(again["fd"]).text == "".join(sevens.splitlines(keepends=True)[-3:])
