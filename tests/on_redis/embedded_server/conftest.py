"""Embedded servers of every installed version, in new data directories."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.on_redis.embedded_server.servers import BINARIES, VERSIONS


@pytest.fixture(params=BINARIES, ids=[".".join(map(str, version)) for version in sorted(VERSIONS)])
def binary(request: pytest.FixtureRequest) -> Path:
    return Path(request.param)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A temporary directory with a short path, used for all temporary files during the test."""
    with tempfile.TemporaryDirectory(prefix="fd-") as folder:
        (Path(folder) / "tmp").mkdir()
        monkeypatch.setattr(tempfile, "tempdir", f"{folder}/tmp")
        yield Path(folder)
