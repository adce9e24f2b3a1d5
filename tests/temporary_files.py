"""The temporary directory of a test session, which must be empty when the session ends.

Tests, and the programs that they start, find it by TMPDIR, so a file that is left there belongs to this
session, whatever else runs on the machine. pytest's own directories stay where they are without it: pytest
keeps those of the last three sessions.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

FOR_ALL_TO_ENTER = 0o711


def _all_may_enter(directory: Path) -> bool:
    return all(each.stat().st_mode & 0o001 for each in (directory, *directory.parents))


def _make() -> Path:
    """Make the directory where every user can enter: the commands of a sandbox may run as nobody."""
    places = [Path(tempfile.gettempdir()).resolve(), Path("/tmp"), Path("/var/tmp")]
    place = next((each for each in places if _all_may_enter(each) and os.access(each, os.W_OK)), places[0])
    made = Path(tempfile.mkdtemp(prefix="fdt-", dir=place))  # short: addresses of sockets lie below it
    made.chmod(FOR_ALL_TO_ENTER)
    return made


def _described(path: Path) -> str:
    """Return a path, and of a link where it leads: a test's own directory tells which test it was."""
    return f"{path} -> {path.readlink()}" if path.is_symlink() else str(path)


class TemporaryFiles:
    """A pytest plugin of the process that controls the session: pytest-xdist's workers inherit TMPDIR."""

    def __init__(self) -> None:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
        self._directory = _make()
        self._left: list[str] = []
        self.frameworks_run = False
        """Agent frameworks leave files, which are not ours to judge; they go with the directory."""
        os.environ["TMPDIR"] = str(self._directory)
        tempfile.tempdir = None  # else the value from before

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        interrupted = session.exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        if not interrupted and not self.frameworks_run:
            self._left = sorted(map(_described, self._directory.rglob("*")))
        if self._left:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._left:
            terminalreporter.section("temporary files that the tests left behind", red=True)
            terminalreporter.write_line("\n".join(self._left))

    def pytest_unconfigure(self) -> None:
        shutil.rmtree(self._directory, ignore_errors=True)
