"""Any sequence of calls on a real Redis matches a model of plain strings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from fdstore.client import Store
from tests.properties import examples


def test_any_sequence_of_calls_matches_plain_strings(
    store_model: Any, store: Store, execute: Any, tmp_path: Path
) -> None:
    class OnRedis(store_model):
        pass

    OnRedis.store, OnRedis.execute, OnRedis.folder = store, staticmethod(execute), tmp_path

    run_state_machine_as_test(
        OnRedis,
        settings=settings(
            max_examples=examples(40),
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
