"""Hooks and a store that is away: each event is a program of its own, and few of them wait."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from redis.exceptions import ConnectionError as LostConnection

from fdstore import cli
from fdstore.errors import NotFound, StoreUnavailable
from fdstore.hosts.hooks.outage import leave_alone_if_away
from fdstore.local.redis_server import PrivateServer
from fdstore.wire.breaker import PAUSES_S
from fdstore.wire.redis_errors import translate
from tests.hook_events import after_bash
from tests.outages import SilentServer
from tests.waiting import wait_until

LONG = "a line of a long log\n" * 1000
URL = "redis://db.example"


@pytest.fixture(autouse=True)
def short_patience(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("fdstore.setup.settings.HOST_PATIENCE_S", 0.2)
    monkeypatch.setenv("FDSTORE_DATA_DIR", str(tmp_path / "data"))


def run_hook(url: str, folder: Path, stdout: str = LONG) -> Result:
    return CliRunner().invoke(
        cli.cli, ["hook", "--url", url, "claude"], input=json.dumps(after_bash(stdout, cwd=str(folder)))
    )


def test_one_event_waits_for_a_store_that_never_answers_and_the_next_ones_do_not(tmp_path: Path) -> None:
    with SilentServer() as silent:
        first, *later = [run_hook(silent.url, tmp_path) for _ in range(5)]

        ends = [(done.exit_code, done.stdout, done.exception) for done in (first, *later)]
        assert ends == [(0, "", None)] * 5
        assert "no reply in time" in first.stderr
        assert all("it is tried again in" in done.stderr for done in later)
        assert silent.connections == 1


def test_a_small_output_needs_no_store(tmp_path: Path) -> None:
    with SilentServer() as silent:
        done = run_hook(silent.url, tmp_path, "3 lines")

        assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")
        assert silent.connections == 0
    assert not (tmp_path / "data").exists()


def test_a_store_that_is_back_gets_outputs_again(tmp_path: Path) -> None:
    with PrivateServer() as server:
        server.stop()
        assert "the output stays as it was" in run_hook(server.url, tmp_path).stderr
        assert "it is tried again in" in run_hook(server.url, tmp_path).stderr

        server.start()

        wait_until(lambda: "fd_result" in run_hook(server.url, tmp_path).stdout, what="a descriptor")
    assert list((tmp_path / "data").glob("hook-outage-*")) == []


# what is remembered, with a clock of the test


class Remembered:
    """The memory of hooks for one store; `now` is the time of all of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now = 5000.0
        self.tried = 0

    def run(self, error: Exception | None = None) -> None:
        with leave_alone_if_away(self.folder, URL, lambda: self.now):
            self.tried += 1
            if error is not None:
                raise error

    def fail(self) -> str:
        """Run a hook whose store does not answer, and return its problem."""
        cause = LostConnection("refused")
        error = translate(cause, URL)
        error.__cause__ = cause
        with pytest.raises(StoreUnavailable) as caught:
            self.run(error)
        assert isinstance(caught.value, StoreUnavailable)
        return caught.value.problem


@pytest.fixture
def remembered(tmp_path: Path) -> Remembered:
    return Remembered(tmp_path / "memory")


def test_a_failure_is_remembered_for_a_pause_that_grows(remembered: Remembered) -> None:
    pauses = []
    for _ in range(7):
        assert remembered.fail() == "refused"
        tried, began = remembered.tried, remembered.now
        while "tried again in" in remembered.fail():
            remembered.now += 0.5
        assert remembered.tried == tried + 1
        pauses.append(remembered.now - began)
        remembered.now += PAUSES_S[-1]

    assert pauses[:3] == [1.0, 4.0, 16.0]
    assert pauses[-1] == PAUSES_S[-1]


def test_while_one_hook_tries_the_store_others_leave_it_alone(remembered: Remembered) -> None:
    remembered.fail()
    remembered.now += 1

    with leave_alone_if_away(remembered.folder, URL, lambda: remembered.now):
        assert "tried again in" in remembered.fail()

    remembered.run()
    assert list(remembered.folder.iterdir()) == []


def test_an_error_of_the_store_is_an_answer(remembered: Remembered) -> None:
    with pytest.raises(NotFound):
        remembered.run(NotFound("fd:1"))

    remembered.run()


@pytest.mark.parametrize("damaged", [b"", b"{", b'{"began":1}', b"\xff"])
def test_a_damaged_memory_is_none(remembered: Remembered, damaged: bytes) -> None:
    remembered.fail()
    [file] = remembered.folder.iterdir()
    file.write_bytes(damaged)

    remembered.run()


def test_a_clock_that_was_set_back_keeps_no_store_away(remembered: Remembered) -> None:
    remembered.fail()
    remembered.now -= 3600

    remembered.run()


def test_a_directory_that_cannot_be_written_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    remembered = Remembered(tmp_path / "file" / "below")

    assert [remembered.fail(), remembered.fail()] == ["refused", "refused"]
