"""Commands in each sandbox of this machine."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import leftovers
from tests.unit.workers.engines import engines
from tests.waiting import wait_until


@pytest.fixture
def world_readable_dir() -> Iterator[Path]:
    """A directory that every user can read, like those of programs."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def nothing_left() -> Iterator[None]:
    """No process, descriptor or thread outlives a run."""
    with leftovers.nothing_left():
        yield
    wait_until(lambda: not any(t.name.startswith("feeder") for t in threading.enumerate()))


@pytest.fixture(params=engines())
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)
