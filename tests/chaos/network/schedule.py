"""The faults of a network and their times: a schedule that follows from a seed.

Each machine beside Redis has a sequence of faults of its own, so several overlap. All concern the way between
that machine and Redis; no other machines talk to each other.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

from tests.chaos.network.switch import CUT, PASS, Direction, Rule

REDIS = "redis"
LOSING = PASS._replace(loss=0.05)
SHARP_LEASES = ((0.4, 1.0), (0.4, 1.0), (1.0, 2.5))
OTHER_LEASES = (0.2, 1.0)
REST_LEASES = (0.2, 1.0)


class Kind(NamedTuple):
    """A kind of fault: what happens to frames to Redis and from Redis. A `sharp` one lets nothing through in
    some direction, and lasts longer than a lease at times."""

    name: str
    to_redis: Rule | None
    from_redis: Rule | None

    @property
    def sharp(self) -> bool:
        return CUT in (self.to_redis, self.from_redis)


KINDS = (
    Kind("link cut", CUT, CUT),
    Kind("link cut towards Redis", CUT, None),
    Kind("link cut from Redis", None, CUT),
    Kind("20 ms of delay", Rule(delay_s=0.02), Rule(delay_s=0.02)),
    Kind("200 ms of delay", Rule(delay_s=0.2), Rule(delay_s=0.2)),
    Kind("5 % of loss", LOSING, LOSING),
)


class Fault(NamedTuple):
    """A fault of the way between `machine` and Redis, from `begins_s` after the start until `ends_s`."""

    begins_s: float
    ends_s: float
    machine: str
    kind: Kind

    @property
    def rules(self) -> list[tuple[Direction, Rule]]:
        there, back = (self.machine, REDIS), (REDIS, self.machine)
        ways = ((there, self.kind.to_redis), (back, self.kind.from_redis))
        return [(direction, rule) for direction, rule in ways if rule is not None]

    def __str__(self) -> str:
        return f"{self.begins_s:6.2f} s - {self.ends_s:6.2f} s  {self.machine}: {self.kind.name}"


def plan_faults(rng: random.Random, machines: Sequence[str], seconds: float, lease_s: float) -> list[Fault]:
    """Return the faults of `seconds`, by their beginning. Most sharp ones are shorter than a lease, so that
    calls succeed when they are repeated, and a third is longer, so that leases are lost. Between two faults a
    machine has some rest."""
    planned = []
    for machine in machines:
        now_s = rng.uniform(0, lease_s)
        kinds: list[Kind] = []
        while now_s < seconds:
            kinds = kinds or rng.sample(KINDS, len(KINDS))
            kind = kinds.pop()
            shortest, longest = rng.choice(SHARP_LEASES) if kind.sharp else OTHER_LEASES
            lasts_s = lease_s * rng.uniform(shortest, longest)
            planned.append(Fault(now_s, min(now_s + lasts_s, seconds), machine, kind))
            now_s += lasts_s + lease_s * rng.uniform(*REST_LEASES)
    return sorted(planned, key=lambda fault: fault.begins_s)
