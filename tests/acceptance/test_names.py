"""Names at the command line: put, moved, listed, and used wherever a descriptor is."""

from __future__ import annotations

import contextlib
import json

from click.testing import CliRunner

from fdstore.cli import cli

KEY = "notes/it's $(my) plan#7.md"


def test_a_file_is_put_under_a_name_and_replaced_unless_it_must_be_absent(command, store, tmp_path):
    (tmp_path / "draft").write_text("first\n")

    made = command("put", "triage", "draft", "--name", "plan.md", "--if-absent")
    (tmp_path / "draft").write_text("second\n")
    taken = command("put", "triage", "draft", "--name", "plan.md", "--if-absent")
    kept = command("cat", "triage", "name:plan.md").out
    replaced = command("put", "triage", "-", "--name", "name:plan.md", stdin=b"third\n")

    found = store.process("triage").list()
    assert (made.code, made.out, made.err) == (0, "name:plan.md\n", "")
    assert (taken.code, taken.out) == (1, "")
    assert taken.err == "fdstore: conflict: name:plan.md exists; nothing was changed\n"
    assert (kept, replaced.out) == ("first\n", "name:plan.md\n")
    assert [(each.fd, each.source, each.media_type) for each in found] == [
        ("name:plan.md", "stdin", "text/markdown")
    ]


def test_a_name_is_moved_and_a_taken_one_only_replaced_on_request(command, proc):
    proc.put("a", "one")
    proc.put("b", "two")

    refused = command("mv", "triage", "a", "b")
    moved = command("mv", "triage", "a", "name:b", "--replace")
    missing = command("mv", "triage", "a", "c")
    wrong = command("mv", "triage", "b", "c#L1")
    as_json = command("mv", "triage", "b", "c", "--json")

    assert (refused.code, refused.err) == (
        1,
        "fdstore: conflict: name:b exists; nothing was changed\n  use --replace to replace it\n",
    )
    assert (moved.code, moved.out) == (0, "name:b\n")
    assert (missing.code, missing.err) == (
        1,
        "fdstore: not_found: name:a does not exist; there are: name:b\n",
    )
    assert wrong.code == 2
    assert as_json.document["fd"] == "name:c"
    assert proc.read("name:c").text == "one"


def test_names_are_listed_by_prefix_in_order(command, proc):
    proc.create("unnamed")
    for key in ("notes/b", "other", "notes/a"):
        proc.put(key, "x")

    def listed(*words: str) -> list[str]:
        ended = CliRunner().invoke(cli, ["ls", "triage", *words, "--json"], env=command.environment)
        return [json.loads(line)["fd"] for line in ended.stdout.splitlines()]

    assert listed() == ["fd:1", "name:notes/b", "name:other", "name:notes/a"]
    assert listed("--names") == ["name:notes/a", "name:notes/b", "name:other"]
    assert listed("--names", "notes/") == ["name:notes/a", "name:notes/b"]
    assert listed("--names=name:o") == ["name:other"]
    assert listed("--names", "nothing") == []


def test_a_name_works_wherever_a_descriptor_does(command, proc, tmp_path):
    proc.put(KEY, "one\ntwo\nthree\n")
    expected = {
        "read FD#L2": "two\n",
        "read FD --lines 2-3": "two\nthree\n",
        "cat FD#C1-3": "one",
        "search FD#L2-3 t": "2:two\n3:three\n",
        "tail FD -n 1": "three\n",
        "export FD out": "14 characters written to out (14 B)\n",
        "holders FD": f"PROCESS  STATE  FD\ntriage   open   name:{KEY}\n",
        "rm FD": f"closed name:{KEY}\n",
    }

    for words, printed in expected.items():
        verb, *rest = [word.replace("FD", f"name:{KEY}") for word in words.split()]
        with contextlib.chdir(tmp_path):
            ended = CliRunner().invoke(cli, [verb, "triage", *rest], env=command.environment)

        assert (words, ended.exit_code, ended.stdout, ended.stderr) == (words, 0, printed, "")


def test_find_matches_the_key_of_a_name(command, proc):
    proc.put(KEY, "x")
    proc.put("other", "x")

    for pattern in ("notes/*.md", "my) plan", "name:notes"):
        ended = CliRunner().invoke(cli, ["find", pattern, "--json"], env=command.environment)

        assert json.loads(ended.stdout)["fd"] == f"name:{KEY}"


def test_a_long_name_moves_only_its_own_line_of_the_table(command, proc):
    proc.create("x", source="build.log")
    proc.put("k" * 60, "x")

    lines = command.on_terminal("ls", "triage", columns=80).lines

    assert len(lines[0]) < 80
    assert all(len(line) <= 80 for line in lines)
    assert lines[1].endswith("build.log")
    assert lines[2] == f"name:{'k' * 60}"
    assert lines[3].index("sealed") == lines[0].index("STATE") == lines[1].index("sealed")
