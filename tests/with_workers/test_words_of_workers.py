"""Workers use the words of fdstore, not of the library that takes their messages."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from tests.thorough import thorough
from tests.waiting import PATIENCE_S
from tests.worker_process import running_worker


@pytest.mark.parametrize("redis_server", ["unix", *thorough("the same over TCP", "tcp")], indirect=True)
def test_a_worker_says_that_it_ends_and_what_runs_as_root_needs(redis_url: str, tmp_path: Path) -> None:
    environ = {**os.environ, "FDSTORE_URL": redis_url}
    with running_worker(tmp_path, environ=environ, log="worker.log") as worker:
        worker.process.send_signal(signal.SIGTERM)
        assert worker.process.wait(PATIENCE_S) == 0
        said = worker.log

    assert re.search(r"INFO [a-z._]+: ends: takes nothing more, and lets what runs finish its step\n", said)
    assert ("runs as root" in said) == (os.geteuid() == 0)
    for word in ("shutdown", "Ctrl+C", "superuser", "--uid", "Warning:"):
        assert word not in said
