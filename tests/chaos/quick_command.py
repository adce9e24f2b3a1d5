"""`fdstore` with the times of `quick_times`, for a fork of the template of processes."""

from __future__ import annotations

from fdstore.cli import main as main
from tests.chaos import quick_times

assert quick_times.FASTER >= 1
