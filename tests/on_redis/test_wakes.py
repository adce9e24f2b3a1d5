"""Wake-ups that may be lost are sent again, but a busy day does not fill the queue with them."""

from __future__ import annotations

from typing import Any

import pytest

from fdstore.client import Process, Store
from fdstore.store import leases, processes


def test_the_wake_ups_of_a_process_that_nobody_claims_become_rarer(
    store: Store, proc: Process, execute: Any
) -> None:
    child = store.run(processes.create_child(proc.handle, [], state="ready"))

    def pause_s() -> float:
        assert store.run(leases.check_overdue(child.keys)).decision == "wake"
        seconds, micros = execute("TIME")
        due = float(execute("ZSCORE", "fdstore:{triage}:leases", child.id))
        return due - int(seconds) - int(micros) / 1e6

    assert [pause_s() for _ in range(7)] == pytest.approx([10, 20, 40, 80, 160, 160, 160], abs=1)

    claimed = store.run(leases.claim(child.keys, "w"))
    assert claimed
    execute("HSET", child.keys.record, "lease_until", "1")
    assert pause_s() == pytest.approx(10, abs=1)
