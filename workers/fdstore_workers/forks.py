"""Set up and end the forked processes of a worker.

A forked process dies with its parent, is preferred by the OOM killer, and exits without unwinding the
parent's stack.
"""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import click

from fdstore.errors import FDStoreError


def die_with_parent(parent: int) -> None:
    """Have the system kill this process when its parent dies."""
    if sys.platform == "linux":
        set_death_signal = 1
        ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL, 0, 0, 0)
    else:
        threading.Thread(target=_watch_parent, args=(parent,), name="parent", daemon=True).start()
    if os.getppid() != parent:
        os._exit(1)


def _watch_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def raise_oom_score(more: int) -> None:
    """Add `more` to the score of this process for the OOM killer."""
    score = Path("/proc/self/oom_score_adj")
    with suppress(OSError, ValueError):
        score.write_text(str(min(int(score.read_text()) + more, 1000)))


def run_and_exit(body: Callable[[], int]) -> None:
    """Run `body` and exit with its status, without unwinding the supervisor's stack."""
    status = 1
    try:
        status = exit_status(body)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except BaseException:  # noqa: BLE001
        traceback.print_exc()
    finally:
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def exit_status(body: Callable[[], int]) -> int:
    """Return the status of `body`. An `FDStoreError` prints one line to stderr and returns 1."""
    try:
        return body()
    except FDStoreError as error:
        click.echo(f"fdstore: {error.type}: {error}", err=True)
        return 1
