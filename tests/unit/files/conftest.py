"""An export root for writing files."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An export root with a directory in it, beside a directory that must never be touched."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_bytes(b"secret")
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    return root
