"""Waiting for a store with what must be written, and what the log says of it."""

from __future__ import annotations

import logging
import threading

import pytest

from fdstore.agents.runtime.store_wait import SAY_EVERY_S, WaitLog, until_taken
from fdstore.errors import NewerFormat, NotFound, StoreFull, StoreReadOnly, StoreUnavailable

LOG = logging.getLogger("fdstore.test")
AWAY = StoreUnavailable("here", "no reply in time")
NO_WRITES = StoreReadOnly("NOREPLICAS Not enough good replicas to write")


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Soon:
    """An event that is never set, and whose waits take no time."""

    def __init__(self) -> None:
        self.pauses: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.pauses.append(timeout)
        return False


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_a_wait_is_said_once_a_minute_and_its_end_once(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    waiting = WaitLog(LOG, "it waits", clock)

    for _ in range(3):
        for _ in range(50):
            waiting.waits(NO_WRITES)
        clock.now += SAY_EVERY_S
    waiting.goes_on()
    waiting.goes_on()

    assert lines(caplog) == [*[f"it waits: {NO_WRITES}"] * 3, "it waits: no longer, after 180 s"]


def test_waits_that_come_and_go_are_said_once_a_minute_too(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    waiting = WaitLog(LOG, "it waits", clock)

    for _ in range(100):
        waiting.waits(NO_WRITES)
        clock.now += 0.1
        waiting.goes_on()

    assert len(lines(caplog)) == 2


def test_a_step_is_repeated_with_growing_pauses_until_the_store_takes_it() -> None:
    soon = Soon()
    failures = iter([AWAY, NO_WRITES, StoreFull("maxmemory is reached"), *[AWAY] * 20])

    def step() -> str:
        for error in failures:
            raise error
        return "taken"

    assert until_taken(step, soon, WaitLog(LOG, "it waits")) == "taken"
    assert soon.pauses == sorted(soon.pauses)
    assert len(soon.pauses) == 23
    assert soon.pauses[0] < soon.pauses[-1] <= 5


@pytest.mark.parametrize("error", [NotFound("triage"), NewerFormat("the tree triage", "format 9")])
def test_an_error_that_no_wait_mends_is_raised(error: Exception) -> None:
    def step() -> None:
        raise error

    with pytest.raises(type(error)):
        until_taken(step, Soon(), WaitLog(LOG, "it waits"))


def test_work_that_was_lost_meanwhile_is_given_up() -> None:
    lost = threading.Event()
    lost.set()

    def step() -> None:
        raise NO_WRITES

    with pytest.raises(StoreReadOnly):
        until_taken(step, lost, WaitLog(LOG, "it waits"))
