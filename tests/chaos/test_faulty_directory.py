"""The faults of a directory of cold contents are what they say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import obstore
import pytest
from obstore.exceptions import BaseError
from obstore.store import LocalStore

from tests.chaos.conftest import Faults
from tests.chaos.faulty_directory import FaultyDirectory, own_disk

MB = b"x" * (1 << 20)


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[FaultyDirectory]:
    with own_disk(tmp_path / "cold") as made:
        yield made


@pytest.mark.parametrize("fault", ["full", "read_only"])
def test_no_write_succeeds_until_the_fault_is_over(
    fault: str, directory: FaultyDirectory, faults: Faults
) -> None:
    objects = LocalStore(directory.path)
    obstore.put(objects, "tree/one", MB)

    with getattr(directory, fault)():
        faults.note(fault)
        with pytest.raises(BaseError):
            obstore.put(objects, "tree/two", MB)
        assert bytes(obstore.get(objects, "tree/one").bytes()) == MB

    assert [path.name for path in directory.objects()] == ["one"]
    obstore.put(objects, "tree/two", MB)
    assert [path.name for path in directory.objects()] == ["one", "two"]


def test_somebody_changes_an_object(directory: FaultyDirectory, faults: Faults, tmp_path: Path) -> None:
    objects = LocalStore(directory.path)
    obstore.put(objects, "tree/one", MB)
    [path] = directory.objects()
    faults.note("object changed", 3)

    directory.truncate(path, 1000)
    assert path.stat().st_size == 1000
    directory.overwrite(path, b"other")
    assert bytes(obstore.get(objects, "tree/one").bytes()) == b"other"
    (tmp_path / "secret").write_bytes(b"secret")
    directory.lead_to(path, tmp_path / "secret")
    assert path.is_symlink()
