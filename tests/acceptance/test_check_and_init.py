"""`fdstore init` and `fdstore check`: writing a first program and correcting it."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from fdstore.testing import ScriptedModel, say

MODEL = '[model]\nname = "claude-x"\n'


@pytest.fixture
def offline_command(make_command):
    """The command with an unreachable store and without a model key."""
    command = make_command(FDSTORE_URL="redis://127.0.0.1:1")
    command.environment.pop("ANTHROPIC_API_KEY", None)
    return command


def write(folder: Path, name: str, text: str = "") -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(MODEL + text)


def test_init_writes_a_valid_file_and_prints_the_next_steps(offline_command, tmp_path):
    written = offline_command("init")
    checked = offline_command("check", "agent.toml")

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


def test_init_prints_the_file_instead_with_a_dash(offline_command, tmp_path):
    printed = offline_command("init", "-")

    assert not list(tmp_path.iterdir())
    (tmp_path / "mine.toml").write_text(printed.out)
    assert offline_command("check", "mine.toml").code == 0


def test_a_new_file_runs_unchanged(command):
    command("init", "first.toml")
    with ScriptedModel([say("I read texts.")]) as model:
        command.environment |= model.environ
        ended = command("run", "first.toml")

    assert (ended.code, ended.out) == (0, "I read texts.\n")
    assert model.requests[0].last_text() == "Say in one sentence what you can do."
    assert model.requests[0].tools == ("read_fd", "search_fd", "list_fds")


def test_an_existing_file_is_replaced_only_on_request(offline_command, tmp_path):
    (tmp_path / "agent.toml").write_text("mine")

    refused = offline_command("init")
    kept = (tmp_path / "agent.toml").read_text()
    forced = offline_command("init", "--force", "--json")

    assert (refused.code, refused.out, kept) == (1, "", "mine")
    assert refused.err.startswith("fdstore: file_exists: the file 'agent.toml' exists")
    assert "--force" in refused.err
    assert forced.document == {"file": "agent.toml"}
    assert (tmp_path / "agent.toml").read_text().startswith("# An agent")


def test_a_file_whose_name_is_not_a_valid_program_name_is_valid_too(offline_command):
    assert "'My Agent.toml'" in offline_command("init", "My Agent.toml").out
    assert offline_command("check", "My Agent.toml").code == 0


def test_check_follows_links_relative_to_their_files_and_reports_each_file_once(offline_command, tmp_path):
    write(
        tmp_path,
        "agent.toml",
        '[tools]\nenabled = ["spawn"]\n[linked_programs]\nexpert = "sub/expert.toml"\n',
    )
    write(tmp_path, "sub/expert.toml", '[linked_programs]\nboss = "../agent.toml"\n')
    write(tmp_path, "other.toml", '[tools]\npython = ["m:f"]\n')

    ended = offline_command("check", "agent.toml", "sub/expert.toml", tmp_path / "other.toml")

    assert (ended.code, ended.err) == (0, "")
    assert ended.lines == [
        "ok       agent.toml: program agent; model claude-x; tools spawn; links expert (sub/expert.toml)",
        "ok       sub/expert.toml: program expert; model claude-x; tools none; "
        "links boss (sub/../agent.toml)",
        f"ok       {tmp_path / 'other.toml'}: program other; model claude-x; tools m:f; links none",
    ]


def test_a_mistake_names_file_key_and_reason_and_the_other_files_are_checked_too(offline_command, tmp_path):
    write(tmp_path, "agent.toml", '[linked_programs]\na = "bad.toml"\n')
    write(tmp_path, "bad.toml", "[limits]\nmax_turns = 0\n")
    write(tmp_path, "dead.toml", '[linked_programs]\na = "absent.toml"\n')
    write(tmp_path, "dead too.toml", '[program]\nname = "d"\n[linked_programs]\na = "absent.toml"\n')

    ended = offline_command("check", "agent.toml", "dead.toml", "dead too.toml", "absent.toml")

    assert (ended.code, ended.err) == (1, "")
    assert ended.lines == [
        "ok       agent.toml: program agent; model claude-x; tools none; links a (bad.toml)",
        "PROBLEM  absent.toml: does not exist",
        "PROBLEM  bad.toml: limits.max_turns: must be an integer >= 1",
        "PROBLEM  dead.toml: linked_programs.a: 'absent.toml' does not exist",
        "PROBLEM  dead too.toml: linked_programs.a: 'absent.toml' does not exist",
    ]


def test_all_mistakes_of_a_file_are_reported_with_what_was_meant(offline_command, tmp_path):
    text = '[model]\nnam = "x"\n[limts]\na = 1\n[limits]\nmax_turn = 3\nmax_turns = 0\n'
    text += '[tools]\nenabled = ["serch_fd"]\npython = 7\n[file_descriptor.tool.grep]\ninlin = true\n'
    (tmp_path / "bad.toml").write_text(text)

    ended = offline_command("check", "bad.toml")
    document = offline_command("check", "bad.toml", "--json").document

    said = dict(line.removeprefix("PROBLEM  bad.toml: ").split(": ", 1) for line in ended.lines)
    assert set(said) == {
        *("limts", "model.nam", "model.name", "limits.max_turn", "limits.max_turns", "tools.enabled"),
        *("tools.python", "file_descriptor.tool.grep.inlin"),
    }
    assert "did you mean limits?" in said["limts"]
    assert "did you mean name?" in said["model.nam"]
    assert "did you mean max_turns?" in said["limits.max_turn"]
    assert "did you mean search_fd?" in said["tools.enabled"]
    assert {document["key"]: document["problem"], **document["others"]} == said


def test_files_that_are_missing_are_reported_beside_wrong_keys(offline_command, tmp_path):
    text = '[prompt]\nsystem_prompt_file = "absent.md"\n[limits]\nmax_turns = 0\n[tools]\npath = "absent"\n'
    text += '[preload]\nfiles = ["no.txt", "none.txt"]\nroot = "gone"\n'
    text += '[linked_programs]\na = "absent.toml"\nb = "missing.toml"\nc = "other.toml"\n'
    write(tmp_path, "bad.toml", text)
    write(tmp_path, "other.toml", "[limits]\nmax_turns = 0\n")
    write(tmp_path, "links.toml", '[linked_programs]\na = "absent.toml"\nb = "missing.toml"\n')

    ended = offline_command("check", "bad.toml")
    links = offline_command("check", "links.toml")

    said = [line.removeprefix("PROBLEM  ") for line in ended.lines]
    assert [line.rpartition(" ")[0].partition(": '")[0] for line in said[1:-1]] == [
        "bad.toml: prompt.system_prompt_file",
        "bad.toml: preload.files",
        "bad.toml: preload.root",
        "bad.toml: tools.path",
        "bad.toml: linked_programs.a",
        "bad.toml: linked_programs.b",
    ]
    assert "no.txt" in said[2]
    assert "none.txt" in said[2]
    assert said[0] == "bad.toml: limits.max_turns: must be an integer >= 1"
    assert said[-1] == "other.toml: limits.max_turns: must be an integer >= 1"
    assert links.lines == [
        "PROBLEM  links.toml: linked_programs.a: 'absent.toml' does not exist",
        "PROBLEM  links.toml: linked_programs.b: 'missing.toml' does not exist",
    ]


def test_check_can_print_json(offline_command, tmp_path):
    write(tmp_path, "agent.toml", '[tools]\nenabled = ["pipe"]\n[linked_programs]\nb = "bad.toml"\n')
    write(tmp_path, "bad.toml", "[tools]\nenabled = 3\n")

    right, wrong = offline_command("check", "agent.toml", "--json").documents

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


def test_suspicious_settings_are_notes_and_not_failures(offline_command, tmp_path):
    write(tmp_path, "agent.toml", '[tools]\nenabled = ["spawn"]\n')

    ended = offline_command("check", "agent.toml")

    assert ended.code == 0
    assert ended.lines[1] == (
        "note     agent.toml: [tools] enables spawn, but [linked_programs] names no program to spawn"
    )


def test_functions_are_imported_only_on_request_and_a_failed_import_is_a_note(offline_command, tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "own_tools.py").write_text(
        'open("imported", "w").close()\ndef good(n: int) -> int:\n    return n\ndef bad(*n):\n    pass\n'
    )
    functions = '["own_tools:good", "own_tools:bad", "own_tools:absent", "no_such_module:f"]'
    write(tmp_path, "agent.toml", f'[tools]\npath = "lib"\npython = {functions}\n')

    plain = offline_command("check", "agent.toml")
    untouched = not (tmp_path / "imported").exists()
    imported = offline_command("check", "agent.toml", "--imports")

    assert (plain.code, len(plain.lines), untouched) == (0, 1, True)
    assert (imported.code, imported.err) == (0, "")
    assert [line.partition("[tools] python: ")[2] for line in imported.lines[1:]] == [
        "bad: parameter n cannot be given by name",
        "'own_tools:absent' cannot be imported here: module 'own_tools' has no attribute 'absent'",
        "'no_such_module:f' cannot be imported here: No module named 'no_such_module'",
    ]


def test_the_schema_for_editors_is_json_and_takes_no_file(offline_command):
    printed = offline_command("check", "--schema")

    assert printed.document["properties"]["model"]["required"] == ["name"]
    assert offline_command("check", "--schema", "agent.toml").code == 2
    assert offline_command("check").code == 2


def test_check_warns_of_a_policy_for_a_tool_that_the_program_lacks(offline_command, tmp_path):
    policies = "".join(f"[file_descriptor.tool.{name}]\npreview = 'tail'\n" for name in ("a", "b", "read_fd"))
    write(tmp_path, "agent.toml", f"[tools]\nenabled = ['read_fd']\npython = ['mine:a']\n{policies}")

    checked = offline_command("check", "agent.toml", "--json")

    assert checked.document["warnings"] == [
        "file_descriptor.tool.b: [tools] python names no function called so",
        "file_descriptor.tool.read_fd: has no effect: read_fd is a built-in tool, not one of your functions",
    ]


def test_check_says_what_a_provider_lacks_and_what_is_missing_here(offline_command, tmp_path):
    for name in ("OPENAI_API_KEY", "AWS_REGION", "AWS_DEFAULT_REGION"):
        offline_command.environment.pop(name, None)
    offline_command.environment["HOME"] = str(tmp_path)
    asks = '[python.ask]\nmodel = "small"\nbase_url = "http://gpu1:8000"\napi_key_env = "GPU_KEY"\n'
    thinking = '[parameters]\nthinking = { type = "adaptive" }\n[tools]\nenabled = ["run_python"]\n'
    write(tmp_path, "chat.toml", f'provider = "openai"\nprompt_cache = "1h"\n{thinking}{asks}')
    write(tmp_path, "bedrock.toml", 'provider = "bedrock"\n')
    write(tmp_path, "local.toml", 'base_url = "http://127.0.0.1:8080"\n')

    checked = offline_command("check", "chat.toml", "bedrock.toml", "local.toml")

    assert checked.code == 0
    notes = [line.partition("note     ")[2] for line in checked.lines if line.startswith("note")]
    assert [note for note in notes if note.startswith("chat")] == [
        'chat.toml: provider "openai": not from here: no key for Chat Completions: set OPENAI_API_KEY; '
        "`python -m fdstore.testing` runs a scripted model, which needs no key",
        'chat.toml: provider "openai": not from here: the variable GPU_KEY, which has the key of a model '
        "([model] api_key_env), is not set",
        'chat.toml: provider "openai": [parameters] thinking is of the Messages API; this API has '
        "reasoning_effort or reasoning",
        'chat.toml: provider "openai": [model] prompt_cache has no effect: these servers cache by '
        "themselves, for a time of their own",
    ]
    [bedrock] = [note for note in notes if note.startswith("bedrock")]
    assert "it needs AWS_REGION or AWS_DEFAULT_REGION" in bedrock
    assert not [note for note in notes if note.startswith("local")]
