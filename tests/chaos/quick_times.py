"""Every time of a lease, and how long Redis is asked again, a fraction of what it is, for who imports this:
a test need not wait for longer than what it tests. The proportions are kept, so what holds here holds
there. `CHAOS_FASTER` says how much faster."""

from __future__ import annotations

import os

from fdstore.runtime import claim
from fdstore.store import leases
from fdstore.wire import retry

FASTER = float(os.environ.get("CHAOS_FASTER", "10"))

leases.LEASE_S /= FASTER
leases.RENEW_EVERY_S /= FASTER
leases.SWEEP_EVERY_S /= FASTER
leases.WAKE_AGAIN_S /= FASTER
claim.STOP_GRACE_S /= FASTER
claim.POLL_S /= FASTER
retry.DEADLINE_S /= FASTER
retry.PAUSES_S = tuple(pause_s / FASTER for pause_s in retry.PAUSES_S)
