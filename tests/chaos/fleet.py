"""`fleet.py COUNT [OPTIONS]`: workers that are forks of one interpreter; each that dies is replaced.

A fork starts within milliseconds, also on a busy machine, where a new interpreter takes many seconds. With
`FLEET_QUICK` set, leases have the times of `quick_times`.
"""

from __future__ import annotations

import os
import sys

if os.environ.get("FLEET_QUICK"):
    import quick_worker as worker
else:
    from fdstore_workers import worker  # noqa: F401 - imported before the forks

from fdstore_workers.__main__ import main
from fdstore_workers.forks import die_with_parent


def start() -> None:
    """Fork one worker, which dies with this process."""
    parent = os.getpid()
    if os.fork() == 0:
        die_with_parent(parent)
        main()
        os._exit(1)  # click has exited before


if __name__ == "__main__":
    count = int(sys.argv.pop(1))
    for _ in range(count):
        start()
    while True:
        os.wait()
        start()
