"""Contents that become cold and come back at any moment are as plain strings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from fdstore.client import Store
from tests.cold_model import ColdModel
from tests.properties import examples


@pytest.mark.thorough("generated calls")
def test_any_sequence_of_calls_matches_plain_strings(store: Store, execute: Any, tmp_path: Path) -> None:
    class Tried(ColdModel):
        pass

    Tried.store, Tried.execute, Tried.folder = store, staticmethod(execute), tmp_path

    run_state_machine_as_test(
        Tried,
        settings=settings(
            max_examples=examples(100),
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )

    assert Tried.moved, "no content became cold, so this proved nothing"
