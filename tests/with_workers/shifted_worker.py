"""`python -P -m fdstore_workers` on a machine whose clock is `CLOCK_SHIFT_S` seconds off."""

from __future__ import annotations

import os
import time

SHIFT_S = float(os.environ["CLOCK_SHIFT_S"])
right = time.time

time.time = lambda: right() + SHIFT_S
"""Before anything else is imported: libraries keep the function."""

from fdstore_workers.__main__ import main as main  # noqa: E402
