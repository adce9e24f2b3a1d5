"""One embedded server for a data directory: found by all, with no data lost and no other process harmed."""

from __future__ import annotations

import re
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fdstore.errors import StoreUnavailable
from fdstore.local.redis_conf import binary_version, is_valkey
from fdstore.local.redis_server import EmbeddedServer, PrivateServer
from tests.children import Child
from tests.on_redis.embedded_server.servers import ask, crash, fake_redis_server, setting
from tests.servers import found_servers
from tests.waiting import PATIENCE_S


@pytest.fixture
def embedded(tmp_path: Path, binary: Path) -> Iterator[EmbeddedServer]:
    server = EmbeddedServer(tmp_path / "data", binary=binary)
    yield server
    server.stop()


# --- one server for all


@pytest.mark.thorough("five new interpreters")
def test_five_concurrent_processes_start_one_server(embedded, binary):
    script = (
        "import sys; from pathlib import Path; from fdstore.local.redis_server import EmbeddedServer\n"
        "server = EmbeddedServer(Path(sys.argv[1]), binary=Path(sys.argv[2]))\n"
        "print(server.ensure(), server.status().pid)"
    )
    arguments = [sys.executable, "-W", "error", "-c", script, str(embedded.data_dir), str(binary)]

    commands = [Child(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(5)]
    answers = [command.communicate(timeout=PATIENCE_S) for command in commands]

    assert {errors for _, errors in answers} == {b""}
    assert len({answer for answer, _ in answers}) == 1
    assert (embedded.data_dir / "redis.log").read_text().count("just started") == 1


def test_ten_concurrent_threads_start_one_server(embedded, binary):
    gate = threading.Barrier(10)

    def begin(_: int) -> tuple[str, int | None]:
        server = EmbeddedServer(embedded.data_dir, binary=binary)
        gate.wait()
        return server.ensure(), server.status().pid

    with ThreadPoolExecutor(10) as threads:
        answers = set(threads.map(begin, range(10)))

    assert len(answers) == 1


def test_another_path_to_the_same_directory_finds_the_running_server(embedded, tmp_path, monkeypatch):
    url = embedded.ensure()
    (tmp_path / "link").symlink_to(embedded.data_dir)
    monkeypatch.chdir(tmp_path)

    assert EmbeddedServer(Path("link")).ensure() == url
    assert EmbeddedServer(Path("data")).ensure() == url


# --- nothing is lost


def test_data_is_there_after_a_crash_that_left_socket_and_pid_file(embedded):
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


def test_a_server_whose_socket_was_removed_ends_before_another_opens_its_data(embedded):
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
def test_loading_a_torn_log_never_restores_half_a_script(binary, torn_at):
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


def test_an_undamaged_log_is_not_rewritten(embedded):
    embedded.ensure()
    ask(embedded, "SET", "page", "text")
    crash(embedded)

    embedded.ensure()

    assert "ewriting" not in (embedded.data_dir / "redis.log").read_text()


def test_a_log_that_cannot_be_loaded_is_reported_and_not_changed(embedded):
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


def test_a_newer_redis_loads_the_data_of_an_older_one(tmp_path):
    servers = found_servers()
    older, newer = (EmbeddedServer(tmp_path, binary=servers[i]) for i in (0, -1))
    older.ensure()
    ask(older, "SET", "page", "text")
    older.stop()

    newer.ensure()

    assert ask(newer, "GET", "page") == "text"
    newer.stop()


def test_data_of_a_newer_redis_is_refused_by_an_older_one_that_would_start_empty(tmp_path):
    older = fake_redis_server("Redis server v=6.2.14 sha=0", tmp_path / "bin")
    (tmp_path / "data" / "appendonlydir").mkdir(parents=True)

    with pytest.raises(StoreUnavailable, match=r"written by Redis 7 or later, and .* is 6\.2\.14"):
        EmbeddedServer(tmp_path / "data", binary=older).ensure()


# --- other processes and other users


def test_a_process_that_reuses_the_pid_of_the_server_is_not_signalled(embedded):
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


def test_a_server_whose_directory_has_the_same_suffix_is_not_stopped(short, binary):
    ours = EmbeddedServer(short / "data", binary=binary)
    theirs = EmbeddedServer(Path(f"{short}/other{ours.data_dir}"), binary=binary)
    theirs.ensure()
    pid = theirs.status().pid
    ours.data_dir.mkdir()
    (ours.data_dir / "redis.pid").write_text(str(pid))

    assert not ours.stop()

    assert theirs.status().pid == pid
    theirs.stop()


def test_directory_and_socket_are_for_this_user_alone(embedded):
    embedded.data_dir.mkdir(mode=0o755)

    embedded.ensure()

    assert stat.S_IMODE(embedded.data_dir.stat().st_mode) == 0o700
    assert stat.S_IMODE((embedded.data_dir / "redis.sock").stat().st_mode) == 0o700
    written = [path for path in embedded.data_dir.rglob("*") if re.search(r"aof|rdb|log$", path.name)]
    assert any(path.is_file() for path in written)
    assert [path.name for path in written if path.stat().st_mode & 0o077] == []


def test_the_server_evicts_nothing_and_logs_every_write(embedded):
    embedded.ensure()

    settings = {
        name: setting(embedded, name)
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


def test_every_line_of_redis_conf_has_a_comment(embedded):
    embedded.ensure()

    lines = (embedded.data_dir / "redis.conf").read_text().splitlines()

    for reason, line in zip(lines[2::2], lines[3::2], strict=True):
        assert reason.startswith("# ")
        assert not line.startswith("#")


# --- status and stop


def test_status_describes_the_running_server(embedded, binary):
    url = embedded.ensure()

    status = embedded.status()

    assert status.running
    assert status.pid == int((embedded.data_dir / "redis.pid").read_text())
    assert (status.url, status.data_dir) == (url, str(embedded.data_dir))
    assert status.version == ".".join(map(str, binary_version(binary)))
    assert status.software == ("Valkey" if is_valkey(binary) else "Redis")
    assert status.used_memory_bytes is not None
    assert status.used_memory_bytes > 100_000
    assert status.uptime_s is not None
    assert status.aof_enabled
    assert status.program is not None
    assert Path(status.program).samefile(binary)


def test_the_second_stop_reports_that_no_server_was_running(embedded):
    embedded.ensure()

    assert embedded.stop()
    assert not embedded.stop()

    assert not embedded.status().running
    assert embedded.status().pid is None


def test_the_status_of_a_server_never_started_creates_nothing(tmp_path):
    server = EmbeddedServer(tmp_path / "data")

    assert not server.status().running
    assert not server.stop()

    assert not server.data_dir.exists()
