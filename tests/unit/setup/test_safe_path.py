"""Entries that are removed from the search paths of modules and programs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from fdstore.agents.runtime.broker_url import find_broker
from fdstore.agents.runtime.queue import celery_app
from fdstore.local.redis_conf import find_cli
from fdstore.setup.safe_path import drop_relative_entries


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["/usr/lib/ours", str(tmp_path), str(tmp_path / "lib"), "/opt/tools"])
    return tmp_path


@pytest.mark.parametrize("given", ["", ":", ".:", ":lib", "/opt/tools:.", "./lib:.."])
def test_relative_entries_of_pythonpath_are_dropped_here_and_for_children(
    here: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    monkeypatch.setenv("PYTHONPATH", given)
    relative = {os.path.abspath(entry) for entry in given.split(":") if given and not entry.startswith("/")}

    drop_relative_entries()

    assert not relative & set(sys.path)
    assert "/opt/tools" in sys.path
    assert os.environ["PYTHONPATH"] == ("/opt/tools" if "/opt/tools" in given else "")


def test_the_current_directory_is_kept_if_pythonpath_has_its_absolute_path(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", f":{here}")

    drop_relative_entries()

    assert str(here) in sys.path
    assert os.environ["PYTHONPATH"] == str(here)


def test_without_pythonpath_nothing_changes(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    before = list(sys.path)

    drop_relative_entries()

    assert sys.path == before
    assert "PYTHONPATH" not in os.environ


def test_programs_of_the_current_directory_are_not_found(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "redis-cli").write_text("#!/bin/sh\n")
    (here / "redis-cli").chmod(0o755)
    (here / "bin").mkdir()
    found = find_cli()

    for entry in ("", ".", "sub/.."):
        monkeypatch.setenv("PATH", entry + os.pathsep + os.environ["PATH"])
        assert find_cli() == found
        drop_relative_entries()
        assert all(map(os.path.isabs, os.environ["PATH"].split(os.pathsep)))


def test_a_django_settings_variable_changes_no_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "shop.settings")
    before = list(sys.path)

    # Celery warns, or puts the current directory first, where it looks for a Django project
    celery_app(find_broker("redis://localhost"))

    assert sys.path == before
