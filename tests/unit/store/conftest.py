"""A process on a fake Redis."""

from __future__ import annotations

import pytest

from fdstore.client import Process, Store


@pytest.fixture
def proc(store: Store) -> Process:
    return store.process("triage")
