"""What pages written by hand state of the code: the name of each statement, and its text.

A page has it between `<!-- NAME -->` and `<!-- / -->`, and `make generate` writes it there. So a number or a
table stands in the code alone, and a change of it is made in one place. Names end with the unit of a number.
"""

from __future__ import annotations

from fdstore.store.processes import leases
from reference import metrics

STATEMENTS: dict[str, str] = {
    "lease_s": f"{leases.LEASE_S:g}",
    "takeover_s": f"{leases.LEASE_S + leases.LEASE_S / 2:g}",
    "metrics": metrics.served(),
    "metrics_of_opentelemetry": metrics.sent(),
}
