"""`python -P -m fdstore_workers` with the times of `quick_times`, for a template of workers."""

from __future__ import annotations

from tests.chaos import quick_times  # isort: skip: before anything reads its times

from fdstore_workers import sweeper
from fdstore_workers import worker as worker
from fdstore_workers.__main__ import main as main

sweeper.SWEEPER_S /= quick_times.FASTER
worker.LEAVE_AFTER_S /= quick_times.FASTER
