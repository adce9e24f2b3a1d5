"""Failed commands: one line or one document, a type, an exit code, and nothing created."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import tempfile
import time

import pytest
from click.testing import CliRunner

from fdstore.cli import cli
from tests.acceptance.verbs import CLOSED_PORT_URL, HERE, WITHOUT_STORE
from tests.thorough import thorough
from tests.waiting import PATIENCE_S, stretched


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("read fd:1", "PROC is missing before fd:1: fdstore read PROC fd:1."),
        ("put build.log", "PROC is missing before build.log: fdstore put PROC build.log."),
        ("search 3#L1-9 ERROR", "PROC is missing before '3#L1-9': fdstore search PROC '3#L1-9'."),
        ("ls", "PROC is missing: fdstore ls PROC."),
        ("read triage", "Missing argument 'SELECTOR'."),
    ],
)
def test_a_missing_word_is_named(words, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "build.log").write_text("x")

    ended = CliRunner().invoke(cli, words.split())

    assert ended.exit_code == 2
    assert said in ended.stderr


def test_help_and_version_are_found_by_their_usual_names():
    def shown(*words: str) -> str:
        ended = CliRunner().invoke(cli, words)
        assert ended.exit_code == 0, ended.output
        return ended.stdout

    assert shown("help", "read") == shown("read", "--help")
    assert shown("help") == shown("--help")
    assert shown("version") == shown("-V") == shown("--version")


PYTHON = re.compile(r"\b[a-z]+_[a-z_]+\b|\w=(?:true|false|True|False|\")|\bNone\b|\bstr\b|\bint\b")
"""Words of Python, and not of the command line."""

WRONG = {
    "not_found": "read triage 7; read nope 1; cat nope 1; stat nope 1; rm nope 1; cat triage ref:nope; "
    "stat triage 9; tail triage 9; ls nope; "
    "export triage 9 x; put triage.9 here.txt; mv triage nope other; read triage name:nope; rm triage 9; "
    "pipe triage -i 9 cat; kill nope; attach nope; resume nope; ps nope; limits show nope; "
    "search triage 9 x; diff triage 1 9",
    "invalid_argument": "read triage fd:x; read triage fd:1#X; ls Nope!; put triage latin --text; "
    "put triage hollow; "
    "put Nope! here.txt; cat triage name:; rm triage x; pipe triage --tee 3 cat; pipe triage cat | | cat; "
    r"run bad.toml; limits set trees x; search triage 1 (; search triage 1 \1",
    "invalid_page": "read triage fd:1#P9; read triage 2#P9",
    "invalid_range": "read triage 1#L9; search triage 1#L9 x; diff triage 1 1#L90",
    "not_text": "diff triage 1 3; read triage 3; tail triage 3",
    "stream_broken": "cat triage 2",
    "file_exists": "export triage 1 here.txt --no-clobber",
    "file_not_found": "export triage 1 new.txt --no-create; export triage 1 no/new.txt; put triage nope.txt; "
    "run nope.toml",
    "permission_error": "export triage 1 /dev/null; export triage 1 .",
    "fenced": "put triage.1 here.txt; resume triage",
    "unknown_program": "pipe triage /bin/cat",
    "usage": "read triage 1 --start 0; read triage 1 --pages x; read triage 1 --mode word; nonsense; ls; "
    "read triage 1#P1 --start 1; read triage 1 --pages 2-; read triage 1 --pages 2 --lines 2; "
    "read triage 1#P1 --lines 2; search triage 1 x -m 0; search triage 1 x -C 101; "
    "put triage here.txt --encoding nope; put triage here.txt --media-type png; "
    "put triage here.txt --name a#L1; "
    "tail triage 1 -n many; put triage here.txt --page-size x; limits set trees -5",
}
"""Type of an error -> commands that fail with it."""


def test_an_error_has_its_type_and_exit_code_and_no_words_of_python_and_nothing_is_created(
    command, store, proc, tmp_path
):
    proc.create("one\n")
    proc.child().end()
    proc.open_stream().fail("signal 9")
    proc.create(b"PK\x03\x04")
    (tmp_path / "here.txt").write_text("")
    (tmp_path / "latin").write_bytes(b"\xe9")
    (tmp_path / "hollow").mkdir()
    (tmp_path / "bad.toml").write_text("[model")
    for kind, lines in WRONG.items():
        for line in lines.split("; "):
            with contextlib.chdir(tmp_path):
                ran = CliRunner().invoke(cli, line.split(), env=command.environment)
            head = "Usage: " if kind == "usage" else f"fdstore: {kind}: "

            assert ran.exit_code == (2 if kind == "usage" or line.startswith(("search", "diff")) else 1), line
            assert ran.stderr.startswith(head), line
            said, *hints = ran.stderr.removeprefix(head).splitlines()
            assert kind == "usage" or [each[:2] for each in hints] == ["  "] * len(hints), line
            assert (ran.stdout, said != "") == ("", True), line
            assert not PYTHON.search(said), (line, said)
    assert [process.id for process in store.processes()] == ["triage", "triage.1"]


@pytest.mark.parametrize("verb", ["ps", "status", "doctor", *thorough("other verbs", "saved", "token ls")])
@pytest.mark.parametrize("directory", ["/" + 100_000 * "a", "/data/" + 300 * "a"])
def test_a_data_directory_that_cannot_exist_is_refused_in_one_short_line(verb, directory):
    environment = {"FDSTORE_DATA_DIR": directory, "FDSTORE_URL": None}

    ran = CliRunner().invoke(cli, verb.split(), env=environment)

    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.startswith("fdstore: invalid_argument: FDSTORE_DATA_DIR: '/")
    assert len(ran.stderr) < 300


def test_common_options_are_accepted_before_the_verb_and_overridden_after_it(command, store, proc):
    proc.create("one\n")

    before = command("--prefix", "other", "--json", "ps")
    both = command("--prefix", "other", "--json", "ps", "--prefix", store.prefix)

    assert (before.code, before.lines) == (0, [])
    assert [each["id"] for each in both.documents] == ["triage"]
    assert command("--url", "http://x", "worker").err.startswith("fdstore: invalid_argument: url")


WORDS = {
    "put": "p /dev/null",
    "mv": "p a b",
    "ls": "p",
    "stat": "p 1",
    "read": "p 1",
    "cat": "p 1",
    "search": "p 1 x",
    "diff": "p 1 2",
    "tail": "p 1",
    "export": "p 1 out",
    "export-run": "p out.html",
    "rm": "p 1",
    "pipe": "p cat",
    "answer": "p yes",
    "attach": "p",
    "log": "p",
    "sql": "p 1 x",
    "top": "--once",
    "resume": "p",
    "kill": "p",
    "ask": "Why? agent.toml",
    "python": "p -c 1",
    "run": "agent.toml",
    "holders": "p 1",
    "find": "x",
    "token": "ls",
}
"""The arguments that a verb wants beside its options."""

WITHOUT_URL = {"completion", "claude-plugin", "hook", "gateway", *WITHOUT_STORE}
"""Verbs that use no store, or that must not fail a host because of one."""


@pytest.mark.parametrize(
    "url",
    [
        "redis://h?foo=x",
        *thorough("other mistakes", "redis://h/abc", "http://x", "redis://[x", "redis+cluster://h/1"),
    ],
)
def test_a_url_that_cannot_be_used_is_one_line_and_exit_code_2_from_every_verb(make_command, tmp_path, url):
    (tmp_path / "agent.toml").write_text('[model]\nname = "any"\n[prompt]\nsystem = "You wait."\n')
    verbs = [name for name in HERE if name not in WITHOUT_URL] if url.endswith("foo=x") else ["ls", "worker"]
    for name in verbs:
        words = WORDS.get(name, "").split()
        if name == "worker":
            ended = make_command(FDSTORE_URL=url)(name)
            code, out, err = ended.code, ended.out, ended.err
        else:
            environment = {**make_command(FDSTORE_URL=url).environment}
            with contextlib.chdir(tmp_path):
                ran = CliRunner().invoke(cli, [name, *words], env=environment)
            code, out, err = ran.exit_code, ran.stdout, ran.stderr

        assert (name, code, out) == (name, 2, "")
        assert err.startswith("fdstore: invalid_argument: url: ")
        assert err.count("\n") == 1


def test_a_prefix_that_cannot_be_used_is_a_wrong_command_line(command):
    ended = command("ls", "triage", "--prefix", "{}")

    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert ended.err.startswith("fdstore: invalid_argument: prefix: ")


@pytest.mark.parametrize("args", [["ls", "triage"], ["put", "triage", "/dev/null"], ["ps"], ["status"]])
def test_an_unreachable_redis_is_reported_immediately_in_one_line(make_command, args):
    command = make_command(FDSTORE_URL=CLOSED_PORT_URL)

    began = time.monotonic()
    ended = command(*args)

    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("fdstore: store_unavailable: Redis at redis://:***@127.0.0.1:1: ")
    assert ended.err.count("\n") == 1
    assert "secret" not in ended.err
    assert time.monotonic() - began < stretched(8)  # lost connections are given ten seconds


def test_a_data_directory_that_is_none_is_said_in_words(command, tmp_path):
    (tmp_path / "file").write_text("a file")
    command.environment.pop("FDSTORE_URL", None)
    for directory, problem in (("file", "File exists"), ("file/below", "Not a directory")):
        command.environment["FDSTORE_DATA_DIR"] = str(tmp_path / directory)

        ended = command("ps")

        assert ended.code == 1
        assert f"{directory}: the data directory cannot be used: {problem}; set FDSTORE_DATA_DIR" in ended.err
        assert "Errno" not in ended.err


NEEDS_A_HOME = [["claude-plugin"], ["hook", "install", "codex", "--yes"], ["doctor"], ["down"]]


@pytest.mark.parametrize("args", NEEDS_A_HOME)
def test_a_home_that_cannot_be_used_is_said_in_one_line(command, args):
    for name in ("FDSTORE_URL", "FDSTORE_DATA_DIR", "XDG_DATA_HOME"):
        command.environment.pop(name, None)
    with tempfile.NamedTemporaryFile() as home:  # a short path, as homes have
        command.environment["HOME"] = home.name

        ended = command(*args)

    assert "Traceback" not in ended.err
    assert ended.code in (0, 1)
    assert ended.code == 0 or home.name in ended.out + ended.err


def test_an_agent_is_not_created_if_its_answer_could_not_be_printed(command, tmp_path):
    program = '[model]\nname = "claude-sonnet-5-5"\n[prompt]\nsystem = "You are quick"\n'
    (tmp_path / "quick.toml").write_text(program)
    command.environment["ANTHROPIC_API_KEY"] = "x"
    run = [sys.executable, "-m", "fdstore", "run", tmp_path / "quick.toml", "--name", "closed", "-p", "x"]

    done = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *run],
        env=command.environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )

    said = "standard output failed: it is closed; earlier output may have been written"
    assert done.stderr == f"fdstore: write_error: {said}\n"
    assert "closed" not in command("ps").out


@pytest.mark.parametrize(
    "args",
    [["claude-plugin"], ["hook", "install", "codex", "--yes"], ["mcp"], ["gateway", "--", "cat"], ["init"]],
    ids=" ".join,
)
def test_a_prefix_that_cannot_be_used_is_refused_before_anything_is_written(command, tmp_path, args):
    command.environment.update(FDSTORE_PREFIX="x/y", HOME=str(tmp_path))
    before = sorted(tmp_path.rglob("*"))

    ended = command(*args)

    assert (ended.code, ended.out) == (2, "")
    assert ended.err == (
        "fdstore: invalid_argument: prefix: 'x/y' is not a key prefix; use letters, digits, _ . : -\n"
    )
    assert sorted(tmp_path.rglob("*")) == before
