"""A directory of cold contents that is full or read-only: moves fail without a trace, reads go on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fdstore.client import Store
from tests import cold_contents
from tests.chaos.conftest import Faults
from tests.chaos.faulty_directory import FaultyDirectory, own_disk
from tests.cold_contents import Known, long_text
from tests.thorough import thorough

TEXTS = [Known(long_text(700), 70), Known(long_text(900, "other"))]


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[FaultyDirectory]:
    with own_disk(tmp_path / "cold") as made:
        yield made


@pytest.mark.parametrize("fault", ["full", *thorough("the other fault", "read_only")])
def test_no_move_succeeds_and_nothing_is_lost(
    fault: str, store: Store, directory: FaultyDirectory, faults: Faults, tmp_path: Path
) -> None:
    cold_contents.use_cold(store, directory.url)
    proc = store.process("t")
    for known in TEXTS:
        proc.create(known.text, page_size=known.page_size)
    assert cold_contents.turn_cold(store) == 2
    before = directory.objects()
    late = proc.create(TEXTS[0].text * 3)

    with getattr(directory, fault)():
        faults.note(fault)
        assert cold_contents.turn_cold(store) == 0
        for number, known in enumerate(TEXTS, 1):
            assert proc.read(f"fd:{number}", read_all=True).text == known.text
        assert proc.read(late.fd, read_all=True).text == TEXTS[0].text * 3

    assert set(before) <= set(directory.objects())
    cold_contents.tidy(store)
    cold_contents.turn_cold(store)
    assert cold_contents.is_cold(store, "t", "t/3")
    cold_contents.tidy(store)
    assert not cold_contents.garbage(store, directory.path)
    for number, known in enumerate(TEXTS, 1):
        known.check(proc, f"fd:{number}", tmp_path)


def test_an_object_that_cannot_be_deleted_now_goes_later(
    store: Store, directory: FaultyDirectory, faults: Faults
) -> None:
    cold_contents.use_cold(store, directory.url)
    proc = store.process("t")
    proc.create(TEXTS[0].text)
    cold_contents.turn_cold(store)

    with directory.read_only():
        faults.note("read only")
        proc.close("fd:1")
        cold_contents.tidy(store)
        assert len(directory.objects()) == 1

    cold_contents.tidy(store)
    assert directory.objects() == []
