"""Passwords in URLs: where they may stand, and where they never appear."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from fdstore.local.redis_server import PrivateServer
from tests.thorough import thorough
from tests.waiting import PATIENCE_S


@pytest.fixture
def guarded_url() -> Iterator[str]:
    with PrivateServer({"requirepass": "topsecret"}) as server:
        yield server.url.replace("unix://", "unix://:topsecret@")


WARNED = "fdstore: warning: others on this machine can see the password in --url; "


def test_only_a_password_on_the_command_line_gives_a_warning(make_command, guarded_url):
    command = make_command()
    for words in (
        ["--url", guarded_url, "ps"],
        ["ps", "--url", guarded_url],
        ["ps", "--json", "--url", guarded_url],
    ):
        ended = command(*words)
        assert ended.code == 0
        assert ended.err.startswith(WARNED)
        assert ended.err.count("warning") == 1
        assert "topsecret" not in ended.err
    assert command("ps", "--url", guarded_url.replace(":topsecret@", "")).err.startswith(
        "fdstore: permission_error"
    )
    by_variable = make_command(FDSTORE_URL=guarded_url)("ps")
    assert (by_variable.code, by_variable.out) == (0, "")
    assert "warning" not in by_variable.err


def test_a_url_is_read_from_a_file_that_only_its_owner_should_read(make_command, guarded_url, tmp_path):
    command = make_command()
    file = tmp_path / "url"
    file.write_text(f"{guarded_url}\n# the team's Redis\n")
    file.chmod(0o600)

    assert command("put", "triage", "-", "--url-file", file, stdin=b"kept").out == "fd:1\n"
    assert command("--url-file", "url", "cat", "triage", "1") == (0, b"kept", "")
    file.chmod(0o640)
    seen = command("cat", "triage", "1", "--url-file", file)
    assert (seen.code, seen.out) == (0, "kept")
    assert seen.err == (
        "fdstore: warning: others can read the password in the file of --url-file; chmod 600 it\n"
    )


@pytest.mark.parametrize("content", [None, b"", b"\n", b"\xff"])
def test_a_file_without_a_url_is_a_usage_error(command, tmp_path, content):
    if content is not None:
        (tmp_path / "url").write_bytes(content)

    for words in (["--url-file", "url", "ps"], ["ps", "--url-file", "url"]):
        ended = command(*words)
        assert ended.code == 2
        assert "--url-file" in ended.err


@pytest.mark.parametrize(
    "words",
    [
        ["--url-file", "url", "worker"],
        *thorough("other places", ["--url", "{}", "worker"], ["worker", "--url-file", "url"]),
    ],
)
def test_the_command_line_of_a_worker_does_not_contain_the_url(make_command, guarded_url, tmp_path, words):
    (tmp_path / "url").write_text(guarded_url)
    (tmp_path / "url").chmod(0o600)
    with make_command().start(*[word.format(guarded_url) for word in words]) as worker:
        assert any(b"ready: " in line for line in worker.stderr)
        command_line = Path(f"/proc/{worker.pid}/cmdline").read_bytes()
        worker.terminate()
        worker.communicate()

    assert b"fdstore_workers" in command_line
    assert b"topsecret" not in command_line


@pytest.mark.thorough("a worker of its own")
def test_the_background_worker_receives_its_store_in_the_environment(fresh):
    with fresh.start("up", "--json", fresh=True) as command:
        up = json.loads(command.communicate()[0])

    process = Path(f"/proc/{up['worker']['pid']}")
    assert b"redis.sock" not in (process / "cmdline").read_bytes()
    assert f"FDSTORE_URL={up['server']['url']}".encode() in (process / "environ").read_bytes().split(b"\0")


def test_redis_cli_receives_the_password_without_a_command_line_argument(make_command, guarded_url, tmp_path):
    (tmp_path / "url").write_text(guarded_url)
    (tmp_path / "url").chmod(0o600)
    command = make_command()

    with command.start("--url-file", "url", "redis-cli", fresh=True) as asking:
        asking.stdin.write(b"PING\n")
        asking.stdin.flush()
        pong = asking.stdout.readline()
        command_line = Path(f"/proc/{asking.pid}/cmdline").read_bytes()
        asking.communicate(timeout=PATIENCE_S)

    assert pong == b"PONG\n"
    assert b"redis-cli" in command_line
    assert b"topsecret" not in command_line
