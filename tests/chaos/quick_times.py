"""Importing this module divides all lease times and the retry deadline of Redis by `CHAOS_FASTER`, so that
tests are short. The proportions are kept, so results carry over to the real times. On a busy machine
`CHAOS_FASTER` is smaller: a worker must get to renew its leases."""

from __future__ import annotations

import os

from fdstore.agents.runtime import claim
from fdstore.store.processes import leases
from fdstore.wire import retry

FASTER = float(os.environ["CHAOS_FASTER"])

leases.LEASE_S /= FASTER
leases.RENEW_EVERY_S /= FASTER
leases.SWEEP_EVERY_S /= FASTER
leases.WAKE_AGAIN_S /= FASTER
claim.STOP_GRACE_S /= FASTER
claim.POLL_S /= FASTER
retry.DEADLINE_S /= FASTER
retry.PAUSES_S = tuple(pause_s / FASTER for pause_s in retry.PAUSES_S)
