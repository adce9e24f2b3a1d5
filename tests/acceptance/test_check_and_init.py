"""`fdstore init` and `fdstore check`, as a person writes a first program and mends it."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from fdstore.testing import ScriptedModel, say

MODEL = '[model]\nname = "claude-x"\n'


@pytest.fixture
def storeless(make_command):
    """The command with a store that nothing listens at, and without the key of a model."""
    command = make_command(FDSTORE_URL="redis://127.0.0.1:1")
    command.environment.pop("ANTHROPIC_API_KEY", None)
    return command


def write(folder: Path, name: str, text: str = "") -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(MODEL + text)


def test_a_new_file_is_right_and_says_what_comes_next(storeless, tmp_path):
    written = storeless("init")
    checked = storeless("check", "agent.toml")

    assert (written.code, written.err) == (0, "")
    assert written.lines[1:] == [
        "  fdstore check agent.toml",
        "  fdstore run agent.toml    (with ANTHROPIC_API_KEY set)",
    ]
    assert stat.S_IMODE((tmp_path / "agent.toml").stat().st_mode) & 0o600 == 0o600
    assert (checked.code, checked.err) == (0, "")
    assert checked.lines == [
        "ok       agent.toml: program agent; model claude-sonnet-5-5; "
        "tools read_fd, search_fd, list_fds; links none"
    ]


def test_a_new_file_runs_as_it_stands(command):
    command("init", "first.toml")
    with ScriptedModel([say("I read texts.")]) as model:
        command.environment |= model.environ
        ended = command("run", "first.toml")

    assert (ended.code, ended.out) == (0, "I read texts.\n")
    assert model.requests[0].last_text() == "Say in one sentence what you can do."
    assert model.requests[0].tools == ("read_fd", "search_fd", "list_fds")


def test_a_file_that_is_there_is_replaced_only_when_asked(storeless, tmp_path):
    (tmp_path / "agent.toml").write_text("mine")

    refused = storeless("init")
    kept = (tmp_path / "agent.toml").read_text()
    forced = storeless("init", "--force", "--json")

    assert (refused.code, refused.out, kept) == (1, "", "mine")
    assert refused.err.startswith("fdstore: file_exists: the file 'agent.toml' exists")
    assert "--force" in refused.err
    assert json.loads(forced.out) == {"file": "agent.toml"}
    assert (tmp_path / "agent.toml").read_text().startswith("# An agent")


def test_a_file_whose_name_cannot_be_the_programs_is_right_too(storeless):
    assert "'My Agent.toml'" in storeless("init", "My Agent.toml").out
    assert storeless("check", "My Agent.toml").code == 0


def test_check_follows_links_relative_to_their_files_and_tells_of_each_file_once(storeless, tmp_path):
    write(
        tmp_path,
        "agent.toml",
        '[tools]\nenabled = ["spawn"]\n[linked_programs]\nexpert = "sub/expert.toml"\n',
    )
    write(tmp_path, "sub/expert.toml", '[linked_programs]\nboss = "../agent.toml"\n')
    write(tmp_path, "other.toml", '[tools]\npython = ["m:f"]\n')

    ended = storeless("check", "agent.toml", "sub/expert.toml", tmp_path / "other.toml")

    assert (ended.code, ended.err) == (0, "")
    assert ended.lines == [
        "ok       agent.toml: program agent; model claude-x; tools spawn; links expert (sub/expert.toml)",
        "ok       sub/expert.toml: program expert; model claude-x; tools none; "
        "links boss (sub/../agent.toml)",
        f"ok       {tmp_path / 'other.toml'}: program other; model claude-x; tools m:f; links none",
    ]


def test_a_mistake_names_file_key_and_reason_and_the_other_files_are_checked_too(storeless, tmp_path):
    write(tmp_path, "agent.toml", '[linked_programs]\na = "bad.toml"\n')
    write(tmp_path, "bad.toml", "[limits]\nmax_turns = 0\n")
    write(tmp_path, "dead.toml", '[linked_programs]\na = "absent.toml"\n')
    write(tmp_path, "dead too.toml", '[program]\nname = "d"\n[linked_programs]\na = "absent.toml"\n')

    ended = storeless("check", "agent.toml", "dead.toml", "dead too.toml", "absent.toml")

    assert (ended.code, ended.err) == (1, "")
    assert ended.lines == [
        "ok       agent.toml: program agent; model claude-x; tools none; links a (bad.toml)",
        "PROBLEM  absent.toml: does not exist",
        "PROBLEM  bad.toml: limits.max_turns: must be an integer >= 1",
        "PROBLEM  dead.toml: linked_programs.a: 'absent.toml' does not exist",
        "PROBLEM  dead too.toml: linked_programs.a: 'absent.toml' does not exist",
    ]


def test_check_prints_json_for_programs(storeless, tmp_path):
    write(tmp_path, "agent.toml", '[tools]\nenabled = ["pipe"]\n[linked_programs]\nb = "bad.toml"\n')
    write(tmp_path, "bad.toml", "[tools]\nenabled = 3\n")

    right, wrong = map(json.loads, storeless("check", "agent.toml", "--json").lines)

    assert (right["file"], right["ok"], right["name"], right["model"]) == (
        "agent.toml",
        True,
        "agent",
        "claude-x",
    )
    assert (right["tools"], right["linked"]) == (["pipe"], {"b": "bad.toml"})
    assert right["warnings"] == ["[tools] enables pipe, but [commands] allow names no command to run"]
    assert (wrong["file"], wrong["ok"]) == ("bad.toml", False)
    assert (wrong["key"], wrong["problem"]) == ("tools.enabled", "must be a list, not an integer")


def test_what_is_suspicious_is_a_note_and_no_failure(storeless, tmp_path):
    write(tmp_path, "agent.toml", '[tools]\nenabled = ["spawn"]\n')

    ended = storeless("check", "agent.toml")

    assert ended.code == 0
    assert ended.lines[1] == (
        "note     agent.toml: [tools] enables spawn, but [linked_programs] names no program to spawn"
    )


def test_functions_are_imported_only_when_asked_and_one_that_cannot_be_is_a_note(storeless, tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "own_tools.py").write_text(
        'open("imported", "w").close()\ndef good(n: int) -> int:\n    return n\ndef bad(*n):\n    pass\n'
    )
    functions = '["own_tools:good", "own_tools:bad", "own_tools:absent", "no_such_module:f"]'
    write(tmp_path, "agent.toml", f'[tools]\npath = "lib"\npython = {functions}\n')

    plain = storeless("check", "agent.toml")
    untouched = not (tmp_path / "imported").exists()
    imported = storeless("check", "agent.toml", "--imports")

    assert (plain.code, len(plain.lines), untouched) == (0, 1, True)
    assert (imported.code, imported.err) == (0, "")
    assert [line.partition("[tools] python: ")[2] for line in imported.lines[1:]] == [
        "bad: parameter n cannot be given by name",
        "'own_tools:absent' cannot be imported here: module 'own_tools' has no attribute 'absent'",
        "'no_such_module:f' cannot be imported here: No module named 'no_such_module'",
    ]


def test_the_schema_for_editors_is_json_and_takes_no_file(storeless):
    printed = storeless("check", "--schema")

    assert json.loads(printed.out)["properties"]["model"]["required"] == ["name"]
    assert storeless("check", "--schema", "agent.toml").code == 2
    assert storeless("check").code == 2
