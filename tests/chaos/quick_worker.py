"""`python -P -m fdstore_workers` with the times of `quick_times`."""

from __future__ import annotations

import quick_times

from fdstore_workers import sweeper
from fdstore_workers import worker as worker
from fdstore_workers.__main__ import main

sweeper.SWEEPER_S /= quick_times.FASTER
worker.LEAVE_AFTER_S /= quick_times.FASTER

if __name__ == "__main__":
    main()
