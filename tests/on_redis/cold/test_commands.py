"""What a person sees of cold contents: limits, du, stat, gc, doctor."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fdstore.cli import cli
from fdstore.client import Store
from fdstore.store.cold.moving import move_due
from tests.cold_contents import objects_in

pytest.importorskip("obstore")

Say = Callable[..., str]


@pytest.fixture
def say(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Say:
    """`say("du", "triage")` returns the output of a command that succeeds."""
    monkeypatch.setenv("FDSTORE_DATA_DIR", str(tmp_path / "data"))

    def run(*words: str, code: int = 0) -> str:
        done = CliRunner().invoke(cli, [*words, "--url", redis_url])
        assert done.exit_code == code, done.output
        return done.output

    return run


def test_hot_and_cold_are_told_apart(say: Say, store: Store, tmp_path: Path) -> None:
    assert "cold is" in say("limits", "set", "cold", f"file://{tmp_path}/o")
    say("limits", "set", "cold_after", "0s")
    proc = store.process("triage")
    proc.create("some text\n" * 50_000)
    proc.create("small")
    assert "COLD" not in say("du")

    assert move_due(store).contents == 1

    assert f"file://{tmp_path}/o" in say("limits")
    assert "COLD" in say("du")
    assert "sealed, cold" in say("du", "triage")
    where = json.loads(say("stat", "triage", "fd:1", "--json"))["where"]
    assert Path(where.removeprefix("file://")).read_text() == "some text\n" * 50_000
    assert where in say("stat", "triage", "fd:1")
    assert "cold" not in say("stat", "triage", "fd:2")
    assert "500.0 kB cold" in " ".join(say("status").split())

    say("rm", "triage", "fd:1")
    assert "would delete 1 object that no content needs\n" in say("gc", "--dry-run")
    assert "deleted 1 object that no content needs\n" in say("gc")
    assert not Path(where.removeprefix("file://")).exists()
    say("limits", "unset", "cold")


def test_unset_says_what_holds_then(say: Say, tmp_path: Path) -> None:
    say("limits", "set", "cold", f"file://{tmp_path}/o")
    for name, value, default in (
        ("cold_after", "none", "24h; 1h if its tree ended"),
        ("cold_min", "5MB", "128KiB"),
        ("cold_mb_per_s", "7", "50"),
    ):
        assert f"{name} is {value} now" in say("limits", "set", name, value)
        assert f"{name} is {default} now" in say("limits", "unset", name)
    assert "fdstore limits unset cold" in say("limits", "set", "cold", "none", code=1)
    assert "cold is nowhere now" in say("limits", "unset", "cold")
    assert "cold_mb_per_s is not negative" in say("limits", "set", "cold_mb_per_s", "-5", code=2)
    assert "`none` means no ceiling" in say("limits", "set", "tree_fds", "-5", code=2)


WRONG: list[tuple[str, str, str]] = [
    ("cold", "http://example.org/x", "none of file://"),
    ("cold", "s3://key:secret@bucket", "credentials"),
    ("cold", "file://relative/dir", "absolute"),
    ("cold", "file:///a/../b", "without . and .."),
    ("cold", "s3://", "bucket"),
    ("cold", "file://[::1", "is not a URL"),
    ("cold", "s3://a]b", "is not a URL"),
    ("cold_after", "soon", "not a time"),
    ("cold_min", "many", "number of bytes"),
    ("cold_mb_per_s", "0", "above 0"),
]


@pytest.mark.parametrize(("name", "value", "problem"), WRONG)
def test_a_wrong_setting_is_refused(say: Say, name: str, value: str, problem: str) -> None:
    assert problem in say("limits", "set", name, value, code=1)


def test_doctor_compares_both_sides(say: Say, store: Store, tmp_path: Path, redis_url: str) -> None:
    say("limits", "set", "cold", f"file://{tmp_path}/o")
    say("limits", "set", "cold_after", "0s")
    store.process("triage").create("some text\n" * 50_000)
    move_due(store)

    assert "DAMAGED" not in CliRunner().invoke(cli, ["doctor", "--deep", "--url", redis_url]).output

    [file] = objects_in(tmp_path / "o")
    file.write_bytes(file.read_bytes()[:-5])
    said = CliRunner().invoke(cli, ["doctor", "--deep", "--url", redis_url]).output
    assert "DAMAGED" in said
    assert "was cut" in said


def test_a_place_that_is_not_mounted_here_is_a_problem(
    say: Say, store: Store, tmp_path: Path, redis_url: str, execute: Callable[..., Any]
) -> None:
    def seen(verb: str) -> str:
        return CliRunner().invoke(cli, [verb, "--url", redis_url], terminal_width=200).output

    say("limits", "set", "cold", f"file://{tmp_path}/o")
    say("limits", "set", "cold_after", "0s")
    store.process("triage").create("some text\n" * 50_000)
    move_due(store)
    assert "is it mounted?" not in seen("doctor") + seen("status")

    (tmp_path / "o").rename(tmp_path / "away")

    for verb in ("doctor", "status"):
        assert "cold contents" in seen(verb)
        assert "is it mounted?" in " ".join(seen(verb).split())
    assert "1 problem" in seen("status")
    execute("HSET", "fdstore:limits", "cold", "nowhere")
    assert "cold contents" in seen("doctor")
