"""When a lease that ran out may be counted as a loss, by what a sweeper saw of Redis' clock."""

from __future__ import annotations

import pytest

from fdstore.store.leases import LEASE_S, RENEW_EVERY_S, SWEEP_EVERY_S, LossDetector

GRACE_S = LEASE_S / 2
START = 1_700_000_000.0


def watching() -> tuple[LossDetector, float]:
    """One that has watched for an hour, and when it last looked."""
    watch = LossDetector()
    now = START
    while now < START + 3600:
        now += SWEEP_EVERY_S
        watch.look(now)
    return watch, now


def test_who_has_watched_without_a_gap_judges_at_once() -> None:
    watch, now = watching()

    assert watch.look(now + SWEEP_EVERY_S) == 0
    assert watch.look(now + SWEEP_EVERY_S + GRACE_S) == 0


def test_who_has_just_begun_to_watch_gives_holders_half_a_lease() -> None:
    watch = LossDetector()

    assert watch.look(START) == GRACE_S
    assert watch.look(START + 3) == GRACE_S - 3
    assert watch.look(START + GRACE_S) == 0


@pytest.mark.parametrize("gap_s", [GRACE_S + 0.1, LEASE_S, 3600, -0.1, -3600])
def test_after_a_gap_and_after_the_clock_was_set_holders_get_their_time(gap_s: float) -> None:
    watch, now = watching()
    back = now + gap_s

    assert watch.look(back) == GRACE_S
    assert watch.look(back + GRACE_S) == 0


def test_a_gap_while_holders_are_given_time_gives_it_anew() -> None:
    watch, now = watching()
    back = now + 60
    assert watch.look(back) == GRACE_S
    back_again = back + 1 + LEASE_S

    assert watch.look(back + 1) == GRACE_S - 1
    assert watch.look(back_again) == GRACE_S


def test_a_holder_has_time_to_renew_after_the_longest_gap_that_is_none() -> None:
    watch, now = watching()
    renewed_at = now - RENEW_EVERY_S  # at the latest, when Redis goes away at `now`
    back = now + GRACE_S

    assert watch.look(back) == 0
    assert renewed_at + LEASE_S - back >= 2
