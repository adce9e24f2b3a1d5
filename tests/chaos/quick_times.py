"""Every time of a lease, and how long Redis is asked again, a tenth of what it is, for who imports this:
a test need not wait for longer than what it tests. The proportions are kept, so what holds here holds
there."""

from __future__ import annotations

from fdstore.agent import runner
from fdstore.store import leases, wire

FASTER = 10

leases.LEASE_S /= FASTER
leases.RENEW_EVERY_S /= FASTER
leases.SWEEP_EVERY_S /= FASTER
leases.WAKE_AGAIN_S /= FASTER
runner.STOP_GRACE_S /= FASTER
wire.DEADLINE_S /= FASTER
