"""`python -P -m fdstore_workers` with the times of `quick_times`, for a fork of the template of processes."""

from __future__ import annotations

from fdstore.agents.runtime import claim
from fdstore_workers import sweeper
from fdstore_workers import worker as worker
from fdstore_workers.__main__ import main as main
from fdstore_workers.pipeline import run_pipeline
from tests.chaos import quick_times

sweeper.SWEEPER_S /= quick_times.FASTER
worker.LEAVE_AFTER_S /= quick_times.FASTER
run_pipeline.STOP_GRACE_S = claim.STOP_GRACE_S
