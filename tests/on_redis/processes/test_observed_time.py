"""The observations of the Redis clock by a fleet's sweepers are in Redis, so that a new one need not wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fdstore.client import Store
from fdstore.store.clock import redis_now
from fdstore.store.processes import leases

Execute = Callable[..., Any]
KEY = "fdstore:sweeper:observed"
GRACE_S = leases.LEASE_S / 2


def observed_until(store: Store, execute: Execute, seen_ago_s: float) -> None:
    """Write what a sweeper leaves that observed for an hour, until `seen_ago_s` before now."""
    seen = store.run(redis_now()) - seen_ago_s
    execute("HSET", KEY, "seen", f"{seen:.6f}", "since", f"{seen - 3600:.6f}")


def left_s(store: Store) -> float:
    return store.run(leases.observe("fdstore")).left_s


def test_the_first_sweeper_of_a_store_grants_holders_half_a_lease(store: Store) -> None:
    assert left_s(store) == GRACE_S
    assert 0 < left_s(store) < GRACE_S


def test_a_new_sweeper_judges_at_once_if_another_one_observed_until_now(
    store: Store, execute: Execute
) -> None:
    observed_until(store, execute, GRACE_S - 1)

    assert left_s(store) == 0


@pytest.mark.parametrize("seen_ago_s", [GRACE_S + 1, 3600, -3600], ids=["gap", "long-gap", "set-back"])
def test_after_a_gap_a_new_sweeper_grants_holders_half_a_lease(
    store: Store, execute: Execute, seen_ago_s: float
) -> None:
    observed_until(store, execute, seen_ago_s)

    assert left_s(store) == GRACE_S
    assert 0 < left_s(store) < GRACE_S


@pytest.mark.parametrize("command", [("SET", KEY, "x"), ("HSET", KEY, "seen", "x", "since", "nan")])
def test_damaged_observations_count_as_none_and_are_replaced(
    store: Store, execute: Execute, command: tuple[str, ...]
) -> None:
    execute(*command)

    assert left_s(store) == GRACE_S
    assert 0 < left_s(store) < GRACE_S
