"""Embedded servers, in new data directories: the newest, and each other installed one in `make test-all`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.on_redis.embedded_server.servers import BINARIES
from tests.servers import each_server


@pytest.fixture(params=each_server(BINARIES))
def binary(request: pytest.FixtureRequest) -> Path:
    return Path(request.param)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A temporary directory with a short path, used for all temporary files during the test."""
    with tempfile.TemporaryDirectory(prefix="fd-") as folder:
        (Path(folder) / "tmp").mkdir()
        monkeypatch.setattr(tempfile, "tempdir", f"{folder}/tmp")
        yield Path(folder)
