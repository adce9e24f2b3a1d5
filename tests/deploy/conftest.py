"""A Redis as deploy/ runs it: the usual server of this machine, and each other one in `make test-all`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.deployed import BINARIES, Deployed
from tests.servers import each_server


@pytest.fixture(params=each_server(BINARIES))
def deployed(request: pytest.FixtureRequest) -> Iterator[Deployed]:
    """A stopped Redis for each redis-server of this machine."""
    # not tmp_path: the address of a socket holds about 100 bytes
    with tempfile.TemporaryDirectory(prefix="fdstore-") as folder:
        yield Deployed(request.param, Path(folder))
