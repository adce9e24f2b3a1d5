"""Any sequence of calls on a fake Redis gives what plain strings give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from fdstore.client import Store
from tests.properties import examples


def test_any_sequence_of_calls_matches_plain_strings(
    store_model: Any, store: Store, runner: Any, tmp_path: Path
) -> None:
    class OnAFake(store_model):
        pass

    OnAFake.store, OnAFake.execute, OnAFake.folder = store, staticmethod(runner.execute), tmp_path

    run_state_machine_as_test(
        OnAFake,
        settings=settings(
            max_examples=examples(25),
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
