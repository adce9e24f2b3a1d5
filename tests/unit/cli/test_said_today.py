"""What commands say once a day."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from fdstore.local.said_today import is_first_today
from fdstore.text.quantities import DAY_S


def test_a_thing_is_said_once_a_day_and_others_for_themselves(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"

    assert is_first_today(data_dir, "torn log here")
    assert not is_first_today(data_dir, "torn log here")
    assert is_first_today(data_dir, "torn log there")
    for file in (data_dir / "said").iterdir():
        found = file.stat()
        assert stat.S_IMODE(found.st_mode) == 0o600
        os.utime(file, (0, found.st_mtime - DAY_S))
    assert is_first_today(data_dir, "torn log here")
    assert not is_first_today(data_dir, "torn log here")


def test_what_cannot_be_noted_is_said_each_time(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("no directory")

    assert is_first_today(tmp_path / "data", "torn log")
    assert is_first_today(tmp_path / "data", "torn log")
