"""`fdstore` with the times of `quick_times`."""

from __future__ import annotations

import quick_times

from fdstore.cli import main

assert quick_times.FASTER >= 1

if __name__ == "__main__":
    main()
