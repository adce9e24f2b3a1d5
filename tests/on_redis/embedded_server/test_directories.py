"""Data directories of all kinds: long, unusual, impossible."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from fdstore.cli.doctor_checks import data_directory
from fdstore.errors import StartFailed, StoreUnavailable
from fdstore.local.data_directory import check_owner, make_private, problem_of
from fdstore.local.redis_server import EmbeddedServer
from fdstore.local.worker import BackgroundWorker, stop_embedded_workers
from tests.on_redis.embedded_server.servers import ask, crash

CLOSED = "redis://127.0.0.1:1"


def test_a_long_data_directory_is_reached_through_a_short_link(tmp_path, short, binary):
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
    assert list((short / "run").iterdir()) == []


def test_a_command_with_another_runtime_directory_finds_the_server_of_a_long_directory(tmp_path, short):
    long = tmp_path.joinpath(*["a-directory-with-a-long-name"] * 5)
    (short / "run").mkdir()
    server = EmbeddedServer(long, runtime_dir=short / "run")
    url = server.ensure()

    elsewhere = EmbeddedServer(long, runtime_dir=short / "not-there")

    assert elsewhere.ensure() != url
    assert elsewhere.status().pid == server.status().pid
    assert elsewhere.stop()


def test_a_short_link_in_a_directory_writable_by_others_is_not_used(tmp_path, short):
    long = tmp_path.joinpath(*["a-directory-with-a-long-name"] * 5)
    open_to_others = short / "run" / f"fdstore-{os.getuid()}"
    open_to_others.mkdir(parents=True)
    open_to_others.chmod(0o777)

    status = EmbeddedServer(long, runtime_dir=short / "run").status()

    assert status.url.startswith(f"unix://{short}/tmp/")
    assert list(open_to_others.iterdir()) == []


@pytest.mark.parametrize(
    "name", ["with space", 'with "quotes" and \\', "mit Umlaut ü", "50%#?", "line\nbreak", "not UTF-8 \udce9"]
)
def test_directories_with_unusual_names_work(tmp_path, short, binary, name):
    server = EmbeddedServer(tmp_path / name, runtime_dir=short, binary=binary)

    server.ensure()
    ask(server, "SET", "page", "text")
    crash(server)
    server.ensure()

    assert ask(server, "GET", "page") == "text"
    assert server.stop()
    assert list(tmp_path.iterdir()) == [tmp_path / name]
    assert not list(short.rglob("*.sock"))


def test_a_directory_that_cannot_be_created_is_a_store_error(tmp_path):
    (tmp_path / "file").write_text("")

    server = EmbeddedServer(tmp_path / "file" / "data")

    assert not server.status().running
    with pytest.raises(StoreUnavailable, match="Not a directory"):
        server.ensure()


def test_a_directory_of_another_user_is_refused_and_left_as_it_is(tmp_path):
    directory = tmp_path / "data"
    directory.mkdir(mode=0o755)
    if os.geteuid() == 0:
        os.chown(directory, 54321, 54321)
    else:
        directory = Path("/usr")
    server = EmbeddedServer(directory)

    def state() -> list[object]:
        found = directory.stat()  # listing a directory changes its time of access
        return [found.st_mode, found.st_uid, found.st_gid, found.st_mtime_ns, *sorted(directory.iterdir())]

    before = state()

    for act in (
        server.ensure,
        server.stop,
        BackgroundWorker(directory, CLOSED, "fdstore").ensure,
        lambda: stop_embedded_workers(directory),
    ):
        with pytest.raises(StartFailed, match=r"it belongs to .*: run this as that user, or name"):
            act()

    assert state() == before
    finding = data_directory(directory)
    assert (finding.ok, "belongs to" in finding.said) == (False, os.geteuid() == 0)


def test_a_directory_below_that_of_another_user_is_none_of_ours(tmp_path):
    """As HOME is under a `sudo` that keeps it."""
    home, other = tmp_path / "ann", os.geteuid() + 1
    home.mkdir()
    if os.geteuid() == 0:
        os.chown(home, 54321, 54321)

    problem, advice = problem_of(home / ".local" / "share" / "fdstore", other) or ("", "")

    assert problem.startswith(f"{home} belongs to ")
    assert "name a directory of yours in FDSTORE_DATA_DIR" in advice


@pytest.mark.parametrize("mode", [0o777, 0o757])
def test_nothing_is_made_below_a_directory_that_others_can_write_to(tmp_path, mode):
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(mode)
    (tmp_path / "link").symlink_to(tmp_path / "open")

    for above in ("open", "link"):
        refuses(tmp_path / above / "mine" / "data", r"other users can write to .*: .* in FDSTORE_DATA_DIR")

    assert list((tmp_path / "open").iterdir()) == []


def refuses(directory: Path, words: str) -> None:
    for act in (EmbeddedServer(directory).ensure, BackgroundWorker(directory, CLOSED, "fdstore").ensure):
        with pytest.raises(StartFailed, match=words):
            act()
    assert not data_directory(directory).ok


@pytest.mark.parametrize("mode", [0o1777, 0o755, 0o775])
def test_a_sticky_directory_and_one_of_the_own_group_may_be_above_it(tmp_path, mode):
    (tmp_path / "above").mkdir()
    (tmp_path / "above").chmod(mode)

    check_owner(tmp_path / "above" / "mine" / "data")


def test_directories_that_are_made_are_for_their_owner_alone(tmp_path):
    before = os.umask(0)
    try:
        make_private(tmp_path / "share" / "fdstore")
    finally:
        os.umask(before)

    made = [tmp_path / "share", tmp_path / "share" / "fdstore"]
    assert [stat.S_IMODE(each.stat().st_mode) for each in made] == [0o700, 0o700]
