"""Objects created by the imports of a program are frozen, so the garbage collector skips them."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from fdstore.setup.optional_packages import frozen_imports


@pytest.fixture(autouse=True)
def restore_gc() -> Iterator[None]:
    frozen = gc.get_freeze_count()
    yield
    if not frozen:
        gc.unfreeze()


def test_objects_created_during_imports_are_frozen_afterwards() -> None:
    before = gc.get_freeze_count()

    with frozen_imports():
        assert not gc.isenabled()
        made = [[number] for number in range(1000)]

    assert gc.get_freeze_count() >= before + len(made)
    assert gc.isenabled()


def test_the_garbage_collector_is_enabled_again_when_an_import_fails() -> None:
    with pytest.raises(ModuleNotFoundError), frozen_imports():
        import no_such_package  # noqa: F401

    assert gc.isenabled()
