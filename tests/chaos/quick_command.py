"""`fdstore` with the times of `quick_times`, for a template of processes."""

from __future__ import annotations

from tests.chaos import quick_times  # isort: skip: before anything reads its times

from fdstore.cli import main as main

assert quick_times.FASTER >= 1
