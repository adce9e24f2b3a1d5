"""Wake-ups are repeated in case one was lost, without flooding the queue under load."""

from __future__ import annotations

from typing import Any

import pytest

from fdstore.client import Process, Store
from fdstore.store.processes import leases, processes

PAUSES_S = [3, 3, 3, 6, 12, 24, 48, 96, 192, 192]


def test_wake_ups_of_an_unclaimed_process_become_less_frequent(
    store: Store, proc: Process, execute: Any
) -> None:
    child = store.run(processes.create_child(proc.handle, [], state="ready"))

    def pause_s() -> float:
        assert store.run(leases.check_overdue(child.keys)).decision == "wake"
        seconds, micros = execute("TIME")
        due = float(execute("ZSCORE", "fdstore:{triage}:leases", child.id))
        return due - int(seconds) - int(micros) / 1e6

    assert [pause_s() for _ in range(10)] == pytest.approx(PAUSES_S, abs=1)

    claimed = store.run(leases.claim(child.keys, "w"))
    assert claimed
    execute("HSET", child.keys.record, "lease_until", "1")
    assert pause_s() == pytest.approx(3, abs=1)
