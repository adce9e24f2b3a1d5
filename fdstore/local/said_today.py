"""What was said today, so that commands that run one after the other say it once a day.

DATA_DIR/said/0b5c1f...   one empty file for each thing said; its time is when that was
"""

from __future__ import annotations

import hashlib
import time
from contextlib import suppress
from pathlib import Path

from fdstore.errors import StartFailed
from fdstore.local.data_directory import make_private
from fdstore.text.quantities import DAY_S


def is_first_today(data_dir: Path, what: str) -> bool:
    """Return whether `what` was not said in the last 24 hours, and note that it is said now. Where nothing
    can be noted, it is said each time."""
    with suppress(OSError, StartFailed):
        make_private(data_dir)
        directory = data_dir / "said"
        directory.mkdir(mode=0o700, exist_ok=True)
        file = directory / hashlib.sha256(what.encode("utf-8", "surrogateescape")).hexdigest()[:32]
        if file.exists() and 0 <= time.time() - file.stat().st_mtime < DAY_S:
            return False
        file.touch(mode=0o600)
    return True
