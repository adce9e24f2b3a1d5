"""`COUNT [OPTIONS]`: workers that are forks of one process; each that dies is replaced.

With `FLEET_QUICK` set, leases have the times of `quick_times`.
"""

from __future__ import annotations

import os
import sys

from fdstore_workers.__main__ import main as run_worker
from fdstore_workers.forks import die_with_parent

if os.environ.get("FLEET_QUICK"):
    from tests.chaos import quick_worker as quick_worker


def start() -> None:
    """Fork one worker, which dies with this process."""
    parent = os.getpid()
    if os.fork() == 0:
        die_with_parent(parent)
        run_worker()
        os._exit(1)  # click has exited before


def main() -> None:
    count = int(sys.argv.pop(1))
    for _ in range(count):
        start()
    while True:
        os.wait()
        start()
