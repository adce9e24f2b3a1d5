"""Expired leases that count as lost, depending on the sweeper's observations of the Redis clock."""

from __future__ import annotations

import pytest

from fdstore.store.processes.leases import LEASE_S, RENEW_EVERY_S, SWEEP_EVERY_S, LossDetector

GRACE_S = LEASE_S / 2
START = 1_700_000_000.0


def detector_after_an_hour() -> tuple[LossDetector, float]:
    """Return a detector that has observed for an hour, and the time of its last observation."""
    watch = LossDetector()
    now = START
    while now < START + 3600:
        now += SWEEP_EVERY_S
        watch.look(now)
    return watch, now


def test_after_watching_without_a_gap_an_expired_lease_is_lost_immediately():
    watch, now = detector_after_an_hour()

    assert watch.look(now + SWEEP_EVERY_S) == 0
    assert watch.look(now + SWEEP_EVERY_S + GRACE_S) == 0


def test_a_new_sweeper_grants_holders_half_a_lease():
    watch = LossDetector()

    assert watch.look(START) == GRACE_S
    assert watch.look(START + 3) == GRACE_S - 3
    assert watch.look(START + GRACE_S) == 0


@pytest.mark.parametrize("gap_s", [GRACE_S + 0.1, LEASE_S, 3600, -0.1, -3600])
def test_after_a_gap_or_a_clock_change_holders_get_half_a_lease(gap_s):
    watch, now = detector_after_an_hour()
    back = now + gap_s

    assert watch.look(back) == GRACE_S
    assert watch.look(back + GRACE_S) == 0


def test_a_gap_during_the_grace_period_restarts_it():
    watch, now = detector_after_an_hour()
    back = now + 60
    assert watch.look(back) == GRACE_S
    back_again = back + 1 + LEASE_S

    assert watch.look(back + 1) == GRACE_S - 1
    assert watch.look(back_again) == GRACE_S


def test_a_holder_can_renew_after_the_longest_silence_that_is_not_a_gap():
    watch, now = detector_after_an_hour()
    renewed_at = now - RENEW_EVERY_S  # at the latest, when Redis goes away at `now`
    back = now + GRACE_S

    assert watch.look(back) == 0
    assert renewed_at + LEASE_S - back >= 2
