"""Commands in each sandbox of this machine."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.workers.engines import ENGINES, working


@pytest.fixture
def world_readable_dir() -> Iterator[Path]:
    """A directory that every user can read, like those of programs."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(params=[engine for engine in ENGINES if engine in working()])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)
