"""`python -P -m fdstore_workers`, which replaces its process a second after a call was lost."""

from __future__ import annotations

from fdstore.agents.runtime import claim
from fdstore_workers import supervisor, worker
from fdstore_workers.__main__ import main as main

supervisor.LOST_CALL_S = 1.0
claim.STOP_GRACE_S = 1.0
worker.LEAVE_AFTER_S = 1.0
