"""`python -m workers` in quick times."""

from __future__ import annotations

import quick_times

from workers import main as worker
from workers import sweeper
from workers.__main__ import main

sweeper.SWEEPER_S /= quick_times.FASTER
worker.LEAVE_AFTER_S /= quick_times.FASTER

if __name__ == "__main__":
    main()
