"""Variables that other applications have set for Celery and Python."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import warnings
from importlib import import_module
from pathlib import Path

import pytest

from fdstore.setup.foreign_variables import IGNORED_OF_CELERY, OF_CELERY, drop_foreign_variables

READ = re.compile(r"(?:environ(?:\.get\(|\[)|getenv\(|_env\(|_rdb_handler\(|envvar=)\s*[\"'](\w+)[\"']")
OF_OTHER_TRANSPORTS_AND_PROGRAMS = {
    # read by code that fdstore does not run: Django, execv on Windows, other brokers, other commands
    *("DJANGO_PROJECT_DIR", "DJANGO_SETTINGS_MODULE", "NUMBER_OF_PROCESSORS", "PUBSUB_EMULATOR_HOST"),
    *("SLMQ_ACCOUNT", "SLMQ_HOST", "SLMQ_PORT", "SLMQ_SECURE", "SL_API_KEY", "SL_USERNAME"),
    # of terminals, for colours of Celery's own commands
    *("ITERM_PROFILE", "TERM"),
    # of Celery's debugger and its fixtures for tests
    *("CELERY_RDB_HOST", "CELERY_RDB_PORT", "NO_WORKER", "TEST_BACKEND", "TEST_BROKER", "WORKER_LOGLEVEL"),
}
KNOWN = OF_CELERY | IGNORED_OF_CELERY | OF_OTHER_TRANSPORTS_AND_PROGRAMS


def read_by(package: str) -> set[str]:
    init = import_module(package).__file__
    assert init is not None
    found: set[str] = set()
    for file in Path(init).parent.rglob("*.py"):
        if "celery/bin" not in str(file):  # its own commands
            found |= set(READ.findall(file.read_text(errors="replace")))
    return found


@pytest.mark.parametrize("package", ["celery", "kombu", "billiard"])
def test_every_variable_that_celery_reads_is_dropped_or_ignored(package: str) -> None:
    assert read_by(package) - KNOWN == set()


def test_variables_for_celery_are_dropped_and_those_of_other_applications_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in OF_CELERY | IGNORED_OF_CELERY:
        monkeypatch.setenv(name, "theirs")

    drop_foreign_variables()

    assert set(os.environ) >= IGNORED_OF_CELERY
    assert not OF_CELERY & set(os.environ)


def test_warnings_as_errors_do_not_reach_our_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONWARNINGS", "error")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        options = list(sys.warnoptions)
        try:
            drop_foreign_variables()
            warnings.warn("old", DeprecationWarning, stacklevel=1)
        finally:
            sys.warnoptions[:] = options


def test_a_command_starts_under_warnings_as_errors() -> None:
    env = {**os.environ, "PYTHONWARNINGS": "error"}

    done = subprocess.run(
        [sys.executable, "-P", "-m", "fdstore", "--version"],
        capture_output=True,
        text=True,
        env=env,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
