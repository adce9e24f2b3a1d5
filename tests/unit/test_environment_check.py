"""Descriptions of how the environment of a background worker differs from that of a later command."""

from __future__ import annotations

from pathlib import Path

import pytest

from fdstore.local.worker import BackgroundWorker
from fdstore.local.worker_environment import Surroundings

BASE = {"PATH": "/usr/bin", "ANTHROPIC_API_KEY": "secret-1", "HOUSE": "7"}


def differences(there: dict[str, str], here: dict[str, str], *, for_functions: bool = True) -> list[str]:
    had, now = (Surroundings.here("salt", environ) for environ in (there, here))
    return had.differences(now, for_functions=for_functions)


def test_identical_environments_have_no_differences() -> None:
    assert differences(BASE, dict(BASE)) == []


def test_a_missing_or_different_key_is_named_without_its_value() -> None:
    keyless = {"PATH": "/usr/bin", "HOUSE": "7"}

    assert differences(keyless, BASE) == ["ANTHROPIC_API_KEY is not set there"]
    assert differences(BASE | {"ANTHROPIC_API_KEY": "secret-2"}, BASE) == [
        "ANTHROPIC_API_KEY is another there"
    ]
    assert "secret" not in repr(Surroundings.here("salt", BASE))


def test_a_command_without_a_key_accepts_a_worker_with_one() -> None:
    assert differences(BASE, {"PATH": "/usr/bin", "HOUSE": "7"}) == []


@pytest.mark.parametrize("name", ["ANTHROPIC_BASE_URL", "HTTPS_PROXY", "FDSTORE_BROKER_URL"])
def test_another_model_proxy_or_queue_matters_to_every_agent(name: str) -> None:
    assert differences(BASE | {name: "x"}, BASE, for_functions=False) == [f"{name} is set there"]


def test_variables_and_the_directory_matter_where_python_functions_are_called(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir("/")
    had = Surroundings.here("salt", BASE | {"HOUSE": "8"})
    monkeypatch.chdir(tmp_path)
    now = Surroundings.here("salt", BASE)

    assert had.differences(now, for_functions=True) == ["HOUSE is another there", "its directory is /"]
    assert had.differences(now, for_functions=False) == []


def test_variables_that_vary_between_terminals_are_ignored() -> None:
    there = {"SHLVL": "2", "TERM": "xterm", "SSH_TTY": "/dev/pts/1", "PWD": "/", "TMUX": "x"}

    assert differences(BASE | there, BASE | {"TERM": "vt100"}) == []


def test_each_store_and_each_prefix_has_a_background_worker_of_its_own(tmp_path: Path) -> None:
    stores = [("redis://a", "fdstore"), ("redis://b", "fdstore"), ("redis://a", "other")]

    logs = {BackgroundWorker(tmp_path, url, prefix).log for url, prefix in stores}

    assert len(logs) == 3


def test_below_a_file_there_is_no_worker(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    worker = BackgroundWorker(tmp_path / "file" / "data", "redis://127.0.0.1:1", "fdstore")

    assert worker.pid() is None
    assert worker.differences(for_functions=True) == []
