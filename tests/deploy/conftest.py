"""A Redis as deploy/ runs it, for every redis-server of this machine."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.deployed import BINARIES, Deployed


@pytest.fixture(params=BINARIES, ids=lambda binary: str(binary).replace(os.sep, "_"))
def deployed(request: pytest.FixtureRequest) -> Iterator[Deployed]:
    """A stopped Redis for each redis-server of this machine."""
    # not tmp_path: the address of a socket holds about 100 bytes
    with tempfile.TemporaryDirectory(prefix="fdstore-") as folder:
        yield Deployed(request.param, Path(folder))
